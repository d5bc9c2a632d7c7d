// SPDX-License-Identifier: MIT
/* build_finish.c - makes the window from what was collected: log, pages, registers, summaries */
#include "organizer/build_private.h"

#include "format/files/codec.h"
#include "format/files/numbers.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <string.h>

bool tbd_build_adopt(struct work *w, void *memory)
{
    return !memory || tbd_window_adopt(w->window, memory);
}

static bool finish_log(struct work *w)
{
    bool good;

    for (size_t i = 0; i < w->log_count; i++)
        w->log[i].message = (const void *)(w->operands + w->log_offsets[i]);
    w->window->log = w->log;
    w->window->log_count = w->log_count;
    good = tbd_build_adopt(w, w->log);
    w->log = NULL;
    w->window->stamps = w->stamps;
    w->window->stamp_count = w->stamp_count;
    good = tbd_build_adopt(w, w->stamps) && good;
    w->stamps = NULL;
    w->window->opened = w->opened.bytes;
    w->window->opened_bytes = w->opened.used;
    good = tbd_build_adopt(w, w->opened.bytes) && good;
    w->opened = (struct tbd_buffer){ .bytes = NULL };
    return good;
}

static struct tbd_page_contents contents_of(const struct tbd_page_note *note)
{
    return (struct tbd_page_contents){ .address = note->address,
                                       .time = note->time,
                                       .order = note->order,
                                       .bytes = note->bytes,
                                       .packed = note->packed,
                                       .packed_bytes = note->packed_bytes,
                                       .is_difference = note->is_difference };
}

/* The page messages that `wanted` picks, in the order in which they came. */
static struct tbd_page_contents *
pick_pages(struct work *w, bool (*wanted)(const struct tbd_page_note *), size_t *out_count)
{
    struct tbd_page_contents *pages;
    size_t count = 0;

    for (size_t i = 0; i < w->page_count; i++)
        count += wanted(&w->pages[i]);
    pages = tbd_window_memory(w->window, count * sizeof(*pages));
    if (!pages)
        return NULL;
    *out_count = 0;
    for (size_t i = 0; i < w->page_count; i++)
        if (wanted(&w->pages[i]))
            pages[(*out_count)++] = contents_of(&w->pages[i]);
    return pages;
}

static struct tbd_page_contents *
sorted_pages(struct work *w, bool (*wanted)(const struct tbd_page_note *), size_t *out_count)
{
    struct tbd_page_contents *pages = pick_pages(w, wanted, out_count);

    if (pages)
        tbd_page_contents_sort(pages, *out_count);
    return pages;
}

static bool is_dirty(const struct tbd_page_note *note)
{
    return note->at_end && note->flags & TBD_PAGE_DIRTY;
}

static bool is_gone(const struct tbd_page_note *note)
{
    return !note->at_end && note->flags & TBD_PAGE_DIRTY;
}

static bool is_image(const struct tbd_page_note *note)
{
    return note->flags & TBD_PAGE_IMAGE;
}

/* ---- summaries ---- */

/* Ids, each of them once, in ascending order: a bit for each.  False without memory. */
static bool sort_ids(uint32_t *ids, size_t count)
{
    uint32_t highest = 0;
    uint64_t *bits;
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        highest = ids[i] > highest ? ids[i] : highest;
    bits = calloc(highest / 64 + 1, sizeof(*bits));
    if (!bits)
        return false;
    for (size_t i = 0; i < count; i++)
        bits[ids[i] / 64] |= UINT64_C(1) << ids[i] % 64;
    for (uint32_t word = 0; word <= highest / 64; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1)
            ids[n++] = word * 64 + (uint32_t)__builtin_ctzll(left);
    free(bits);
    return true;
}

static bool finish_words(struct work *w)
{
    struct tbd_shadow *shadow = &w->builder->shadow;
    size_t count = shadow->word_count;
    struct tbd_word_summary *words = tbd_window_memory(w->window, count * sizeof(*words));

    if (!words || shadow->failed)
        return false;
    tbd_shadow_drain(shadow, words);
    w->window->words = words;
    w->window->word_count = count;
    return true;
}

/* Sums over the blocks that were entered, and their summaries; clears what was counted. */
static bool finish_blocks(struct work *w)
{
    struct tbd_builder *b = w->builder;
    struct tbd_window_summary *counts = &w->out->counts;
    struct tbd_block_summary *blocks = tbd_window_memory(w->window, b->id_count * sizeof(*blocks));
    size_t n = 0;

    if (!blocks || !sort_ids(b->ids, b->id_count))
        return false;
    for (size_t i = 0; i < b->id_count; i++) {
        struct block_count *count = &b->counts[b->ids[i]];
        const struct tbd_block_plan *plan = &w->plans[count->plan];

        if (count->count)
            blocks[n++] = (struct tbd_block_summary){ .id = b->ids[i],
                                                      .count = count->count,
                                                      .last = count->last,
                                                      .enters = count->enters,
                                                      .last_enter = count->last_enter };
        counts->stores += (uint64_t)plan->store_count * count->count;
        counts->calls += (uint64_t)plan->calls * count->count;
        counts->returns += (uint64_t)plan->returns * count->count;
        *count = (struct block_count){ 0 };
    }
    b->id_count = 0;
    w->window->block_summaries = blocks;
    w->window->block_summary_count = n;
    return true;
}

static bool finish_reads(struct work *w)
{
    bool good;

    w->window->read_pages = w->reads;
    w->window->read_page_count = tbd_numbers_sort_unique(w->reads, w->read_count);
    good = tbd_build_adopt(w, w->reads);
    w->reads = NULL;
    return good;
}

/* Gives the turns to the product: they are needed when the window is joined to the one before. */
static bool finish_turns(struct work *w)
{
    bool good;

    w->turns.turns[w->turns.current].called = w->called;
    w->out->turns = w->turns;
    good = tbd_build_adopt(w, w->turns.turns);
    good = tbd_build_adopt(w, w->turns.opens) && good;
    w->turns = (struct tbd_turns){ 0 };
    return good;
}

static bool find_first_contents(struct work *w)
{
    struct tbd_page_notes notes = { w->pages, w->page_count, w->out->side, w->out->side_count,
                                    w->cuts,  w->cut_count,  w->index };

    return tbd_undo_first_contents(w->window, &notes);
}

/* ---- windows that are not counted ---- */

static size_t put_addresses(uint64_t *out, const struct tbd_page_contents *pages, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = pages[i].address;
    return count;
}

/* Nobody knows more than which pages were modified and which blocks there are: any of their words and any of these
 * blocks may be meant. */
static bool list_all(struct work *w)
{
    struct tbd_window *window = w->window;
    uint64_t *pages =
        tbd_window_memory(window, (window->dirty_count + window->gone_count) * sizeof(*pages));
    struct tbd_block_summary *blocks = tbd_window_memory(window, w->highest_id * sizeof(*blocks));
    size_t count;

    if (!pages || !blocks)
        return false;
    count = put_addresses(pages, window->dirty, window->dirty_count);
    count += put_addresses(pages + count, window->gone, window->gone_count);
    window->all_words = pages;
    window->all_words_count = tbd_numbers_sort_unique(pages, count);
    for (uint32_t id = 1; id <= w->highest_id; id++)
        blocks[id - 1] = (struct tbd_block_summary){ .id = id, .count = 1, .enters = 1 };
    window->block_summaries = blocks;
    window->block_summary_count = w->highest_id;
    window->level = TBD_LEVEL_BITS;
    window->has_events = false;
    w->out->counts.stores = w->out->counts.calls = w->out->counts.returns = 0;
    return true;
}

bool tbd_build_finish(struct work *w)
{
    struct tbd_window *window = w->window;
    bool good;

    tbd_build_close_gap(w);
    window->entries = w->entries;
    window->entry_count = w->kept_entries;
    window->operands = w->operands;
    window->operand_bytes = w->kept;
    window->blocks = w->time;
    window->has_events = true;
    if (w->out->damaged || w->cut)
        window->complete = false;
    good = finish_turns(w);
    good = good && tbd_end_regs_finish(&w->regs, w->window) && finish_log(w) && finish_reads(w) &&
           finish_words(w) && finish_blocks(w);
    if (good)
        window->dirty = sorted_pages(w, is_dirty, &window->dirty_count);
    if (good)
        window->gone = sorted_pages(w, is_gone, &window->gone_count);
    if (good)
        w->out->image = pick_pages(w, is_image, &w->out->image_count);
    good = good && window->dirty && window->gone && w->out->image && find_first_contents(w);
    if (good && window->is_uncounted)
        good = list_all(w);
    if (good)
        window->digest = tbd_window_digest(window);
    if (w->builder->codes)
        w->out->coded = &w->builder->coded;
    return good && !w->builder->coded.failed;
}
