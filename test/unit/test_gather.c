// links: tbd_replay tbd_hooks_host tbd_organizer tbd_format tbd_base
// sources: replay_stream.c
// SPDX-License-Identifier: MIT
/* The stream of a replay process becomes a window, wherever its operands are: in their chunks, in
 * an area of the stream, or in one that is too small.  Cursors rely only on the driver's own
 * memory, and areas are given back zeroed. */
#include "format/window/cursor.h"
#include "format/window/window_make.h"
#include "replay/gather.h"
#include "replay_stream.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RECORD_BYTES 1024u
#define BLOCKS       3000u
#define CALL_EVERY   500u
#define CALLS        (BLOCKS / CALL_EVERY)

static const struct tbd_ring_config config = {
    .chunks = 4,
    .def_capacity = 8,
    .heap_capacity = 8192,
    .hook_set = TBD_HOOKS_PLAY,
    .areas = 2,
    .area_bytes = 5u << 20,
};

struct fixture {
    struct replay_stream stream;
    struct tbd_areas *areas;
    struct tbd_gather *gather;
    struct tbd_msg_read read; /* all zeros: none is sent */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct tbd_stream_areas where;

    replay_stream_open(&f->stream, &config, RECORD_BYTES);
    where = tbd_consumer_areas(f->stream.consumer);
    assert_int_equal(where.count, 2);
    f->areas = tbd_areas_new(f->stream.fd, &where);
    assert_non_null(f->areas);
    f->gather = tbd_gather_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    tbd_gather_free(f->gather);
    tbd_areas_free(f->areas);
    replay_stream_close(&f->stream);
    free(f);
    return 0;
}

/* ---- the process ---- */

/* `pages` dirty pages at the end. */
static void produce(struct fixture *f, uint32_t pages)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct tbd_msg_syscall call = { .number = 39, .result = i };

        replay_stream_enter(&f->stream, f->stream.id, i);
        if (i == CALL_EVERY && f->read.bytes + f->read.address)
            replay_stream_send(&f->stream, TBD_MSG_READ, &f->read, sizeof(f->read));
        if (i % CALL_EVERY == CALL_EVERY - 1)
            replay_stream_send(&f->stream, TBD_MSG_SYSCALL, &call, sizeof(call));
    }
    replay_stream_send_pages(&f->stream, pages);
    replay_stream_end_window(&f->stream, BLOCKS);
}

struct order {
    struct fixture *fixture;
    uint32_t pages;
};

static void *run(void *argument)
{
    struct order *order = argument;

    produce(order->fixture, order->pages);
    return NULL;
}

/* ---- the driver ---- */

/* The process runs, and all that it sends is taken.  `most` NULL: as much as it likes. */
static void collect(struct fixture *f, struct tbd_operand_area *area, uint32_t pages,
                    const struct tbd_gather_most *most)
{
    struct order order = { f, pages };
    enum tbd_status status = TBD_NOTFOUND;
    pthread_t thread;

    f->stream.ring.area = area ? tbd_ring_area(&f->stream.ring, tbd_area_index(area)) : 0;
    tbd_consumer_area(f->stream.consumer, area ? tbd_area_index(area) : TBD_NO_AREA);
    tbd_ring_start(&f->stream.ring, &f->stream.thread, 0, TBD_TIME_NEVER);
    assert_int_equal(tbd_gather_begin(f->gather, f->stream.consumer, area, 0, 7), TBD_OK);
    if (most)
        tbd_gather_expect(f->gather, most);
    assert_int_equal(pthread_create(&thread, NULL, run, &order), 0);
    while (status == TBD_NOTFOUND) {
        status = tbd_gather_take(f->gather, NULL);
        if (status == TBD_NOTFOUND)
            tbd_consumer_wait(f->stream.consumer, 100);
    }
    assert_int_equal(status, TBD_OK);
    pthread_join(thread, NULL);
}

static struct tbd_window *replay(struct fixture *f, struct tbd_operand_area *area, uint32_t pages)
{
    struct tbd_window *window;

    collect(f, area, pages, NULL);
    assert_int_equal(tbd_gather_finish(f->gather, &window, NULL), TBD_OK);
    return window;
}

static void check(const struct tbd_window *window, uint32_t pages)
{
    struct tbd_cursor cursor;
    uint32_t blocks = 0, calls = 0;

    replay_stream_check(window, BLOCKS, CALLS, pages);
    tbd_cursor_first(window, &cursor);
    do {
        if (cursor.kind == TBD_AT_BLOCK) {
            for (size_t at = 0; at < RECORD_BYTES; at += sizeof(blocks))
                assert_memory_equal(cursor.record + at, &blocks, sizeof(blocks));
            blocks++;
        }
        if (cursor.kind == TBD_AT_MESSAGE) {
            struct tbd_msg_syscall call;

            memcpy(&call, cursor.message + 1, sizeof(call));
            assert_int_equal(call.result, (calls + 1) * CALL_EVERY - 1);
            calls++;
        }
    } while (tbd_cursor_next(&cursor));
    assert_int_equal(blocks, BLOCKS);
    assert_int_equal(calls, CALLS);
}

/* ---- tests ---- */

static void operands_may_come_in_their_chunks(void **state)
{
    struct fixture *f = *state;
    struct tbd_window *window = replay(f, NULL, 3);

    check(window, 3);
    tbd_window_free(window);
}

static void operands_stay_in_the_area_where_they_came(void **state)
{
    struct fixture *f = *state;
    struct tbd_operand_area *area = tbd_area_take(f->areas);
    const uint8_t *bytes = tbd_area_bytes(area);
    struct tbd_window *window = replay(f, area, 3);

    assert_ptr_equal(window->operands, bytes);
    check(window, 3);
    tbd_window_free(window);
}

static void a_window_larger_than_its_area_comes_whole(void **state)
{
    struct fixture *f = *state;
    struct tbd_operand_area *area = tbd_area_take(f->areas);
    const uint8_t *bytes = tbd_area_bytes(area);
    struct tbd_window *window = replay(f, area, 1000);

    assert_ptr_not_equal(window->operands, bytes);
    check(window, 1000);
    area = tbd_area_take(f->areas); /* it was given back */
    assert_ptr_equal(tbd_area_bytes(area), bytes);
    tbd_area_give(area);
    tbd_window_free(window);
}

static void an_area_that_comes_back_has_nothing_of_the_window_before(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 4; i++) {
        struct tbd_operand_area *area = tbd_area_take(f->areas);
        struct tbd_window *window = replay(f, area, i * 2);

        check(window, i * 2);
        assert_int_equal(window->operands[0], 0);
        tbd_window_free(window);
        memset((void *)tbd_ring_area(&f->stream.ring, 0), 0x5a, TBD_PAGE_SIZE);
    }
}

static void a_process_gone_astray_cannot_change_a_message_afterwards(void **state)
{
    struct fixture *f = *state;
    struct tbd_window *window = replay(f, tbd_area_take(f->areas), 0);
    uint64_t area = f->stream.ring.area;

    for (uint32_t i = 0; i < CALLS; i++) {
        const struct tbd_message *message = window->log[i].message;
        size_t at = (size_t)((const uint8_t *)message - window->operands);
        struct tbd_message head;

        memset((void *)(area + at), 0xff, sizeof(head));
        memcpy(&head, message, sizeof(head));
        assert_int_equal(head.bytes, sizeof(struct tbd_msg_syscall));
    }
    tbd_window_free(window);
}

static void more_than_play_had_is_a_divergence(void **state)
{
    const struct tbd_gather_most had = { .events = CALLS,
                                         .event_bytes = CALLS * sizeof(struct tbd_msg_syscall),
                                         .pages = 2 };
    struct fixture *f = *state;

    for (int i = 0; i < 4; i++) {
        struct tbd_gather_most most = had;
        struct tbd_window *window;

        most.events -= i == 1;
        most.event_bytes -= i == 2;
        most.pages -= i == 3;
        collect(f, tbd_area_take(f->areas), 2, &most);
        assert_int_equal(tbd_gather_finish(f->gather, &window, NULL), i ? TBD_DIVERGED : TBD_OK);
        assert_int_equal(window->complete, i == 0);
        assert_int_equal(window->log_count, i == 1 || i == 2 ? CALLS - 1 : CALLS);
        tbd_window_free(window);
    }
}

static void loads_of_special_instructions_are_checked(void **state)
{
    const struct {
        struct tbd_msg_read read;
        size_t most;
        bool is_good;
    } cases[] = {
        { { 0x500000, 8 }, 1, true },          { { TBD_USER_END - 8, 8 }, 1, true },
        { { 0x500000, 8 }, 0, false },         { { 0x500000, 0 }, 1, false },
        { { TBD_USER_END - 8, 9 }, 1, false }, { { 0x500000, UINT64_MAX }, 1, false },
        { { TBD_USER_END, 1 }, 1, false },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tbd_gather_most most = { SIZE_MAX, SIZE_MAX, cases[i].most, SIZE_MAX, SIZE_MAX };
        struct tbd_window *window;

        f->read = cases[i].read;
        collect(f, tbd_area_take(f->areas), 0, &most);
        assert_int_equal(tbd_gather_finish(f->gather, &window, NULL),
                         cases[i].is_good ? TBD_OK : TBD_DIVERGED);
        assert_int_equal(window->complete, cases[i].is_good);
        if (cases[i].is_good)
            assert_int_equal(window->log_count, CALLS); /* loads are in no log */
        tbd_window_free(window);
    }
}

static void windows_outlive_the_process_and_areas_are_lent_once(void **state)
{
    struct fixture *f = *state;
    struct tbd_operand_area *one = tbd_area_take(f->areas);
    struct tbd_window *window = replay(f, one, 1);
    struct tbd_operand_area *two = tbd_area_take(f->areas);

    assert_non_null(two);
    assert_ptr_not_equal(two, one);
    assert_null(tbd_area_take(f->areas));
    tbd_area_give(two);
    tbd_gather_forget(f->gather);
    tbd_areas_free(f->areas);
    f->areas = NULL;
    tbd_consumer_free(f->stream.consumer);
    f->stream.consumer = NULL;
    assert_int_equal(window->operands[0], 0);
    assert_int_equal(window->operands[RECORD_BYTES], 1);
    tbd_window_free(window);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(operands_may_come_in_their_chunks),
        TEST(operands_stay_in_the_area_where_they_came),
        TEST(a_window_larger_than_its_area_comes_whole),
        TEST(an_area_that_comes_back_has_nothing_of_the_window_before),
        TEST(a_process_gone_astray_cannot_change_a_message_afterwards),
        TEST(more_than_play_had_is_a_divergence),
        TEST(loads_of_special_instructions_are_checked),
        TEST(windows_outlive_the_process_and_areas_are_lent_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
