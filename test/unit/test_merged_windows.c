// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: stream_maker.c organizer_run.c
/* Windows merged into one are the window that the same program makes when its windows are longer
 * from the start. */
#include "format/merging/merge.h"
#include "organizer_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PARTS_MOST 5u
#define WINDOWS    4u
#define STEPS      90u /* of a part */

static void assert_same_pages(const struct tbd_page_contents *a, size_t a_count,
                              const struct tbd_page_contents *b, size_t b_count)
{
    assert_int_equal(a_count, b_count);
    for (size_t i = 0; i < a_count; i++) {
        assert_int_equal(a[i].address, b[i].address);
        assert_memory_equal(a[i].bytes, b[i].bytes, 4096);
    }
}

static void assert_same_moments(const struct tbd_page_contents *a,
                                const struct tbd_page_contents *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(a[i].time, b[i].time);
        assert_int_equal(a[i].order, b[i].order);
    }
}

static void assert_same_summaries(const struct tbd_window *merged, const struct tbd_window *whole)
{
    bool has_counts = merged->level > TBD_LEVEL_BITS;

    assert_int_equal(merged->word_count, whole->word_count);
    for (size_t i = 0; i < whole->word_count; i++) {
        assert_int_equal(merged->words[i].word, whole->words[i].word);
        assert_int_equal(merged->words[i].count, has_counts ? whole->words[i].count : 1);
        assert_int_equal(merged->words[i].last, has_counts ? whole->words[i].last : 0);
    }
    assert_int_equal(merged->block_summary_count, whole->block_summary_count);
    for (size_t i = 0; i < whole->block_summary_count; i++) {
        const struct tbd_block_summary *a = &merged->block_summaries[i];
        const struct tbd_block_summary *b = &whole->block_summaries[i];

        assert_int_equal(a->id, b->id);
        assert_int_equal(a->count, has_counts ? b->count : 1);
        assert_int_equal(a->enters, has_counts ? b->enters : b->enters != 0);
        assert_int_equal(a->last, has_counts ? b->last : 0);
        assert_int_equal(a->last_enter, has_counts ? b->last_enter : 0);
    }
}

static void assert_same_logs(const struct tbd_window *merged, const struct tbd_window *whole)
{
    assert_int_equal(merged->log_count, whole->log_count);
    for (size_t i = 0; i < whole->log_count; i++) {
        struct tbd_message head;

        memcpy(&head, whole->log[i].message, sizeof(head));
        assert_int_equal(merged->log[i].time, whole->log[i].time);
        assert_memory_equal(merged->log[i].message, whole->log[i].message,
                            sizeof(head) + head.bytes);
    }
}

static void assert_same(const struct tbd_window *merged, const struct tbd_window *whole)
{
    assert_int_equal(merged->first_time, whole->first_time);
    assert_int_equal(merged->blocks, whole->blocks);
    assert_int_equal(merged->complete, whole->complete);
    assert_int_equal(merged->digest, whole->digest);
    assert_same_pages(merged->dirty, merged->dirty_count, whole->dirty, whole->dirty_count);
    assert_same_pages(merged->gone, merged->gone_count, whole->gone, whole->gone_count);
    assert_same_pages(merged->first, merged->first_count, whole->first, whole->first_count);
    assert_same_moments(merged->gone, whole->gone, whole->gone_count);
    assert_same_moments(merged->first, whole->first, whole->first_count);
    assert_same_logs(merged, whole);
    assert_same_summaries(merged, whole);
}

static struct tbd_trace *make_trace(uint64_t seed, uint32_t parts, uint32_t window_parts)
{
    static struct sim s;
    struct maker m;

    run_simulate(&s, &m, seed, 0, WINDOWS * parts * STEPS, window_parts * STEPS);
    maker_close(&m);
    sim_free(&s);
    return run_open_latest();
}

static void check_merged(uint64_t seed, uint32_t parts)
{
    struct tbd_trace *long_trace = make_trace(seed, parts, parts);
    struct tbd_trace *trace = make_trace(seed, parts, 1);
    struct tbd_error why;

    assert_int_equal(tbd_trace_window_count(long_trace), WINDOWS);
    assert_int_equal(tbd_trace_window_count(trace), WINDOWS * parts);
    for (uint32_t w = 0; w < WINDOWS; w++)
        for (enum tbd_level level = TBD_LEVEL_BITS; level <= TBD_LEVEL_COUNTS; level++) {
            struct tbd_disk_shift shifts[PARTS_MOST];
            struct tbd_window *whole = run_load_as(long_trace, w, false), *merged;

            assert_int_equal(
                tbd_merge_windows(trace, w * parts, parts, level, &merged, shifts, &why), TBD_OK);
            assert_int_equal(merged->level, level);
            for (uint32_t i = 0; i < parts; i++)
                assert_int_equal(shifts[i].time, i * STEPS);
            assert_same(merged, whole);
            tbd_window_free(merged);
            tbd_window_free(whole);
        }
    tbd_trace_close(long_trace);
    tbd_trace_close(trace);
}

static void merged_windows_are_those_of_a_program_with_longer_windows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++)
        for (uint32_t parts = 1; parts <= PARTS_MOST; parts++)
            check_merged(seed, parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_windows_are_those_of_a_program_with_longer_windows),
    };

    return cmocka_run_group_tests(tests, run_make_root, run_remove_root);
}
