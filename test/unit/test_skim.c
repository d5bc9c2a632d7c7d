// links: tbd_replay tbd_hooks_host tbd_organizer tbd_format tbd_base
// SPDX-License-Identifier: MIT
/* What a replay process sends is looked at in its chunks: a listener sees every block with its operands, in order, and every message;
 * what is kept is the log and the end.  Nothing that the process writes makes it look outside the chunk. */
#include "base/layout.h"
#include "format/window/window_make.h"
#include "hooks/stream/ring.h"
#include "replay/skim.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
static const uint8_t code[4] = { 0x48, 0x89, 0x03, 0xc3 }; /* mov [rbx], rax; ret */
static const struct tbd_gather_most no_limits = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX,
                                                  SIZE_MAX };

struct fixture {
    int fd;
    struct tbd_ring ring;
    struct tbd_thread thread;
    uint32_t id;
    struct tbd_block_table *table;
    struct tbd_consumer *consumer;
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
    struct tbd_op op = { .kind = TBD_OP_STORE, .size = 8, .data = 8, .base = 0 };
    struct tbd_block_def def = { .start = 0x400000,
                                 .code_bytes = 4,
                                 .op_count = 1,
                                 .operand_bytes = RECORD_BYTES,
                                 .insn_count = 2,
                                 .end = TBD_END_RETURN,
                                 .last_insn = 3 };
    struct fixture *f = calloc(1, sizeof(*f));

    f->fd = memfd_create("stream", 0);
    assert_int_equal(tbd_ring_create(&f->ring, f->fd, &config), TBD_OK);
    assert_true(tbd_ring_guard(&f->ring));
    f->id = tbd_ring_define(&f->ring, &def, &op, code);
    f->table = tbd_block_table_new();
    assert_int_equal(tbd_consumer_new(f->fd, f->table, NULL, &f->consumer, NULL), TBD_OK);
    f->skim = tbd_skim_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    tbd_skim_free(f->skim);
    tbd_consumer_free(f->consumer);
    tbd_block_table_release(f->table);
    munmap((void *)TBD_STREAM_BASE, f->ring.bytes);
    close(f->fd);
    free(f);
    return 0;
}

/* ---- the process ---- */

static void enter(struct fixture *f, uint32_t number)
{
    struct tbd_thread *thread = &f->thread;
    uint32_t entry = f->wrong != 0 && number == f->wrong_at ? f->wrong : f->id;

    if (thread->operand_next + RECORD_BYTES > tbd_ring_records_end_sigsafe(&f->ring))
        tbd_ring_turn(&f->ring, thread, 0); /* as at the guard page */
    memcpy((void *)thread->entry_next, &entry, sizeof(entry));
    thread->entry_next += sizeof(entry);
    for (size_t at = 0; at < RECORD_BYTES; at += sizeof(number))
        memcpy((uint8_t *)thread->operand_next + at, &number, sizeof(number));
    thread->operand_next += RECORD_BYTES;
}

static void send(struct fixture *f, enum tbd_message_kind kind, const void *payload, size_t bytes)
{
    struct tbd_part part = { payload, bytes };

    tbd_ring_send(&f->ring, &f->thread, kind, &part, 1);
}

static void send_pages(struct fixture *f, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct {
            struct tbd_msg_page head;
            uint8_t bytes[TBD_PAGE_SIZE];
        } page = { .head = { (0x500000ull + i * TBD_PAGE_SIZE), TBD_PAGE_DIRTY } };

        memset(page.bytes, (int)i + 1, sizeof(page.bytes));
        send(f, TBD_MSG_PAGE, &page, sizeof(page));
    }
}

static void *produce(void *argument)
{
    struct fixture *f = argument;
    struct tbd_msg_window_end end = { .time = BLOCKS };
    struct tbd_regs regs = { .thread = 7, .rip = 0x400000 };

    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct tbd_msg_syscall call = { .number = 39, .result = i };

        if (i == BLOCKS - 1)
            send_pages(f, f->pages_before);
        enter(f, i);
        if (i % CALL_EVERY == CALL_EVERY - 1)
            send(f, TBD_MSG_SYSCALL, &call, sizeof(call));
    }
    send_pages(f, f->pages);
    send(f, TBD_MSG_REGS, &regs, sizeof(regs));
    send(f, TBD_MSG_WINDOW_END, &end, sizeof(end));
    tbd_ring_turn(&f->ring, &f->thread, TBD_CHUNK_ENDS_WINDOW);
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
        .consumer = f->consumer, .listener = listener, .most = *most, .thread = 7
    };
    enum tbd_status status = TBD_NOTFOUND;
    pthread_t thread;

    *out = NULL;
    f->blocks = f->calls = 0;
    tbd_ring_start(&f->ring, &f->thread, 0, TBD_TIME_NEVER);
    assert_int_equal(tbd_skim_begin(f->skim, &start), TBD_OK);
    assert_int_equal(pthread_create(&thread, NULL, produce, f), 0);
    while (status == TBD_NOTFOUND) {
        status = tbd_skim_take(f->skim, NULL);
        if (status == TBD_NOTFOUND)
            tbd_consumer_wait(f->consumer, 100);
    }
    while (status != TBD_OK) { /* the process goes on, and nobody looks */
        struct tbd_chunk_view chunk;

        if (tbd_consumer_peek(f->consumer, &chunk, NULL) == TBD_OK) {
            tbd_consumer_pass(f->consumer);
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
    assert_true(window->complete);
    assert_int_equal(window->blocks, BLOCKS);
    assert_int_equal(window->log_count, CALLS);
    assert_int_equal(window->dirty_count, pages);
    for (uint32_t i = 0; i < pages; i++)
        assert_int_equal(window->dirty[i].bytes[TBD_PAGE_SIZE - 1], (uint8_t)(i + 1));
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
