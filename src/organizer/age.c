// SPDX-License-Identifier: MIT
/* age.c - what becomes of windows while a trace grows
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
 * its own, and what it gives up otherwise is decided when they are counted.
 *
 * Invariants
 * AGE-1  `windows` are those of the index, in order; changed under the lock together with it.
 * AGE-2  A window only goes down. Where windows are born at level 2, or must stay as they are
 *     (`stays`), levels also rise with age. (not checked: test_age does)
 * AGE-3  Only the ager's thread changes the files of windows that are in the trace, and uses
 *     `trace`. (not checked: threads: tsan does)
 * AGE-4  Whoever may write a window or keys leaves space for one file of the ager: files on disk +
 *     files that others may write + the ager's file + this file <= limit. Where that is impossible
 *     (nothing is left to give up, or one window takes a good part of a limit), windows are written
 *     one at a time. The ager itself never waits, as its writing is what frees space: until it has
 *     deleted the old files the trace is larger by one file, and it exceeds a limit only by as much
 *     as that file is larger than all before it. (not checked: test_age does) */
#include "organizer/age.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/clock.h"
#include "format/files/file_names.h"
#include "format/merging/change.h"
#include "format/merging/index_write.h"
#include "format/merging/replayed_events.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MERGE_COUNT 8u
/* More than two windows merge at once only if they need about this much memory or less. */
#define MERGE_MEMORY (1ull << 30)
/* Growth by merging, in 1/16: a merged window is at least 7/4 times as long as its longest part,
 * unless nothing else saves space. */
#define GROWTH_UNIT  16u
#define GROWTH_LEAST (GROWTH_UNIT * 7 / 4)
/* Windows with counts that become one at once, at most: merging keeps all of them in memory. */
#define COUNTED_MOST 32u
/* A merged window consists almost only of modified pages, whose number hardly grows with its
 * length; but a question about a moment waits until the window is replayed up to it.  512 million
 * block entries are about a second natively, ten when nothing but a full replay will do (slice by
 * slice: replay/slices.h).  Windows get longer only if the budget cannot be met otherwise; event
 * times in a window have 32 bits. */
#define MERGED_BLOCKS      (512ull << 20)
#define MERGED_BLOCKS_MOST (1ull << 31)
/* Shorter ones are merged again before long. */
#define BRIEF_BLOCKS (MERGED_BLOCKS / 2)
/* Files being written may reserve this part of a budget at most: where they would need more,
 * windows are written one at a time. */
#define RESERVE_SHARE 4u
/* The newest windows are asked about most, and `tbdq` begins with them. */
#define NEWEST 2u
/* The index over windows may take this part of a budget; beyond it, its oldest files are deleted,
 * as the TOCs say the same. */
#define KEYS_SHARE 8u
/* Other files are measured again after this many windows, or when windows have taken this part of
 * the free space. */
#define MEASURE_WINDOWS 16u
#define MEASURE_SHARE   16u
/* The index is rewritten when it has grown by half and this many bytes. */
#define INDEX_SLACK (256u << 10)

struct aged {
    struct tbd_disk_window disk;
    uint64_t bytes; /* of its files */
    uint32_t span;
    bool stays;     /* cannot be lowered or merged */
    uint64_t ended; /* seconds */
};

#define LEVELS (TBD_LEVEL_EVENTS + 1)

struct level {
    uint64_t bytes;
    uint32_t count;
};

struct tbd_ager {
    struct tbd_age_limits limits;
    struct tbd_writer *writer;
    pthread_mutex_t *lock;
    struct aged *windows; /* owned */
    size_t count, capacity;
    struct level levels[LEVELS];
    uint64_t other; /* bytes of files that are neither windows nor growing */
    uint64_t keys;  /* of these, bytes of the index over windows */
    uint32_t key_files;
    /* bytes of `cache/`, or its share if that is larger: questions keep it below their share
     * themselves */
    uint64_t cache;
    /* bytes of key files that are being written, or wait for space */
    uint64_t keys_expected;
    uint64_t measured_bytes;   /* of windows, when other files were measured */
    uint32_t measured_windows; /* added since then */
    uint64_t largest;          /* the largest window so far */
    uint64_t largest_change;   /* the largest file that the ager has written */
    uint32_t writing;          /* windows whose files are being written */
    uint64_t index_bytes;      /* of all growing files, when the index was last rewritten */
    bool has_stopped;
    bool is_stuck;           /* over budget, and nothing can be done */
    struct tbd_trace *trace; /* owned; NULL, or opened after the last merge or drop */
};

enum action { NOTHING, KEYS, EVENTS, COUNTS, MERGE, DROP, SHORTEN };

struct plan {
    enum action action;
    uint32_t first;
    uint32_t count;
};

bool tbd_ager_is_needed(const struct tbd_age_limits *limits)
{
    return limits->budget || limits->level3 || limits->level2 || limits->keep_bytes ||
           limits->keep_seconds;
}

enum tbd_status tbd_ager_new(const struct tbd_age_limits *limits, struct tbd_writer *writer,
                             pthread_mutex_t *lock, struct tbd_ager **out)
{
    struct tbd_ager *ager = calloc(1, sizeof(*ager));

    *out = ager;
    if (!ager)
        return TBD_NOMEM;
    ager->limits = *limits;
    if (!ager->limits.index_slack)
        ager->limits.index_slack = INDEX_SLACK;
    ager->writer = writer;
    ager->lock = lock;
    return TBD_OK;
}

void tbd_ager_free(struct tbd_ager *ager)
{
    if (!ager)
        return;
    tbd_trace_close(ager->trace);
    free(ager->windows);
    free(ager);
}

/* ---- sizes ---- */

uint64_t tbd_age_bytes(const struct tbd_age_limits *limits)
{
    uint64_t budget = limits->budget, keep = limits->keep_bytes;

    return !budget || (keep && keep < budget) ? keep : budget;
}

static uint64_t bytes_of(const struct tbd_disk_window *window)
{
    return window->toc_bytes + window->trace_bytes + window->block_bytes;
}

/* Its stops, which are written before it is. */
static uint64_t stops_bytes(const struct tbd_ager *ager, const struct tbd_disk_window *window)
{
    struct stat status;
    char name[64];

    if (!ager->limits.only_drops)
        return 0;
    tbd_stops_file_name(window->window, name, sizeof(name));
    return fstatat(tbd_writer_dir(ager->writer), name, &status, AT_SYMLINK_NOFOLLOW)
               ? 0
               : (uint64_t)status.st_size;
}

static uint64_t folder_bytes(int of, const char *folder, uint32_t *out_files)
{
    struct dirent *entry;
    struct stat status;
    uint64_t bytes = 0;
    DIR *dir = tbd_dir_list(of, folder);

    while (dir && (entry = readdir(dir)))
        if (strcmp(entry->d_name, "index") != 0 && strcmp(entry->d_name, "blocks") != 0 &&
            !fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
            S_ISREG(status.st_mode)) {
            bytes += (uint64_t)status.st_size;
            ++*out_files;
        }
    if (dir)
        closedir(dir);
    return bytes;
}

static uint64_t fixed_bytes(const struct tbd_ager *ager)
{
    return ager->other + ager->cache + ager->keys_expected + tbd_writer_bytes(ager->writer);
}

static uint64_t window_bytes(const struct tbd_ager *ager)
{
    return ager->levels[TBD_LEVEL_BITS].bytes + ager->levels[TBD_LEVEL_COUNTS].bytes +
           ager->levels[TBD_LEVEL_EVENTS].bytes;
}

static uint64_t total_bytes(const struct tbd_ager *ager)
{
    return fixed_bytes(ager) + window_bytes(ager);
}

static void measure_others_locked(struct tbd_ager *ager)
{
    int dir = tbd_writer_dir(ager->writer);
    uint32_t files = 0;
    uint64_t limit = tbd_age_bytes(&ager->limits);
    uint64_t other = folder_bytes(dir, ".", &files) + folder_bytes(dir, "modules", &files);

    ager->key_files = 0;
    ager->keys = folder_bytes(dir, "keys", &ager->key_files);
    other += ager->keys;
    ager->other = other;
    ager->cache = folder_bytes(dir, "cache", &files);
    if (ager->cache < tbd_cache_share(limit))
        ager->cache = tbd_cache_share(limit);
    ager->measured_bytes = window_bytes(ager);
    ager->measured_windows = 0;
}

/* Is the limit far away, even if other files have grown as much as windows did? */
static bool is_far(const struct tbd_ager *ager, uint64_t limit)
{
    uint64_t total = total_bytes(ager), grown = window_bytes(ager) - ager->measured_bytes;

    return !limit || (total < limit && grown < (limit - total) / MEASURE_SHARE);
}

/* Measuring every file takes as long as writing a window, and everybody waits, as the lock is
 * taken. */
static void measure_if_near_locked(struct tbd_ager *ager)
{
    if (!ager->other || ++ager->measured_windows == MEASURE_WINDOWS ||
        window_bytes(ager) < ager->measured_bytes || !is_far(ager, ager->limits.budget) ||
        !is_far(ager, ager->limits.keep_bytes))
        measure_others_locked(ager);
}

static void count_window(struct tbd_ager *ager, const struct aged *window, int sign)
{
    struct level *level = &ager->levels[window->disk.level < LEVELS ? window->disk.level : 0];

    level->bytes += (uint64_t)sign * window->bytes;
    level->count += (uint32_t)sign;
}

/* Each window is counted at its level. */
static bool windows_follow(const struct tbd_ager *ager)
{
    uint64_t bytes = 0;
    uint32_t counts[4] = { 0 };

    for (size_t i = 0; i < ager->count; i++) {
        bytes += ager->windows[i].bytes;
        counts[ager->windows[i].disk.level & 3]++;
    }
    return bytes == window_bytes(ager) && counts[1] == ager->levels[1].count &&
           counts[2] == ager->levels[2].count && counts[3] == ager->levels[3].count;
}

/* ---- what is due ---- */

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
    return limit && total_bytes(ager) + reserved_bytes(ager, limit) > limit;
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
static bool is_full(const struct tbd_ager *ager, uint32_t more)
{
    uint64_t budget = ager->limits.budget, keep = ager->limits.keep_bytes;
    uint64_t bytes = total_bytes(ager) + needed_bytes(ager, more);

    return (budget && bytes > budget) || (keep && bytes > keep);
}

/* First window of this level that may be changed, and that is not among the newest `spared`. */
static bool find_oldest(const struct tbd_ager *ager, enum tbd_level level, uint32_t spared,
                        struct plan *out)
{
    for (size_t i = 0; i + spared < ager->count; i++) {
        if (ager->windows[i].disk.level == level && !ager->windows[i].stays) {
            out->first = (uint32_t)i;
            return true;
        }
    }
    return false;
}

static bool plan_by_number(const struct tbd_ager *ager, struct plan *out)
{
    const struct tbd_age_limits *limits = &ager->limits;

    if (limits->level3 && find_oldest(ager, 3, limits->level3, out))
        out->action = EVENTS;
    else if (limits->level2 && limits->level3 &&
             find_oldest(ager, 2, limits->level3 + limits->level2, out))
        out->action = COUNTS;
    return out->action != NOTHING;
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
static bool find_merge(const struct tbd_ager *ager, uint64_t least, uint64_t most, struct plan *out)
{
    uint64_t best = least - 1;

    for (uint32_t first = 0; first < ager->count; first++) {
        uint64_t blocks = 0, longest = 0, memory = 0;

        for (uint32_t i = first; i < ager->count && i - first < MERGE_COUNT; i++) {
            const struct aged *window = &ager->windows[i];

            blocks += window->disk.blocks;
            memory += memory_of(&window->disk);
            if (window->disk.level != TBD_LEVEL_BITS || window->stays || blocks > most ||
                (i > first + 1 && memory > MERGE_MEMORY))
                break;
            longest = window->disk.blocks > longest ? window->disk.blocks : longest;
            if (i == first || growth_of(blocks, longest) <= best)
                continue;
            best = growth_of(blocks, longest);
            *out = (struct plan){ .action = MERGE, .first = first, .count = i - first + 1 };
        }
    }
    return best >= least;
}

/* The oldest windows that have counts, a quarter of them at once: eight at least. */
static bool plan_merge_counted(const struct tbd_ager *ager, struct plan *out)
{
    uint32_t wanted = ager->levels[TBD_LEVEL_COUNTS].count / 4;
    struct plan oldest = { 0 };
    uint64_t blocks = 0;
    uint32_t run = 0;

    wanted = wanted < MERGE_COUNT ? MERGE_COUNT : wanted > COUNTED_MOST ? COUNTED_MOST : wanted;
    if (!find_oldest(ager, TBD_LEVEL_COUNTS, 0, &oldest))
        return false;
    for (size_t i = oldest.first; i < ager->count && run < wanted; i++, run++) {
        blocks += ager->windows[i].disk.blocks;
        if (ager->windows[i].disk.level != TBD_LEVEL_COUNTS || ager->windows[i].stays ||
            blocks > MERGED_BLOCKS)
            break;
    }
    if (run < MERGE_COUNT)
        return false;
    *out = (struct plan){ .action = MERGE, .first = oldest.first, .count = run };
    return true;
}

/* Windows at level 1, or about to be, merge: first those that save the most space for the least
 * work. */
static bool plan_merge(const struct tbd_ager *ager, struct plan *out)
{
    return find_merge(ager, 4 * GROWTH_UNIT, MERGED_BLOCKS, out) ||
           (ager->levels[TBD_LEVEL_COUNTS].count >= 2 * COUNTED_MOST &&
            plan_merge_counted(ager, out)) ||
           find_merge(ager, GROWTH_LEAST, MERGED_BLOCKS, out) ||
           find_merge(ager, GROWTH_LEAST, MERGED_BLOCKS_MOST, out) || plan_merge_counted(ager, out);
}

static bool plan_level(const struct tbd_ager *ager, enum tbd_level level, struct plan *out)
{
    if (level == TBD_LEVEL_BITS)
        return plan_merge(ager, out);
    if (!find_oldest(ager, level, level == TBD_LEVEL_EVENTS ? NEWEST : 0, out))
        return false;
    out->action = level == TBD_LEVEL_EVENTS ? EVENTS : COUNTS;
    return true;
}

static bool plan_drop(const struct tbd_ager *ager, uint64_t bytes, struct plan *out)
{
    uint64_t dropped = 0;
    uint32_t count = 0;

    while (count + 1 < ager->count && dropped < bytes)
        dropped += ager->windows[count++].bytes;
    out->action = count ? DROP : NOTHING;
    out->first = count;
    return count;
}

static bool plan_by_budget(const struct tbd_ager *ager, struct plan *out)
{
    static const unsigned shares[LEVELS] = {
        [TBD_LEVEL_BITS] = 4, [TBD_LEVEL_COUNTS] = 4, [TBD_LEVEL_EVENTS] = 2
    };
    uint64_t fixed = fixed_bytes(ager);
    uint64_t available = ager->limits.budget > fixed ? ager->limits.budget - fixed : 0;

    if (!is_over_budget(ager))
        return false;
    if (ager->key_files > 1 && ager->keys > ager->limits.budget / KEYS_SHARE) {
        out->action = KEYS;
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
    return find_merge(ager, GROWTH_UNIT, MERGED_BLOCKS_MOST, out) ||
           plan_drop(ager, ager->limits.budget / 16, out);
}

static uint64_t now_seconds(void)
{
    return tbd_clock_ns() / 1000000000u;
}

/* Each drop writes an image, so it drops a good part of all windows at once. */
static bool plan_drop_beyond(const struct tbd_ager *ager, uint64_t limit, struct plan *out)
{
    return plan_drop(ager, total_bytes(ager) + reserved_bytes(ager, limit) - limit + limit / 8,
                     out);
}

static bool plan_keep(const struct tbd_ager *ager, struct plan *out)
{
    const struct tbd_age_limits *limits = &ager->limits;
    uint64_t now = limits->keep_seconds ? now_seconds() : 0;
    uint32_t old = 0;

    if (is_over_keep(ager))
        return plan_drop_beyond(ager, limits->keep_bytes, out);
    if (!limits->keep_seconds || !ager->count ||
        now - ager->windows[0].ended <= limits->keep_seconds + limits->keep_seconds / 8)
        return false;
    while (old + 1 < ager->count && now - ager->windows[old].ended > limits->keep_seconds)
        old++;
    out->action = old ? DROP : NOTHING;
    out->first = old;
    return old;
}

static bool plan_change(const struct tbd_ager *ager, struct plan *out)
{
    if (plan_keep(ager, out))
        return true;
    if (ager->limits.only_drops)
        return is_over_budget(ager) && plan_drop_beyond(ager, ager->limits.budget, out);
    return plan_by_number(ager, out) || plan_by_budget(ager, out);
}

static struct plan make_plan(const struct tbd_ager *ager)
{
    struct plan plan = { 0 };

    if (ager->is_stuck || ager->has_stopped)
        return plan;
    if (plan_change(ager, &plan))
        return plan;
    plan = (struct plan){ 0 };
    if (ager->count && tbd_writer_bytes(ager->writer) >
                           ager->index_bytes + ager->index_bytes / 2 + ager->limits.index_slack)
        plan.action = SHORTEN;
    return plan;
}

/* ---- everybody else ---- */

enum tbd_status tbd_ager_add_locked(struct tbd_ager *ager, const struct tbd_disk_window *window,
                                    bool can_change)
{
    struct aged aged = { .disk = *window,
                         .bytes = bytes_of(window) + stops_bytes(ager, window),
                         .span = 1,
                         .stays = !can_change,
                         .ended = now_seconds() };

    if (!tbd_array_grow(&ager->windows, ager->count, &ager->capacity, sizeof(aged)))
        return TBD_NOMEM;
    ager->windows[ager->count++] = aged;
    count_window(ager, &aged, 1);
    TBD_INVARIANT("AGE-1", windows_follow(ager));
    if (aged.bytes > ager->largest)
        ager->largest = aged.bytes;
    measure_if_near_locked(ager);
    ager->writing--;
    ager->is_stuck = false;
    return TBD_OK;
}

bool tbd_ager_may_write_locked(struct tbd_ager *ager)
{
    if (is_full(ager, 1) && (ager->writing || tbd_ager_is_due_locked(ager)))
        return false;
    ager->writing++;
    return true;
}

void tbd_ager_take_back_locked(struct tbd_ager *ager)
{
    ager->writing--;
}

void tbd_ager_expect_keys_locked(struct tbd_ager *ager, uint64_t bytes)
{
    ager->keys_expected += bytes;
}

bool tbd_ager_may_write_keys_locked(const struct tbd_ager *ager)
{
    return !is_full(ager, 0) || !tbd_ager_is_due_locked(ager);
}

void tbd_ager_add_keys_locked(struct tbd_ager *ager, uint64_t bytes)
{
    ager->keys_expected -= bytes;
    measure_others_locked(ager);
}

void tbd_ager_stop_locked(struct tbd_ager *ager)
{
    ager->has_stopped = true;
}

bool tbd_ager_is_due_locked(const struct tbd_ager *ager)
{
    return make_plan(ager).action != NOTHING;
}

/* ---- steps ---- */

static void forget_trace(struct tbd_ager *ager)
{
    tbd_trace_close(ager->trace);
    ager->trace = NULL;
}

/* The trace as it is on disk, with this window.  `*place`: where. */
static enum tbd_status see_window(struct tbd_ager *ager, uint32_t number, uint32_t *place)
{
    enum tbd_status status;

    *place = ager->trace ? tbd_trace_window_with(ager->trace, number) : UINT32_MAX;
    if (*place != UINT32_MAX)
        return TBD_OK;
    forget_trace(ager);
    status = tbd_trace_open(tbd_writer_path(ager->writer), &ager->trace, NULL);
    if (status)
        return status;
    *place = tbd_trace_window_with(ager->trace, number);
    return *place == UINT32_MAX ? TBD_NOWINDOW : TBD_OK;
}

/* The same with the `count` - 1 windows after it.  They may have been lowered since the handle was
 * opened: their TOCs tell. */
static enum tbd_status see_windows(struct tbd_ager *ager, uint32_t number, uint32_t count,
                                   uint32_t *place)
{
    enum tbd_status status = see_window(ager, number, place);

    if (status || *place + count <= tbd_trace_window_count(ager->trace))
        return status;
    forget_trace(ager);
    return see_window(ager, number, place);
}

static void note_change(struct tbd_ager *ager, uint64_t bytes)
{
    if (bytes > ager->largest_change)
        ager->largest_change = bytes;
}

/* Changes the index and `windows` together (AGE-1). */
static enum tbd_status commit(struct tbd_ager *ager, uint32_t first,
                              const struct tbd_change *change)
{
    enum tbd_status status;

    pthread_mutex_lock(ager->lock);
    status = tbd_change_commit(ager->writer, change);
    note_change(ager, change->disk.window.toc_bytes);
    if (!status) {
        struct aged *window = &ager->windows[first];
        uint32_t count = change->disk.count;

        for (uint32_t i = 0; i < count; i++)
            count_window(ager, &window[i], -1);
        window->ended = window[count - 1].ended;
        window->disk = change->disk.window;
        window->bytes = bytes_of(&window->disk);
        window->span = change->disk.span;
        count_window(ager, window, 1);
        memmove(window + 1, window + count, (ager->count - first - count) * sizeof(*window));
        ager->count -= count - 1;
        TBD_INVARIANT("AGE-1", windows_follow(ager));
    }
    pthread_mutex_unlock(ager->lock);
    return status;
}

static enum tbd_status drop_events(struct tbd_ager *ager, const struct plan *plan,
                                   const struct tbd_disk_window *window)
{
    struct tbd_change change = { 0 };
    enum tbd_status status = tbd_change_drop_events(window, &change);

    if (!status)
        status = commit(ager, plan->first, &change);
    tbd_change_free(&change);
    return status;
}

static enum tbd_status drop_counts(struct tbd_ager *ager, const struct plan *plan,
                                   const struct tbd_disk_window *window)
{
    struct tbd_change change = { 0 };
    uint32_t place;
    enum tbd_status status = see_window(ager, window->window, &place);

    if (!status)
        status = tbd_change_lower(ager->trace, ager->writer, place, TBD_LEVEL_BITS, &change, NULL);
    if (!status) /* the handle was opened before its events were dropped */
        status = commit(ager, plan->first, &change);
    tbd_change_free(&change);
    return status;
}

static enum tbd_status merge(struct tbd_ager *ager, const struct plan *plan,
                             const struct tbd_disk_window *window)
{
    struct tbd_change change = { 0 };
    uint32_t place;
    enum tbd_status status = see_windows(ager, window->window, plan->count, &place);

    if (!status)
        status = tbd_change_merge(ager->trace, ager->writer, place, plan->count, TBD_LEVEL_BITS,
                                  BRIEF_BLOCKS, &change, NULL);
    if (!status)
        status = commit(ager, plan->first, &change);
    tbd_change_free(&change);
    forget_trace(ager);
    return status;
}

/* The index is read and written under the lock. */
static enum tbd_status replace_index(struct tbd_ager *ager, const struct tbd_disk_window *window,
                                     uint32_t dropped)
{
    uint32_t place;
    enum tbd_status status;

    pthread_mutex_lock(ager->lock);
    forget_trace(ager);
    status = see_window(ager, window->window, &place);
    if (!status)
        status = dropped ? tbd_drop_commit(ager->trace, ager->writer, place)
                         : tbd_index_shorten(ager->trace, ager->writer);
    if (!status) {
        for (uint32_t i = 0; i < dropped; i++)
            count_window(ager, &ager->windows[i], -1);
        ager->count -= dropped;
        memmove(ager->windows, ager->windows + dropped, ager->count * sizeof(*ager->windows));
        TBD_INVARIANT("AGE-1", windows_follow(ager));
        measure_others_locked(ager);
        ager->index_bytes = tbd_writer_bytes(ager->writer);
    }
    pthread_mutex_unlock(ager->lock);
    forget_trace(ager);
    return status;
}

/* The image counts while the files that it replaces still exist. */
static void measure_image(struct tbd_ager *ager)
{
    uint64_t before;

    pthread_mutex_lock(ager->lock);
    before = ager->other;
    measure_others_locked(ager);
    note_change(ager, ager->other - before);
    pthread_mutex_unlock(ager->lock);
}

static enum tbd_status drop(struct tbd_ager *ager, const struct plan *plan,
                            const struct tbd_disk_window *window)
{
    uint32_t place;
    enum tbd_status status;

    forget_trace(ager);
    status = see_window(ager, window->window, &place);
    if (!status)
        status = tbd_drop_prepare(ager->trace, ager->writer, place);
    measure_image(ager);
    return status ? status : replace_index(ager, window, plan->first);
}

/* The oldest file of the index over windows, by its name: it begins with the time. */
static void drop_keys(struct tbd_ager *ager)
{
    char name[320], oldest[300] = "";
    struct dirent *entry;
    uint32_t files;
    DIR *dir = tbd_dir_list(tbd_writer_dir(ager->writer), "keys");

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && (!*oldest || strcmp(entry->d_name, oldest) < 0))
            snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
    if (dir)
        closedir(dir);
    snprintf(name, sizeof(name), "keys/%s", oldest);
    pthread_mutex_lock(ager->lock);
    files = ager->key_files;
    if (*oldest)
        tbd_writer_remove(ager->writer, name);
    measure_others_locked(ager);
    ager->is_stuck |= ager->key_files >= files;
    pthread_mutex_unlock(ager->lock);
}

/* A window that cannot be changed stays; the trace is as good with it. */
static enum tbd_status settle(struct tbd_ager *ager, const struct plan *plan,
                              enum tbd_status status)
{
    if (!status || status == TBD_NOSPACE || status == TBD_NOMEM || status == TBD_IO)
        return status;
    pthread_mutex_lock(ager->lock);
    if (plan->action == EVENTS || plan->action == COUNTS || plan->action == MERGE)
        ager->windows[plan->first].stays = true;
    else
        ager->is_stuck = true;
    pthread_mutex_unlock(ager->lock);
    return TBD_OK;
}

enum tbd_status tbd_ager_step(struct tbd_ager *ager)
{
    struct tbd_disk_window window = { 0 };
    enum tbd_status status = TBD_OK;
    struct plan plan;

    pthread_mutex_lock(ager->lock);
    plan = make_plan(ager);
    if (plan.action != NOTHING && ager->count)
        window = ager->windows[plan.first].disk;
    pthread_mutex_unlock(ager->lock);
    switch (plan.action) {
    case NOTHING: break;
    case KEYS: drop_keys(ager); break;
    case EVENTS: status = drop_events(ager, &plan, &window); break;
    case COUNTS: status = drop_counts(ager, &plan, &window); break;
    case MERGE: status = merge(ager, &plan, &window); break;
    case DROP: status = drop(ager, &plan, &window); break;
    case SHORTEN: status = ager->count ? replace_index(ager, &window, 0) : TBD_OK; break;
    }
    return settle(ager, &plan, status);
}
