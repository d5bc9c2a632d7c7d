// links: tbd_replay tbd_hooks_host tbd_organizer tbd_format tbd_base
// sources: replay_stream.c
// SPDX-License-Identifier: MIT
/* What a replay process sends is looked at in its chunks: a listener sees every block with its operands, in order, and every message;
 * what is kept is the log and the end.  Nothing that the process writes makes it look outside the chunk. */
#include "format/window/window_make.h"
#include "replay/skim.h"
#include "replay_stream.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RECORD_BYTES 1016u /* no divisor of a chunk's operands: some records are in two chunks */
#define BLOCKS       6000u
#define CALL_EVERY   500u
#define CALLS        (BLOCKS / CALL_EVERY)

static const struct tbd_ring_config config = {
    .chunks = 4,
    .def_capacity = 8,
    .heap_capacity = 8192,
    .hook_set = TBD_HOOKS_PLAY,
};
static const struct tbd_gather_most no_limits = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX,
                                                  SIZE_MAX };

struct fixture {
    struct replay_stream stream;
    struct tbd_skim *skim;
    /* what the process does */
    uint32_t pages, pages_before; /* at the end; before the last block */
    uint32_t wrong_at, wrong;     /* this entry instead of the usual one, unless 0 */
    /* what the listener has seen */
    uint32_t blocks, calls;
    uint32_t stop_at; /* it wants no more, unless 0 */
    bool is_bad;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    replay_stream_open(&f->stream, &config, RECORD_BYTES);
    f->skim = tbd_skim_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    tbd_skim_free(f->skim);
    replay_stream_close(&f->stream);
    free(f);
    return 0;
}

/* ---- the process ---- */

static void *produce(void *argument)
{
    struct fixture *f = argument;

    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct tbd_msg_syscall call = { .number = 39, .result = i };

        if (i == BLOCKS - 1)
            replay_stream_send_pages(&f->stream, f->pages_before);
        replay_stream_enter(&f->stream, f->wrong != 0 && i == f->wrong_at ? f->wrong : f->stream.id,
                            i);
        if (i % CALL_EVERY == CALL_EVERY - 1)
            replay_stream_send(&f->stream, TBD_MSG_SYSCALL, &call, sizeof(call));
    }
    replay_stream_send_pages(&f->stream, f->pages);
    replay_stream_end_window(&f->stream, BLOCKS);
    return NULL;
}

/* ---- the listener ---- */

static bool see_records(void *context, const uint32_t *ids, size_t count, const uint8_t *operands)
{
    struct fixture *f = context;

    f->is_bad |= count == 0;
    for (size_t i = 0; i < count; i++, operands += RECORD_BYTES, f->blocks++) {
        f->is_bad |= ids[i] != 1;
        for (size_t at = 0; at < RECORD_BYTES; at += sizeof(f->blocks))
            f->is_bad |= memcmp(operands + at, &f->blocks, sizeof(f->blocks)) != 0;
    }
    return f->stop_at == 0 || f->blocks < f->stop_at;
}

static bool see_entries(void *context, const uint32_t *ids, size_t count)
{
    struct fixture *f = context;

    for (size_t i = 0; i < count; i++)
        f->is_bad |= ids[i] != 1;
    f->blocks += (uint32_t)count;
    return true;
}

static bool see_message(void *context, uint32_t kind, const uint8_t *payload, uint32_t bytes)
{
    struct fixture *f = context;
    struct tbd_msg_syscall call;

    f->is_bad |= kind != TBD_MSG_SYSCALL || bytes != sizeof(call);
    memcpy(&call, payload, sizeof(call));
    f->calls++;
    f->is_bad |= call.result != f->calls * CALL_EVERY - 1 || f->blocks != f->calls * CALL_EVERY;
    return true;
}

/* ---- the driver ---- */

static enum tbd_status replay(struct fixture *f, const struct tbd_skim_listener *listener,
                              const struct tbd_gather_most *most, struct tbd_window **out)
{
    struct tbd_skim_start start = {
        .consumer = f->stream.consumer, .listener = listener, .most = *most, .thread = 7
    };
    enum tbd_status status = TBD_NOTFOUND;
    pthread_t thread;

    *out = NULL;
    f->blocks = f->calls = 0;
    tbd_ring_start(&f->stream.ring, &f->stream.thread, 0, TBD_TIME_NEVER);
    assert_int_equal(tbd_skim_begin(f->skim, &start), TBD_OK);
    assert_int_equal(pthread_create(&thread, NULL, produce, f), 0);
    while (status == TBD_NOTFOUND) {
        status = tbd_skim_take(f->skim, NULL);
        if (status == TBD_NOTFOUND)
            tbd_consumer_wait(f->stream.consumer, 100);
    }
    while (status != TBD_OK) { /* the process goes on, and nobody looks */
        struct tbd_chunk_view chunk;

        if (tbd_consumer_peek(f->stream.consumer, &chunk, NULL) == TBD_OK) {
            tbd_consumer_pass(f->stream.consumer);
            if (chunk.ends_window)
                break;
        }
    }
    pthread_join(thread, NULL);
    return status == TBD_OK ? tbd_skim_finish(f->skim, out, NULL) : status;
}

static struct tbd_skim_listener listener_of(struct fixture *f, bool wants_records)
{
    return (struct tbd_skim_listener){ .entries = wants_records ? NULL : see_entries,
                                       .records = wants_records ? see_records : NULL,
                                       .message = see_message,
                                       .context = f };
}

static void check(const struct tbd_window *window, uint32_t pages)
{
    replay_stream_check(window, BLOCKS, CALLS, pages);
    for (uint32_t i = 0; i < CALLS; i++)
        assert_int_equal(window->log[i].time, (i + 1) * CALL_EVERY);
}

/* ---- tests ---- */

static void nobody_need_look(void **state)
{
    struct fixture *f = *state;
    struct tbd_window *window;

    f->pages = 3;
    assert_int_equal(replay(f, NULL, &no_limits, &window), TBD_OK);
    check(window, 3);
    tbd_window_free(window);
}

static void a_listener_sees_all_entries_and_messages_in_order(void **state)
{
    struct fixture *f = *state;
    struct tbd_skim_listener listener = listener_of(f, false);
    struct tbd_window *window;

    assert_int_equal(replay(f, &listener, &no_limits, &window), TBD_OK);
    check(window, 0);
    assert_int_equal(f->blocks, BLOCKS);
    assert_int_equal(f->calls, CALLS);
    assert_false(f->is_bad);
    tbd_window_free(window);
}

static void a_listener_sees_each_record_with_its_operands(void **state)
{
    struct fixture *f = *state;
    struct tbd_skim_listener listener = listener_of(f, true);

    for (uint32_t pages = 0; pages < 3; pages++) {
        struct tbd_window *window;

        f->pages = pages * 300;
        assert_int_equal(replay(f, &listener, &no_limits, &window), TBD_OK);
        check(window, f->pages);
        assert_int_equal(f->blocks, BLOCKS);
        assert_int_equal(f->calls, CALLS);
        assert_false(f->is_bad);
        tbd_window_free(window);
    }
}

/* Records after a message that is no event do not lie right after those before it. */
static void state_that_comes_early_is_none_of_the_end(void **state)
{
    struct fixture *f = *state;
    struct tbd_skim_listener listener = listener_of(f, true);
    struct tbd_window *window;

    f->pages_before = 5;
    f->pages = 2;
    assert_int_equal(replay(f, &listener, &no_limits, &window), TBD_OK);
    assert_int_equal(window->dirty_count, 2);
    assert_int_equal(f->blocks, BLOCKS);
    assert_false(f->is_bad);
    tbd_window_free(window);
}

static void an_entry_of_no_block_ends_the_window(void **state)
{
    const uint32_t entries[] = { 5, 0x3fffffff, TBD_ENTRY_MESSAGE | TBD_MSG_SIGNAL,
                                 TBD_ENTRY_MESSAGE | 0x7777 };
    struct fixture *f = *state;
    struct tbd_skim_listener listener = listener_of(f, true);

    f->wrong_at = 1234;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        struct tbd_window *window;

        f->wrong = entries[i];
        assert_int_equal(replay(f, i % 2 ? NULL : &listener, &no_limits, &window), TBD_DIVERGED);
        assert_int_equal(window->blocks, f->wrong_at);
        tbd_window_free(window);
    }
}

static void more_than_play_had_is_a_divergence(void **state)
{
    struct fixture *f = *state;

    f->pages = 2;
    for (int i = 0; i < 4; i++) {
        struct tbd_gather_most most = { .events = CALLS,
                                        .event_bytes = CALLS * sizeof(struct tbd_msg_syscall),
                                        .pages = 2 };
        struct tbd_window *window;

        most.events -= i == 1;
        most.event_bytes -= i == 2;
        most.pages -= i == 3;
        assert_int_equal(replay(f, NULL, &most, &window), i ? TBD_DIVERGED : TBD_OK);
        tbd_window_free(window);
    }
}

static void a_listener_may_end_it(void **state)
{
    struct fixture *f = *state;
    struct tbd_skim_listener listener = listener_of(f, true);
    struct tbd_window *window;

    f->stop_at = 100;
    assert_int_equal(replay(f, &listener, &no_limits, &window), TBD_NOMEM);
    assert_null(window);
    assert_true(f->blocks >= 100 && f->blocks < BLOCKS);
    f->stop_at = 0;
    assert_int_equal(replay(f, &listener, &no_limits, &window), TBD_OK);
    check(window, 0);
    tbd_window_free(window);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nobody_need_look),
        TEST(a_listener_sees_all_entries_and_messages_in_order),
        TEST(a_listener_sees_each_record_with_its_operands),
        TEST(state_that_comes_early_is_none_of_the_end),
        TEST(an_entry_of_no_block_ends_the_window),
        TEST(more_than_play_had_is_a_divergence),
        TEST(a_listener_may_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
