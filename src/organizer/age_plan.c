// SPDX-License-Identifier: MIT
/* age_plan.c - which change of a growing trace is next
 *
 * Only the sizes of the windows at each level decide which change is next.  Limits by number come
 * first.  Over budget, the level that exceeds its share most (events have half of the budget,
 * counts and bits a quarter each) loses something, its oldest window first.  At level 1, up to
 * eight windows of about the same length become one: windows get longer the older they are, and
 * each is rewritten only when its length at least doubles.  While both counts and bits exceed their
 * shares (always, once a long run has filled its budget), 8 to 32 windows with counts become one
 * window of bits at once: their pages, most of them equal, are packed once, not once per window and
 * again for the merge.  Where only merging a long window with short ones would save space, counts
 * are given up first, however few are left.  If nothing else can be given up, the oldest windows
 * are dropped: the budget comes first.  Windows of native play are dropped at once (`only_drops`): each has stops of
 * its own, and what it gives up otherwise is decided when they are counted. */
#include "organizer/age_private.h"

#include "base/clock.h"

#define MERGE_COUNT 8u
/* More than two windows merge at once only if they need about this much memory or less. */
#define MERGE_MEMORY (1ull << 30)
/* Growth by merging, in 1/16: a merged window is at least 7/4 times as long as its longest part,
 * unless nothing else saves space. */
#define GROWTH_UNIT  16u
#define GROWTH_LEAST (GROWTH_UNIT * 7 / 4)
/* Windows with counts that become one at once, at most: merging keeps all of them in memory. */
#define COUNTED_MOST 32u
/* Files being written may reserve this part of a budget at most: where they would need more,
 * windows are written one at a time. */
#define RESERVE_SHARE 4u
/* The newest windows are asked about most, and `tbdq` begins with them. */
#define NEWEST 2u
/* The index over windows may take this part of a budget; beyond it, its oldest files are deleted,
 * as the TOCs say the same. */
#define KEYS_SHARE 8u

/* Bytes that the ager writes before it deletes their source: a window that replaces others, or the
 * new index. */
static uint64_t change_bytes(const struct tbd_ager *ager)
{
    uint64_t index = tbd_writer_index_bytes(ager->writer);
    uint64_t bytes = ager->largest > ager->largest_change ? ager->largest : ager->largest_change;

    return bytes > index ? bytes : index;
}

/* AGE-4: bytes reserved if `more` windows are written besides those being written now. */
static uint64_t needed_bytes(const struct tbd_ager *ager, uint32_t more)
{
    return (ager->writing + more) * ager->largest + change_bytes(ager);
}

/* The ager frees this much before a window has to wait for it. */
static uint64_t reserved_bytes(const struct tbd_ager *ager, uint64_t limit)
{
    uint64_t bytes = needed_bytes(ager, 2);

    return bytes < limit / RESERVE_SHARE ? bytes : limit / RESERVE_SHARE;
}

static bool is_over(const struct tbd_ager *ager, uint64_t limit)
{
    return limit && tbd_ager_total_bytes(ager) + reserved_bytes(ager, limit) > limit;
}

static bool is_over_budget(const struct tbd_ager *ager)
{
    return is_over(ager, ager->limits.budget);
}

static bool is_over_keep(const struct tbd_ager *ager)
{
    return is_over(ager, ager->limits.keep_bytes);
}

/* Would the trace exceed a limit with all files that are being written, and `more` windows? */
bool tbd_ager_is_full(const struct tbd_ager *ager, uint32_t more)
{
    uint64_t budget = ager->limits.budget, keep = ager->limits.keep_bytes;
    uint64_t bytes = tbd_ager_total_bytes(ager) + needed_bytes(ager, more);

    return (budget && bytes > budget) || (keep && bytes > keep);
}

/* First window of this level that may be changed, and that is not among the newest `spared`. */
static bool find_oldest(const struct tbd_ager *ager, enum tbd_level level, uint32_t spared,
                        struct tbd_age_plan *out)
{
    for (size_t i = 0; i + spared < ager->count; i++) {
        if (ager->windows[i].disk.level == level && !ager->windows[i].stays) {
            out->first = (uint32_t)i;
            return true;
        }
    }
    return false;
}

static bool plan_by_number(const struct tbd_ager *ager, struct tbd_age_plan *out)
{
    const struct tbd_age_limits *limits = &ager->limits;

    if (limits->level3 && find_oldest(ager, 3, limits->level3, out))
        out->action = TBD_AGE_EVENTS;
    else if (limits->level2 && limits->level3 &&
             find_oldest(ager, 2, limits->level3 + limits->level2, out))
        out->action = TBD_AGE_COUNTS;
    return out->action != TBD_AGE_NOTHING;
}

/* Memory to merge a window: its pages, and its words three times (merge_summaries.c). */
static uint64_t memory_of(const struct tbd_disk_window *window)
{
    return window->pages * 4096 + window->words * 3 * sizeof(struct tbd_word_summary);
}

/* By which factor windows get longer when they merge: the larger, the less often each is
 * rewritten. */
static uint64_t growth_of(uint64_t blocks, uint64_t longest)
{
    return blocks * GROWTH_UNIT / (longest ? longest : 1);
}

/* The neighbours with bits whose merging gains the largest growth, `least` or more, without getting
 * too long; of equals the oldest.  If a long window merged with each short one after it, it would
 * be rewritten all the time. */
static bool find_merge(const struct tbd_ager *ager, uint64_t least, uint64_t most,
                       struct tbd_age_plan *out)
{
    uint64_t best = least - 1;

    for (uint32_t first = 0; first < ager->count; first++) {
        uint64_t blocks = 0, longest = 0, memory = 0;

        for (uint32_t i = first; i < ager->count && i - first < MERGE_COUNT; i++) {
            const struct tbd_aged_window *window = &ager->windows[i];

            blocks += window->disk.blocks;
            memory += memory_of(&window->disk);
            if (window->disk.level != TBD_LEVEL_BITS || window->stays || blocks > most ||
                (i > first + 1 && memory > MERGE_MEMORY))
                break;
            longest = window->disk.blocks > longest ? window->disk.blocks : longest;
            if (i == first || growth_of(blocks, longest) <= best)
                continue;
            best = growth_of(blocks, longest);
            *out = (struct tbd_age_plan){ .action = TBD_AGE_MERGE,
                                          .first = first,
                                          .count = i - first + 1 };
        }
    }
    return best >= least;
}

/* The oldest windows that have counts, a quarter of them at once: eight at least. */
static bool plan_merge_counted(const struct tbd_ager *ager, struct tbd_age_plan *out)
{
    uint32_t wanted = ager->levels[TBD_LEVEL_COUNTS].count / 4;
    struct tbd_age_plan oldest = { 0 };
    uint64_t blocks = 0;
    uint32_t run = 0;

    wanted = wanted < MERGE_COUNT ? MERGE_COUNT : wanted > COUNTED_MOST ? COUNTED_MOST : wanted;
    if (!find_oldest(ager, TBD_LEVEL_COUNTS, 0, &oldest))
        return false;
    for (size_t i = oldest.first; i < ager->count && run < wanted; i++, run++) {
        blocks += ager->windows[i].disk.blocks;
        if (ager->windows[i].disk.level != TBD_LEVEL_COUNTS || ager->windows[i].stays ||
            blocks > TBD_MERGED_BLOCKS)
            break;
    }
    if (run < MERGE_COUNT)
        return false;
    *out = (struct tbd_age_plan){ .action = TBD_AGE_MERGE, .first = oldest.first, .count = run };
    return true;
}

/* Windows at level 1, or about to be, merge: first those that save the most space for the least
 * work. */
static bool plan_merge(const struct tbd_ager *ager, struct tbd_age_plan *out)
{
    return find_merge(ager, 4 * GROWTH_UNIT, TBD_MERGED_BLOCKS, out) ||
           (ager->levels[TBD_LEVEL_COUNTS].count >= 2 * COUNTED_MOST &&
            plan_merge_counted(ager, out)) ||
           find_merge(ager, GROWTH_LEAST, TBD_MERGED_BLOCKS, out) ||
           find_merge(ager, GROWTH_LEAST, TBD_MERGED_BLOCKS_MOST, out) ||
           plan_merge_counted(ager, out);
}

static bool plan_level(const struct tbd_ager *ager, enum tbd_level level, struct tbd_age_plan *out)
{
    if (level == TBD_LEVEL_BITS)
        return plan_merge(ager, out);
    if (!find_oldest(ager, level, level == TBD_LEVEL_EVENTS ? NEWEST : 0, out))
        return false;
    out->action = level == TBD_LEVEL_EVENTS ? TBD_AGE_EVENTS : TBD_AGE_COUNTS;
    return true;
}

static bool plan_drop(const struct tbd_ager *ager, uint64_t bytes, struct tbd_age_plan *out)
{
    uint64_t dropped = 0;
    uint32_t count = 0;

    while (count + 1 < ager->count && dropped < bytes)
        dropped += ager->windows[count++].bytes;
    out->action = count ? TBD_AGE_DROP : TBD_AGE_NOTHING;
    out->first = count;
    return count;
}

static bool plan_by_budget(const struct tbd_ager *ager, struct tbd_age_plan *out)
{
    static const unsigned shares[TBD_AGED_LEVELS] = {
        [TBD_LEVEL_BITS] = 4, [TBD_LEVEL_COUNTS] = 4, [TBD_LEVEL_EVENTS] = 2
    };
    uint64_t fixed = tbd_ager_fixed_bytes(ager);
    uint64_t available = ager->limits.budget > fixed ? ager->limits.budget - fixed : 0;

    if (!is_over_budget(ager))
        return false;
    if (ager->key_files > 1 && ager->keys > ager->limits.budget / KEYS_SHARE) {
        out->action = TBD_AGE_KEYS;
        return true;
    }
    if (ager->levels[TBD_LEVEL_EVENTS].bytes <= available / shares[TBD_LEVEL_EVENTS] &&
        ager->levels[TBD_LEVEL_COUNTS].bytes > available / shares[TBD_LEVEL_COUNTS] &&
        ager->levels[TBD_LEVEL_BITS].bytes > available / shares[TBD_LEVEL_BITS] &&
        plan_merge_counted(ager, out))
        return true;
    for (enum tbd_level level = TBD_LEVEL_EVENTS; level; level--)
        if (ager->levels[level].bytes > available / shares[level] && plan_level(ager, level, out))
            return true;
    for (enum tbd_level level = TBD_LEVEL_EVENTS; level; level--)
        if (plan_level(ager, level, out))
            return true;
    return find_merge(ager, GROWTH_UNIT, TBD_MERGED_BLOCKS_MOST, out) ||
           plan_drop(ager, ager->limits.budget / 16, out);
}

uint64_t tbd_age_now(void)
{
    return tbd_clock_ns() / 1000000000u;
}

/* Each drop writes an image, so it drops a good part of all windows at once. */
static bool plan_drop_beyond(const struct tbd_ager *ager, uint64_t limit, struct tbd_age_plan *out)
{
    return plan_drop(
        ager, tbd_ager_total_bytes(ager) + reserved_bytes(ager, limit) - limit + limit / 8, out);
}

static bool plan_keep(const struct tbd_ager *ager, struct tbd_age_plan *out)
{
    const struct tbd_age_limits *limits = &ager->limits;
    uint64_t now = limits->keep_seconds ? tbd_age_now() : 0;
    uint32_t old = 0;

    if (is_over_keep(ager))
        return plan_drop_beyond(ager, limits->keep_bytes, out);
    if (!limits->keep_seconds || !ager->count ||
        now - ager->windows[0].ended <= limits->keep_seconds + limits->keep_seconds / 8)
        return false;
    while (old + 1 < ager->count && now - ager->windows[old].ended > limits->keep_seconds)
        old++;
    out->action = old ? TBD_AGE_DROP : TBD_AGE_NOTHING;
    out->first = old;
    return old;
}

static bool plan_change(const struct tbd_ager *ager, struct tbd_age_plan *out)
{
    if (plan_keep(ager, out))
        return true;
    if (ager->limits.only_drops)
        return is_over_budget(ager) && plan_drop_beyond(ager, ager->limits.budget, out);
    return plan_by_number(ager, out) || plan_by_budget(ager, out);
}

struct tbd_age_plan tbd_ager_make_plan(const struct tbd_ager *ager)
{
    struct tbd_age_plan plan = { 0 };

    if (ager->is_stuck || ager->has_stopped)
        return plan;
    if (plan_change(ager, &plan))
        return plan;
    plan = (struct tbd_age_plan){ 0 };
    if (ager->count && tbd_writer_bytes(ager->writer) >
                           ager->index_bytes + ager->index_bytes / 2 + ager->limits.index_slack)
        plan.action = TBD_AGE_SHORTEN;
    return plan;
}
