// SPDX-License-Identifier: MIT
/* count_stops.c - see count_stops.h
 *
 *   workers:    take the next window, replay it (stops_window.h), put its events into its place (stops_workers.c)
 *   caller:     takes windows in order; puts play's messages and the replay's block counts together (stops_put.c, feed.h)
 *   organizer:  in a thread, makes a trace of them, as in play with count=later
 *
 * Play's events are those of the replay; what is not an event (mappings, pages, registers) is play's.
 * A window that does not replay is not counted (stops_lost.h); those around it are.  If the first windows were
 * dropped, the new trace begins as the old one does: with the same window, time, mappings, threads and memory.
 *
 * COUNT_STOPS-1  The new trace takes the old one's place, in one step, when it is complete. (not checked: renameat2
 *     exchanges the two)
 * COUNT_STOPS-2  Whoever writes to the folder of the new trace has the claim. (not checked: count_in() is called with it) */
#include "replay/native/count_stops.h"

#include "replay/native/count_stops_private.h"

#include "base/clock.h"
#include "format/files/file.h"
#include "format/files/trace_remove.h"
#include "format/reading/window_read.h"
#include "format/trace/trace_index.h"
#include "organizer/organize.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_SUFFIX ".counted"
#define NEW_NAME   "trace"
#define TELL_NS    100000000u

/* ---- windows ---- */

/* Who waits is helped, if that is possible, else given way to. */
static bool is_given_way(const struct stops_counting *c)
{
    return c->how->is_aside && !c->how->start && !c->is_live &&
           tbd_stops_claim_is_wanted(&c->claim);
}

static bool goes_on(const struct stops_counting *c)
{
    const struct tbd_count_stops *how = c->how;

    return (!how->goes_on || how->goes_on(how->context)) && !is_given_way(c);
}

static void tell_who_waits(struct stops_counting *c)
{
    uint64_t now = tbd_clock_ns();

    if (!c->is_hurried || now - c->told_ns < TELL_NS)
        return;
    c->told_ns = now;
    tbd_stops_claim_tell(&c->claim, c->next, c->windows);
}

/* Those that there are by now. */
static enum tbd_status put_some(struct stops_counting *c, struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;

    while (c->next < c->windows && !status) {
        uint32_t index = c->next;

        if (!goes_on(c))
            return TBD_INTERRUPTED;
        status = index >= c->from && index < c->to ? tbd_stops_put_replayed(c, index, why)
                                                   : tbd_stops_put_stops(c, index, NULL, why);
        c->next++;
        c->next_number++;
        if (!status && c->how->progress)
            c->how->progress(c->how->context, index + 1, c->windows);
        tell_who_waits(c);
    }
    return status;
}

static enum tbd_status put_windows(struct stops_counting *c, struct tbd_error *why)
{
    enum tbd_status status = c->first ? tbd_stops_put_beginning(c, why) : TBD_OK;

    if (!status)
        status = put_some(c, why);
    while (!status && c->is_live) {
        status = tbd_stops_follow(c, why);
        if (!status)
            status = put_some(c, why);
    }
    return status ? status : tbd_stops_put_end(c, why);
}

/* ---- threads ---- */

static void *organize(void *argument)
{
    struct stops_counting *c = argument;
    struct tbd_organize_options options = { .stream_fd = tbd_feed_fd(c->feed),
                                            .root = c->root,
                                            .program = NEW_NAME,
                                            .modules = &c->modules,
                                            .after = c->first ? c->begun : NULL,
                                            .first = c->first,
                                            .age.budget = c->budget,
                                            .lean = TBD_ORGANIZE_LEAN_AUTO };
    struct tbd_error why = { 0 };

    c->organized = tbd_organize(&options, &why);
    return NULL;
}

static enum tbd_status run_workers(struct stops_counting *c, struct tbd_error *why)
{
    enum tbd_status status = tbd_stops_workers_start(c) ? put_windows(c, why) : TBD_NOMEM;

    tbd_stops_workers_end(c);
    return status;
}

/* ---- the whole ---- */

static enum tbd_status look_at_base(struct stops_counting *c, struct tbd_error *why)
{
    const struct tbd_disk_base *base = &tbd_trace_index(c->trace)->base;

    if (!base->window)
        return TBD_OK;
    c->turns.dropped = base->first_time;
    return tbd_window_load(c->trace, 0, false, &c->first, why);
}

static uint64_t first_number(const struct tbd_trace *trace)
{
    return tbd_trace_window_count(trace) ? tbd_trace_window(trace, 0)->number
                                         : tbd_trace_index(trace)->base.window;
}

static enum tbd_status set_up(struct stops_counting *c, struct tbd_error *why)
{
    const struct tbd_trace_info *info = tbd_trace_info(c->trace);
    enum tbd_status status;

    c->begun = c->trace;
    tbd_stops_take_windows(c);
    c->to = c->how->part ? c->how->part->to : c->windows;
    c->from = c->how->part ? c->how->part->from : 0;
    if (c->from > c->to || c->to > c->windows)
        return tbd_error_set(why, TBD_NOWINDOW, c->dir.path, 0, "it has no such windows");
    c->taken = c->written = c->from;
    c->next_number = first_number(c->trace);
    /* what is kept of it holds for the counted trace; one of which only some windows are counted is for one question */
    c->budget = c->how->part ? 0 : info->budget;
    c->ahead = 2 * tbd_stops_workers_most(c->how);
    c->places = calloc(c->ahead, sizeof(*c->places));
    c->blocks.table = tbd_block_table_new();
    if (!c->places || !c->blocks.table || !tbd_stops_find_modules(c))
        return TBD_NOMEM;
    status = tbd_replayer_new(c->trace, tbd_stops_workers_most(c->how), &c->replayer, why);
    if (!status)
        status = look_at_base(c, why);
    if (!status)
        status = tbd_feed_new(&(struct tbd_feed_start){ .window_blocks = info->window_blocks,
                                                        .hook_set = info->hook_set,
                                                        .first_time = c->turns.dropped,
                                                        .table = c->blocks.table },
                              &c->feed);
    if (status)
        return status;
    c->has_organizer = !pthread_create(&c->organizer, NULL, organize, c);
    return c->has_organizer ? TBD_OK : TBD_SYSTEM;
}

/* Nobody waits any more: a worker may still be at a window that another one has replayed. */
static void tear_down(struct stops_counting *c)
{
    tbd_stops_workers_join(c);
    tbd_stops_free_left(c);
    for (uint32_t i = 0; c->places && i < c->ahead; i++)
        tbd_buffer_free(&c->places[i].events);
    tbd_replayer_free(c->replayer);
    tbd_feed_free(c->feed);
    tbd_block_table_release(c->blocks.table);
    tbd_stops_turns_free(&c->turns);
    tbd_window_free(c->first);
    free(c->places);
    tbd_stops_free_modules(c);
    if (c->begun != c->trace)
        tbd_trace_close(c->begun);
    tbd_trace_close(c->trace);
}

/* A program that executed another one ended so, which no message says. */
static void end_stream(struct stops_counting *c)
{
    tbd_feed_end(c->feed, tbd_trace_info(c->trace)->end.how == TBD_ENDED_EXEC);
    pthread_join(c->organizer, NULL);
}

static enum tbd_status count(struct stops_counting *c, struct tbd_error *why)
{
    enum tbd_status status = set_up(c, why);

    if (!status)
        status = run_workers(c, why);
    if (c->has_organizer)
        end_stream(c);
    if (!status && c->organized)
        status =
            tbd_error_set(why, c->organized, c->root, 0, "the counted trace cannot be written");
    return status;
}

/* What the user has left in the trace's folder stays there. */
static void keep_texts(const struct stops_counting *c, const char *made)
{
    static const char *const names[] = { "position", "frame", "bookmarks" };
    int to = tbd_dir_open(made);

    for (size_t i = 0; to >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
        (void)!linkat(c->dir.fd, names[i], to, names[i], 0);
    if (to >= 0)
        close(to);
}

/* COUNT_STOPS-1. */
static enum tbd_status replace(const struct stops_counting *c, const char *made,
                               struct tbd_error *why)
{
    if (renameat2(AT_FDCWD, made, AT_FDCWD, c->how->path, RENAME_EXCHANGE))
        return tbd_error_set(why, TBD_IO, made, 0, "cannot take the trace's place: %s",
                             strerror(errno));
    return TBD_OK;
}

static void remove_root(const struct stops_counting *c)
{
    char copy[4096], name[4096];
    int above;

    snprintf(copy, sizeof(copy), "%s", c->root);
    snprintf(name, sizeof(name), "%s", c->root);
    above = tbd_dir_open(dirname(copy));
    if (above < 0)
        return;
    (void)!tbd_trace_remove(above, basename(name));
    close(above);
}

static enum tbd_status count_in(struct stops_counting *c, struct tbd_error *why)
{
    char made[8192];
    enum tbd_status status;

    c->dir = (struct tbd_dir){ c->claim.trace, c->how->path };
    remove_root(c);
    snprintf(made, sizeof(made), "%s/" NEW_NAME "-1", c->root);
    status = count(c, why);
    if (!status) {
        keep_texts(c, made);
        status = replace(c, made, why);
    }
    remove_root(c);
    return status;
}

static enum tbd_status is_recorded(const char *path, struct tbd_error *why)
{
    return tbd_error_set(why, TBD_BUSY, path, 0, "it is still being recorded");
}

static enum tbd_status open_uncounted(struct stops_counting *c, bool *out_is, struct tbd_error *why)
{
    enum tbd_status status = tbd_trace_open(c->how->path, &c->trace, why);
    const struct tbd_trace_info *info;

    if (status)
        return status;
    info = tbd_trace_info(c->trace);
    *out_is = info->counts_stops && (tbd_trace_window_count(c->trace) || c->how->follows);
    return info->counts_stops && !info->finished && !c->how->follows
               ? is_recorded(c->how->path, why)
               : TBD_OK;
}

/* Whoever counts it while it is recorded has the claim for as long. */
static enum tbd_status look_whether_recorded(const char *path, struct tbd_error *why)
{
    struct tbd_trace *trace;
    enum tbd_status status = tbd_trace_open_summary(path, &trace, why);
    bool is_live;

    if (status)
        return status;
    is_live = !tbd_trace_info(trace)->finished;
    tbd_trace_close(trace);
    return is_live ? is_recorded(path, why) : TBD_OK;
}

static struct stops_counting counting_of(const struct tbd_count_stops *how)
{
    return (struct stops_counting){ .how = how,
                                    .lock = PTHREAD_MUTEX_INITIALIZER,
                                    .change = PTHREAD_COND_INITIALIZER,
                                    .blocks = { .lock = PTHREAD_MUTEX_INITIALIZER } };
}

/* Beside the trace, and no trace to whoever lists them: FOLDER/.NAME.counted. */
static bool name_root(const char *path, char *out, size_t bytes)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return (size_t)snprintf(out, bytes, "%.*s.%s" NEW_SUFFIX, (int)(name - path), path, name) <
           bytes;
}

enum tbd_status tbd_count_stops(const struct tbd_count_stops *how, struct tbd_error *why)
{
    struct stops_counting c = counting_of(how);
    struct tbd_stops_waiting waiting = { how->waits, how->context };
    enum tbd_status status;
    bool is_uncounted;

    if (!name_root(how->path, c.root, sizeof(c.root)))
        return tbd_error_set(why, TBD_NOTRACE, how->path, 0, "its path is too long");
    status = how->follows ? TBD_OK : look_whether_recorded(how->path, why);
    if (!status)
        status = tbd_stops_claim(&c.claim, how->path, c.root, how->is_aside ? NULL : &waiting, why);
    if (status)
        return status;
    status = open_uncounted(&c, &is_uncounted, why);
    if (!status && is_uncounted)
        status = count_in(&c, why);
    tbd_stops_claim_end(&c.claim);
    tear_down(&c);
    return status;
}

enum tbd_status tbd_count_stops_part(const struct tbd_count_stops *how, struct tbd_error *why)
{
    struct stops_counting c = counting_of(how);
    enum tbd_status status;
    bool is_uncounted;

    snprintf(c.root, sizeof(c.root), "%s", how->part->root);
    status = open_uncounted(&c, &is_uncounted, why);
    if (!status && !is_uncounted)
        status = TBD_NOTFOUND;
    if (!status) {
        c.dir = tbd_trace_dir(c.trace);
        status = count(&c, why);
    }
    tear_down(&c);
    return status;
}
