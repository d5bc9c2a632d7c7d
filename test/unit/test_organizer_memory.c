// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: stream_maker.c organizer_run.c
/* Streams of a simulated program through the organizer into a trace, and back: the trace's memory
 * is the program's. */
#include "format/pages/pages.h"

#include "format/pages/page_base.h"
#include "format/window/window_make.h"
#include "organizer_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- memory: the model's stores are undone one by one ---- */

/* The whole window as its only slice (replay/slices.h): it knows what pages held when it began. */
static void make_slice(struct tbd_trace *trace, struct tbd_window *window)
{
    struct tbd_page_contents *start = tbd_window_memory(window, SIM_PAGES * sizeof(*start));
    uint8_t *bytes = tbd_window_memory(window, SIM_PAGES * 4096);

    assert_true(start && bytes);
    for (uint64_t page = 0; page < SIM_PAGES; page++, bytes += 4096) {
        uint64_t address = SIM_BASE + page * 4096;

        if (!tbd_trace_page_at_start(trace, window->index, address, bytes))
            start[window->start_count++] =
                (struct tbd_page_contents){ .address = address, .bytes = bytes };
    }
    window->start = start;
    window->is_slice = true;
}

static void check_memory(struct sim *s, struct tbd_trace *trace, struct tbd_position pos,
                         bool is_slice)
{
    uint32_t index = tbd_trace_window_of(trace, pos.time);
    struct tbd_window *window = run_load(trace, index);

    if (is_slice)
        make_slice(trace, window);
    for (int i = 0; i < 12; i++) {
        uint32_t page = (uint32_t)(sim_random(s) % SIM_PAGES);
        uint32_t offset = (uint32_t)(sim_random(s) % 4000);
        uint32_t bytes = 1 + (uint32_t)(sim_random(s) % 96);
        uint64_t address = SIM_BASE + page * 4096ull + offset;
        uint8_t got[96];
        enum tbd_status status = tbd_trace_read(trace, window, pos, address, got, bytes);

        if (!s->mapped[page]) {
            assert_int_equal(status, TBD_UNMAPPED);
            continue;
        }
        assert_int_equal(status, TBD_OK);
        if (memcmp(got, s->memory + page * 4096u + offset, bytes) != 0)
            print_message("at %llu+%u: page %u + %u, %u bytes\n", (unsigned long long)pos.time,
                          pos.offset, page, offset, bytes);
        assert_memory_equal(got, s->memory + page * 4096u + offset, bytes);
    }
    tbd_window_free(window);
}

static void memory_is_right_at_every_position_back_to_the_start(void **state)
{
    static struct sim s;
    struct maker m;
    struct tbd_trace *trace;

    (void)state;
    run_simulate(&s, &m, 7, 37, 900, 100);
    trace = run_open_latest();
    assert_int_equal(tbd_trace_info(trace)->blocks, 900);
    for (size_t i = s.store_count; i-- > 0;) {
        const struct sim_store *store = &s.stores[i];
        struct tbd_position pos = { store->time, store->insn == SIM_MESSAGE ? 7 : store->insn };

        memcpy(s.memory + (store->address - SIM_BASE),
               store->remap ? store->page : store->old_bytes, store->bytes);
        if (store->remap)
            s.mapped[(store->address - SIM_BASE) / 4096] = store->was_mapped;
        if (store->remap || sim_random(&s) % 8 == 0) {
            check_memory(&s, trace, pos, false);
            check_memory(&s, trace, pos, true);
        }
    }
    tbd_trace_close(trace);
    maker_close(&m);
    sim_free(&s);
}

static void pages_mapped_again_begin_with_zeroes(void **state)
{
    static struct sim s;
    struct maker m;
    struct tbd_trace *trace;
    unsigned checked = 0;

    (void)state;
    run_simulate(&s, &m, 11, 0, 1200, 64);
    trace = run_open_latest();
    for (size_t i = 0; i < s.store_count; i++) {
        struct tbd_position pos = { s.stores[i].time + 1, 0 };
        uint32_t index = tbd_trace_window_of(trace, pos.time);
        uint8_t page[4096], zero[4096] = { 0 };
        struct tbd_window *window;
        enum tbd_status status;

        if (!s.stores[i].remap || index == UINT32_MAX)
            continue;
        window = run_load(trace, index);
        status = tbd_trace_read(trace, window, pos, s.stores[i].address, page, sizeof(page));
        if (status == TBD_OK)
            assert_memory_equal(page, zero, sizeof(page));
        else
            assert_int_equal(status, TBD_UNMAPPED);
        checked += status == TBD_OK;
        tbd_window_free(window);
    }
    assert_true(checked > 20);
    tbd_trace_close(trace);
    maker_close(&m);
    sim_free(&s);
}

static void pages_at_window_starts_follow_from_the_windows_before(void **state)
{
    static struct sim s;
    struct maker m;
    struct tbd_trace *trace;

    (void)state;
    run_simulate(&s, &m, 5, 100, 600, 50);
    trace = run_open_latest();
    for (uint32_t w = 1; w < tbd_trace_window_count(trace); w++) {
        struct tbd_window *before = run_load(trace, w - 1);

        for (size_t i = 0; i < before->dirty_count; i++) {
            uint8_t page[4096];

            assert_int_equal(tbd_trace_page_at_start(trace, w, before->dirty[i].address, page),
                             TBD_OK);
            assert_memory_equal(page, before->dirty[i].bytes, 4096);
        }
        tbd_window_free(before);
    }
    tbd_trace_close(trace);
    maker_close(&m);
    sim_free(&s);
}

static void pages_that_stay_have_the_same_contents(void **state)
{
    static struct sim s;
    struct maker m;
    struct tbd_trace *trace;
    unsigned staying = 0;

    (void)state;
    run_simulate(&s, &m, 3, 0, 240, 3);
    trace = run_open_latest();
    for (uint32_t first = 0; first + 4 < tbd_trace_window_count(trace); first++)
        for (uint32_t i = 0; i < 3 * SIM_PAGES; i++) {
            uint64_t address = SIM_BASE + i % SIM_PAGES * 4096ull;
            uint32_t last = first + i / SIM_PAGES;
            uint8_t before[4096] = { 0 }, after[4096] = { 0 };

            if (!tbd_trace_page_stays(trace, first, last, address))
                continue;
            assert_int_equal(tbd_trace_page_at_start(trace, first, address, before),
                             tbd_trace_page_at_start(trace, last + 1, address, after));
            assert_memory_equal(before, after, sizeof(before));
            staying++;
        }
    assert_true(staying > 500);
    tbd_trace_close(trace);
    maker_close(&m);
    sim_free(&s);
}

/* The image has pages 0 to 5. */
static void pages_known_at_the_start_are_those_of_the_image(void **state)
{
    static struct sim s;
    struct maker m;
    struct tbd_trace *trace;
    uint64_t *pages;
    size_t count;

    (void)state;
    run_simulate(&s, &m, 3, 0, 240, 60);
    trace = run_open_latest();
    assert_int_equal(tbd_trace_known_pages(trace, 0, &pages, &count), TBD_OK);
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pages[i], SIM_BASE + i * 4096);
    free(pages);
    assert_int_equal(tbd_trace_known_pages(trace, 3, &pages, &count), TBD_OK);
    assert_true(count > 6); /* some are there twice */
    for (size_t i = 0; i < count; i++)
        assert_true(pages[i] % 4096 == 0 && pages[i] - SIM_BASE < SIM_PAGES * 4096ull);
    free(pages);
    tbd_trace_close(trace);
    maker_close(&m);
    sim_free(&s);
}

static void send_first(struct maker *m, const struct sim *s, uint32_t page)
{
    struct tbd_msg_page head = { SIM_BASE + page * 4096ull, TBD_PAGE_FIRST };
    uint8_t payload[sizeof(head) + 4096];

    memcpy(payload, &head, sizeof(head));
    memcpy(payload + sizeof(head), s->memory + page * 4096u, 4096);
    maker_message(m, TBD_MSG_PAGE, payload, sizeof(payload));
}

/* Block 1 has one store; the page was zero. */
static void enter_block_that_stores(struct maker *m, struct sim *s, uint32_t page)
{
    const struct tbd_op *op = &s->ops[1][0];
    uint64_t base = SIM_BASE + page * 4096ull + 64 - (uint64_t)op->add;
    uint8_t record[512] = { 0 };

    assert_int_equal(op->kind, TBD_OP_STORE);
    memcpy(record + op->base, &base, sizeof(base));
    memset(s->memory + page * 4096u + 64, 0xff, op->size);
    maker_enter(m, s->ids[1], record, s->defs[1].operand_bytes);
}

static const uint8_t *first_contents(const struct tbd_window *window, uint32_t page)
{
    for (size_t i = 0; i < window->first_count; i++)
        if (window->first[i].address == SIM_BASE + page * 4096ull && !window->first[i].time)
            return window->first[i].bytes;
    return NULL;
}

/* Killed in the middle of a fork: its contents are sent, and nothing follows. */
static void page_seen_last_had_other_contents_at_first(void **state)
{
    static const uint8_t zeros[4096];
    static struct sim s;
    struct maker m;
    struct run run;
    struct tbd_trace *trace;
    struct tbd_window *window;
    pid_t child;

    (void)state;
    maker_open(&m, 0);
    m.alone = true;
    sim_start(&s, &m, 57);
    enter_block_that_stores(&m, &s, 6);
    send_first(&m, &s, 6);
    child = fork();
    if (!child)
        _exit(0);
    waitpid(child, NULL, 0);
    run_start_of(&run, &m, child);
    run_finish(&run);
    trace = run_open_latest();
    assert_int_equal(tbd_trace_info(trace)->end.how, TBD_ENDED_KILLED);
    window = run_load(trace, 0);
    assert_non_null(first_contents(window, 6));
    assert_memory_equal(first_contents(window, 6), zeros, 4096);
    tbd_window_free(window);
    tbd_trace_close(trace);
    maker_close(&m);
    sim_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_right_at_every_position_back_to_the_start),
        cmocka_unit_test(pages_mapped_again_begin_with_zeroes),
        cmocka_unit_test(pages_at_window_starts_follow_from_the_windows_before),
        cmocka_unit_test(pages_that_stay_have_the_same_contents),
        cmocka_unit_test(pages_known_at_the_start_are_those_of_the_image),
        cmocka_unit_test(page_seen_last_had_other_contents_at_first),
    };

    return cmocka_run_group_tests(tests, run_make_root, run_remove_root);
}
