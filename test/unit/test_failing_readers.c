// links: tbd_organizer tbd_format tbd_base
// sources: failing.c stream_maker.c organizer_run.c
// SPDX-License-Identifier: MIT
/* Readers of a trace, where memory runs out at each of their allocations. */
#include "failing.h"
#include "format/summaries/keys.h"
#include "format/coding/pick.h"
#include "format/pages/pages.h"
#include "format/reading/trace_keys.h"
#include "format/reading/window_read.h"
#include "organizer_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WINDOW_STEPS 40u
#define STEPS        (6 * WINDOW_STEPS)

static char path[FOLDER_BYTES + 16];

static void add_window(struct outcome *outcome, const struct tbd_window *window)
{
    OUTCOME_ADD(outcome, window->first_time);
    OUTCOME_ADD(outcome, window->blocks);
    OUTCOME_ADD(outcome, window->digest);
    OUTCOME_ADD(outcome, window->end_regs);
    outcome_add(outcome, window->entries, window->entry_count * sizeof(*window->entries));
    outcome_add(outcome, window->operands, window->operand_bytes);
    outcome_add(outcome, window->words, window->word_count * sizeof(*window->words));
    outcome_add(outcome, window->block_summaries,
                window->block_summary_count * sizeof(*window->block_summaries));
    for (size_t i = 0; i < window->dirty_count; i++)
        if (window->dirty[i].bytes)
            outcome_add(outcome, window->dirty[i].bytes, 4096);
}

/* What is read of an open trace. */
struct reading {
    const char *name;
    enum tbd_status (*read)(struct tbd_trace *trace, uint32_t window, struct outcome *outcome);
};

static enum tbd_status read_nothing(struct tbd_trace *trace, uint32_t window,
                                    struct outcome *outcome)
{
    const struct tbd_trace_info *info = tbd_trace_info(trace);

    (void)window;
    OUTCOME_ADD(outcome, info->blocks);
    OUTCOME_ADD(outcome, info->end.how);
    return TBD_OK;
}

static enum tbd_status take_window(enum tbd_status status, struct tbd_window *window,
                                   struct outcome *outcome)
{
    if (status == TBD_OK)
        add_window(outcome, window);
    tbd_window_free(window);
    return status;
}

static enum tbd_status read_window(struct tbd_trace *trace, uint32_t index, struct outcome *outcome)
{
    struct tbd_window *window = NULL;
    bool with_events = tbd_trace_window(trace, index)->level == TBD_LEVEL_EVENTS;
    enum tbd_status status = tbd_window_load(trace, index, with_events, &window, NULL);

    return take_window(status, window, outcome);
}

static enum tbd_status read_summaries(struct tbd_trace *trace, uint32_t index,
                                      struct outcome *outcome)
{
    struct tbd_window *window = NULL;
    enum tbd_status status = tbd_window_load_summaries(trace, index, &window, NULL);

    return take_window(status, window, outcome);
}

static enum tbd_status read_picked(struct tbd_trace *trace, uint32_t index, struct outcome *outcome)
{
    uint8_t blocks[SIM_BLOCKS + 2] = { 0 };
    struct tbd_pick pick = { .blocks = blocks, .block_count = sizeof(blocks) };
    struct tbd_picker *picker = tbd_picker_new(&pick);
    struct tbd_window *window = NULL;
    enum tbd_status status;

    if (!picker)
        return TBD_NOMEM;
    blocks[1] = blocks[2] = TBD_PICK_OPS;
    status = tbd_window_load_picked(trace, index, picker, &window, NULL);
    status = take_window(status, window, outcome);
    tbd_picker_free(picker);
    return status;
}

static enum tbd_status read_counts(struct tbd_trace *trace, uint32_t index, struct outcome *outcome)
{
    struct tbd_word_summary word = { 0 };
    struct tbd_block_summary block = { 0 };
    enum tbd_status status = TBD_OK;

    for (uint64_t at = SIM_BASE; status == TBD_OK && at < SIM_BASE + 4096; at += 8) {
        status = tbd_trace_find_word(trace, index, at, &word);
        if (status == TBD_OK)
            OUTCOME_ADD(outcome, word.count);
        if (status == TBD_NOTFOUND)
            status = TBD_OK;
    }
    for (uint32_t id = 1; status == TBD_OK && id <= SIM_BLOCKS; id++) {
        status = tbd_trace_find_block(trace, index, id, &block);
        if (status == TBD_OK)
            OUTCOME_ADD(outcome, block.count);
        if (status == TBD_NOTFOUND)
            status = TBD_OK;
    }
    return status;
}

static enum tbd_status read_pages(struct tbd_trace *trace, uint32_t index, struct outcome *outcome)
{
    enum tbd_status status = TBD_OK;
    uint8_t page[4096];

    for (unsigned i = 0; status == TBD_OK && i < SIM_PAGES; i++) {
        status = tbd_trace_page_at_start(trace, index, SIM_BASE + i * 4096ull, page);
        if (status == TBD_OK)
            outcome_add(outcome, page, sizeof(page));
        if (status == TBD_UNMAPPED || status == TBD_NOTKEPT || status == TBD_NOTFOUND)
            status = TBD_OK;
    }
    return status;
}

static enum tbd_status read_memory(struct tbd_trace *trace, uint32_t index, struct outcome *outcome)
{
    bool with_events = tbd_trace_window(trace, index)->level == TBD_LEVEL_EVENTS;
    struct tbd_position position = { tbd_trace_window(trace, index)->first_time + 11, 0 };
    struct tbd_window *window = NULL;
    enum tbd_status status = tbd_window_load(trace, index, with_events, &window, NULL);

    for (uint64_t at = SIM_BASE; status == TBD_OK && at < SIM_BASE + SIM_PAGES * 4096ull;
         at += 72) {
        uint64_t word = 0;

        status = with_events ? tbd_trace_read(trace, window, position, at, &word, 8)
                             : tbd_trace_read_untouched(trace, window, position, at, &word, 8);
        OUTCOME_ADD(outcome, word);
        if (status == TBD_UNMAPPED || status == TBD_NOTKEPT || status == TBD_NOTFOUND)
            status = TBD_OK;
    }
    tbd_window_free(window);
    return status;
}

static enum tbd_status read_regions(struct tbd_trace *trace, uint32_t index,
                                    struct outcome *outcome)
{
    const struct tbd_region *regions;
    size_t count = 0;
    enum tbd_status status = tbd_trace_regions(trace, index, &regions, &count, NULL);

    for (size_t i = 0; status == TBD_OK && i < count; i++) {
        OUTCOME_ADD(outcome, regions[i].start);
        OUTCOME_ADD(outcome, regions[i].end);
    }
    return status;
}

static enum tbd_status read_window_keys(struct tbd_trace *trace, uint32_t index,
                                        struct outcome *outcome)
{
    struct tbd_keys keys = { 0 };
    enum tbd_status status = tbd_window_keys(trace, index, &keys);

    for (uint32_t id = 1; status == TBD_OK && id <= SIM_BLOCKS; id++) {
        uint64_t key = tbd_key(TBD_KEY_BLOCK, id), mask = tbd_keys_range(&keys, key, key);

        OUTCOME_ADD(outcome, mask);
    }
    if (status == TBD_OK)
        tbd_keys_free(&keys);
    return status;
}

static const struct reading readings[] = {
    { "opening a trace", read_nothing },
    { "a window", read_window },
    { "a window's summaries", read_summaries },
    { "some blocks of a window", read_picked },
    { "counts", read_counts },
    { "pages at a window's start", read_pages },
    { "memory at a position", read_memory },
    { "mappings", read_regions },
    { "a window's keys", read_window_keys },
};

struct place {
    const struct reading *reading;
    uint32_t window;
};

static void run_reading(void *context, struct outcome *outcome)
{
    const struct place *place = context;
    struct tbd_trace *trace = NULL;

    outcome->status = tbd_trace_open(path, &trace, NULL);
    if (outcome->status == TBD_OK)
        outcome->status = place->reading->read(trace, place->window, outcome);
    tbd_trace_close(trace);
}

static void sweep_all(uint32_t window, enum tbd_level level)
{
    struct tbd_trace *trace = run_open_latest();

    assert_int_equal(tbd_trace_window(trace, window)->level, level);
    tbd_trace_close(trace);
    for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
        struct place place = { &readings[i], window };
        struct act act = { .name = readings[i].name, .run = run_reading, .context = &place };

        if (readings[i].read != read_picked ||
            level == TBD_LEVEL_EVENTS) /* others have no events to pick */
            failing_sweep(&act);
    }
}

static struct tbd_age_limits no_limits, levels = { .level3 = 2, .level2 = 2 };

static int record(void **state)
{
    static struct sim s;
    struct maker m;
    struct run run;

    maker_open(&m, 0);
    run_start_aged(&run, &m, *state);
    sim_run(&s, &m, 41, STEPS, WINDOW_STEPS);
    run_finish(&run);
    snprintf(path, sizeof(path), "%s/latest", run_root);
    maker_close(&m);
    sim_free(&s);
    return 0;
}

static void a_window_with_events(void **state)
{
    (void)state;
    sweep_all(3, TBD_LEVEL_EVENTS);
}

static void a_window_with_counts(void **state)
{
    (void)state;
    sweep_all(2, TBD_LEVEL_COUNTS);
}

static void a_window_with_bits(void **state)
{
    (void)state;
    sweep_all(1, TBD_LEVEL_BITS);
}

/* The index leaves nothing out: a segment for which there is no memory answers "perhaps". */
static void run_segments(void *context, struct outcome *outcome)
{
    struct tbd_trace *trace = NULL;
    uint64_t(*masks)[SIM_BLOCKS + 1] = context;

    outcome->status = tbd_trace_open(path, &trace, NULL);
    for (size_t i = 0; outcome->status == TBD_OK && i < tbd_trace_segment_count(trace) && i < 4;
         i++) {
        const struct tbd_keys *keys = tbd_trace_segment(trace, i);

        for (uint32_t id = 1; keys && id <= SIM_BLOCKS; id++) {
            uint64_t key = tbd_key(TBD_KEY_BLOCK, id), mask = tbd_keys_range(keys, key, key);

            if (!masks[i][id])
                masks[i][id] = mask | 1ull << 63;
            assert_int_equal(mask | 1ull << 63, masks[i][id]);
        }
    }
    tbd_trace_close(trace);
}

static void segments_of_keys(void **state)
{
    uint64_t masks[4][SIM_BLOCKS + 1] = {
        { 0 }
    }; /* with bit 63: as the first run, with memory, had it */
    struct act act = {
        .name = "segments of keys", .run = run_segments, .may_go_without = true, .context = masks
    };

    (void)state;
    failing_sweep(&act);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(a_window_with_events, record, NULL, &no_limits),
        cmocka_unit_test(segments_of_keys),
        cmocka_unit_test_prestate_setup_teardown(a_window_with_counts, record, NULL, &levels),
        cmocka_unit_test(a_window_with_bits),
    };

    return cmocka_run_group_tests(tests, run_make_root, run_remove_root);
}
