// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: stream_maker.c organizer_run.c
/* Streams that only count blocks (count=later): the organizer makes uncounted windows of them, whose
 * lists leave nothing out, and believes no count that cannot be. */
#include "format/reading/window_read.h"
#include "format/reading/trace_keys.h"

#include "organizer_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE 3u /* the one that the windows modify */

static void pass(struct sim *s, uint32_t blocks, uint32_t first, uint32_t last)
{
    struct tbd_msg_passed passed = { .blocks = blocks, .first = first, .last = last };

    maker_message(s->maker, TBD_MSG_PASSED, &passed, sizeof(passed));
    s->maker->time += blocks;
}

static void begin(struct run *run, struct sim *s, struct maker *m)
{
    maker_open(m, 0);
    m->head->flags |= TBD_STREAM_ONLY_COUNTS;
    run_start(run, m, 2, TBD_ORGANIZE_LEAN_NEVER);
    sim_start(s, m, 7);
}

static struct tbd_trace *end(struct run *run, struct sim *s)
{
    sim_end(s);
    run_finish(run);
    return run_open_latest();
}

static void check_lists(struct tbd_trace *trace, uint32_t index, const struct sim *s)
{
    uint64_t page = SIM_BASE + PAGE * 4096ull;
    struct tbd_word_summary word;
    struct tbd_block_summary block;

    for (uint64_t at = page - 8; at <= page + 4096; at += 8)
        assert_int_equal(tbd_trace_find_word(trace, index, at, &word),
                         at >= page && at < page + 4096 ? TBD_OK : TBD_NOTFOUND);
    for (uint32_t i = 0; i < SIM_BLOCKS; i++)
        assert_int_equal(tbd_trace_find_block(trace, index, s->ids[i], &block), TBD_OK);
}

static void check_keys(struct tbd_trace *trace)
{
    const struct tbd_keys *keys;
    uint64_t page = SIM_BASE / 4096 + PAGE;

    assert_int_equal(tbd_trace_segment_count(trace), 1);
    keys = tbd_trace_segment(trace, 0);
    assert_non_null(keys);
    assert_int_equal(
        tbd_keys_range(keys, tbd_key(TBD_KEY_ALL_BLOCKS, 0), tbd_key(TBD_KEY_ALL_BLOCKS, 0)), 3);
    assert_int_equal(
        tbd_keys_range(keys, tbd_key(TBD_KEY_ALL_WORDS, page), tbd_key(TBD_KEY_ALL_WORDS, page)),
        3);
    assert_int_equal(tbd_keys_range(keys, tbd_key(TBD_KEY_ALL_WORDS, page + 1),
                                    tbd_key(TBD_KEY_ALL_WORDS, UINT32_MAX)),
                     0);
}

static void windows_have_times_and_lists_of_all_that_may_be(void **state)
{
    static struct sim s;
    struct maker m;
    struct run run;
    struct tbd_trace *trace;

    (void)state;
    begin(&run, &s, &m);
    for (uint32_t w = 0; w < 2; w++) {
        pass(&s, 70000 + w, s.ids[0], s.ids[1]);
        pass(&s, 5, s.ids[2], s.ids[2]);
        s.mapped[PAGE] = s.known[PAGE] = s.dirty[PAGE] = true;
        sim_end_window(&s);
    }
    trace = end(&run, &s);
    assert_true(tbd_trace_info(trace)->counts_later);
    assert_int_equal(tbd_trace_window_count(trace), 2);
    for (uint32_t w = 0; w < 2; w++) {
        const struct tbd_window_summary *summary = tbd_trace_window(trace, w);

        assert_true(summary->is_uncounted && summary->complete);
        assert_int_equal(summary->level, TBD_LEVEL_BITS);
        assert_int_equal(summary->first_time, w * 70005u);
        assert_int_equal(summary->blocks, 70005 + w);
        assert_int_equal(summary->stores + summary->calls + summary->returns, 0);
        check_lists(trace, w, &s);
    }
    check_keys(trace);
    tbd_trace_close(trace);
    maker_close(&m);
    sim_free(&s);
}

/* The window ends before such a count, and the trace says so. */
static void impossible_counts_are_damage(void **state)
{
    static const uint32_t wrong[][3] = {
        { 0, 1, 1 }, { 9, 0, 1 }, { 9, 1, 0 }, { 9, 4000, 1 }, { 9, 1, 4000 }, { UINT32_MAX, 1, 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        static struct sim s;
        struct maker m;
        struct run run;
        struct tbd_trace *trace;

        begin(&run, &s, &m);
        pass(&s, 10, s.ids[0], s.ids[0]);
        pass(&s, wrong[i][0], wrong[i][1], wrong[i][2]);
        sim_end_window(&s);
        sim_end(&s);
        pthread_join(run.thread, NULL);
        assert_int_equal(run.status, TBD_CORRUPT);
        trace = run_open_latest();
        assert_int_equal(tbd_trace_info(trace)->blocks, 10);
        assert_int_equal(tbd_trace_info(trace)->note_count, 1);
        assert_non_null(strstr(tbd_trace_note(trace, 0), "the stream is damaged"));
        assert_false(tbd_trace_window(trace, 0)->complete);
        tbd_trace_close(trace);
        maker_close(&m);
        sim_free(&s);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_have_times_and_lists_of_all_that_may_be),
        cmocka_unit_test(impossible_counts_are_damage),
    };

    return cmocka_run_group_tests(tests, run_make_root, run_remove_root);
}
