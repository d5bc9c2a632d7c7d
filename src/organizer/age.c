// SPDX-License-Identifier: MIT
/* age.c - what becomes of windows while a trace grows
 *
 * age_sizes.c knows what they take, age_plan.c decides which change is next, and this file makes it,
 * one a step.
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

#include "base/array.h"
#include "base/assert.h"
#include "format/merging/change.h"
#include "format/merging/index_write.h"
#include "organizer/age_private.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The index is rewritten when it has grown by half and this many bytes. */
#define INDEX_SLACK (256u << 10)

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

/* ---- everybody else ---- */

enum tbd_status tbd_ager_add_locked(struct tbd_ager *ager, const struct tbd_disk_window *window,
                                    bool can_change)
{
    struct tbd_aged_window aged = { .disk = *window,
                                    .bytes = tbd_age_window_bytes(window) +
                                             tbd_age_stops_bytes(ager, window),
                                    .span = 1,
                                    .stays = !can_change,
                                    .ended = tbd_age_now() };

    if (!tbd_array_grow(&ager->windows, ager->count, &ager->capacity, sizeof(aged)))
        return TBD_NOMEM;
    ager->windows[ager->count++] = aged;
    tbd_ager_count_window(ager, &aged, 1);
    TBD_INVARIANT("AGE-1", tbd_ager_windows_follow(ager));
    if (aged.bytes > ager->largest)
        ager->largest = aged.bytes;
    tbd_ager_measure_if_near_locked(ager);
    ager->writing--;
    ager->is_stuck = false;
    return TBD_OK;
}

bool tbd_ager_may_write_locked(struct tbd_ager *ager)
{
    if (tbd_ager_is_full(ager, 1) && (ager->writing || tbd_ager_is_due_locked(ager)))
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
    return !tbd_ager_is_full(ager, 0) || !tbd_ager_is_due_locked(ager);
}

void tbd_ager_add_keys_locked(struct tbd_ager *ager, uint64_t bytes)
{
    ager->keys_expected -= bytes;
    tbd_ager_measure_others_locked(ager);
}

void tbd_ager_stop_locked(struct tbd_ager *ager)
{
    ager->has_stopped = true;
}

bool tbd_ager_is_due_locked(const struct tbd_ager *ager)
{
    return tbd_ager_make_plan(ager).action != TBD_AGE_NOTHING;
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
        struct tbd_aged_window *window = &ager->windows[first];
        uint32_t count = change->disk.count;

        for (uint32_t i = 0; i < count; i++)
            tbd_ager_count_window(ager, &window[i], -1);
        window->ended = window[count - 1].ended;
        window->disk = change->disk.window;
        window->bytes = tbd_age_window_bytes(&window->disk);
        window->span = change->disk.span;
        tbd_ager_count_window(ager, window, 1);
        memmove(window + 1, window + count, (ager->count - first - count) * sizeof(*window));
        ager->count -= count - 1;
        TBD_INVARIANT("AGE-1", tbd_ager_windows_follow(ager));
    }
    pthread_mutex_unlock(ager->lock);
    return status;
}

static enum tbd_status drop_events(struct tbd_ager *ager, const struct tbd_age_plan *plan,
                                   const struct tbd_disk_window *window)
{
    struct tbd_change change = { 0 };
    enum tbd_status status = tbd_change_drop_events(window, &change);

    if (!status)
        status = commit(ager, plan->first, &change);
    tbd_change_free(&change);
    return status;
}

static enum tbd_status drop_counts(struct tbd_ager *ager, const struct tbd_age_plan *plan,
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

static enum tbd_status merge(struct tbd_ager *ager, const struct tbd_age_plan *plan,
                             const struct tbd_disk_window *window)
{
    struct tbd_change change = { 0 };
    uint32_t place;
    enum tbd_status status = see_windows(ager, window->window, plan->count, &place);

    if (!status)
        status = tbd_change_merge(ager->trace, ager->writer, place, plan->count, TBD_LEVEL_BITS,
                                  TBD_BRIEF_BLOCKS, &change, NULL);
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
            tbd_ager_count_window(ager, &ager->windows[i], -1);
        ager->count -= dropped;
        memmove(ager->windows, ager->windows + dropped, ager->count * sizeof(*ager->windows));
        TBD_INVARIANT("AGE-1", tbd_ager_windows_follow(ager));
        tbd_ager_measure_others_locked(ager);
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
    tbd_ager_measure_others_locked(ager);
    note_change(ager, ager->other - before);
    pthread_mutex_unlock(ager->lock);
}

static enum tbd_status drop(struct tbd_ager *ager, const struct tbd_age_plan *plan,
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
    tbd_ager_measure_others_locked(ager);
    ager->is_stuck |= ager->key_files >= files;
    pthread_mutex_unlock(ager->lock);
}

/* A window that cannot be changed stays; the trace is as good with it. */
static enum tbd_status settle(struct tbd_ager *ager, const struct tbd_age_plan *plan,
                              enum tbd_status status)
{
    if (!status || status == TBD_NOSPACE || status == TBD_NOMEM || status == TBD_IO)
        return status;
    pthread_mutex_lock(ager->lock);
    if (plan->action == TBD_AGE_EVENTS || plan->action == TBD_AGE_COUNTS ||
        plan->action == TBD_AGE_MERGE)
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
    struct tbd_age_plan plan;

    pthread_mutex_lock(ager->lock);
    plan = tbd_ager_make_plan(ager);
    if (plan.action != TBD_AGE_NOTHING && ager->count)
        window = ager->windows[plan.first].disk;
    pthread_mutex_unlock(ager->lock);
    switch (plan.action) {
    case TBD_AGE_NOTHING: break;
    case TBD_AGE_KEYS: drop_keys(ager); break;
    case TBD_AGE_EVENTS: status = drop_events(ager, &plan, &window); break;
    case TBD_AGE_COUNTS: status = drop_counts(ager, &plan, &window); break;
    case TBD_AGE_MERGE: status = merge(ager, &plan, &window); break;
    case TBD_AGE_DROP: status = drop(ager, &plan, &window); break;
    case TBD_AGE_SHORTEN: status = ager->count ? replace_index(ager, &window, 0) : TBD_OK; break;
    }
    return settle(ager, &plan, status);
}
