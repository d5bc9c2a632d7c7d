// SPDX-License-Identifier: MIT
/* count_later.c - see count_later.h
 *
 * Invariants
 * COUNT_LATER-1  A trace that ends while somebody counts in its trace root is counted by that process: it is on a list before anybody
 *     asks for the list's lock, and the lock is given back only with an empty list. (not checked: test_counting records several
 *     programs) */
#include "replay/count_later.h"

#include "base/clock.h"
#include "base/open_file.h"
#include "base/processors.h"
#include "format/files/file.h"
#include "format/files/trace_remove.h"
#include "format/merging/change.h"
#include "replay/native/count_stops.h"
#include "replay/raise.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* This part of a budget stays free: the index over windows grows, too. */
#define BUDGET_SHARE 16u
/* A trace of native play is at most this many times as large when it is counted. */
#define NEW_TRACE 4u
/* In the trace root. */
#define LIST_NAME   ".counting"
#define FOLLOW_NAME ".counting-live"

/* ---- one trace ---- */

static bool goes_on(void *context, uint32_t done, uint32_t wanted)
{
    const struct tbd_count_later *how = context;

    (void)done;
    (void)wanted;
    return how->goes_on(how->context);
}

static bool has_uncounted(const struct tbd_trace *trace)
{
    const struct tbd_trace_info *info = tbd_trace_info(trace);

    if (!info->counts_later || !info->finished || info->is_foreign || info->damage_count)
        return false;
    for (uint32_t i = 0; i < tbd_trace_window_count(trace); i++)
        if (tbd_raise_is_left(trace, i))
            return true;
    return false;
}

static uint64_t lesser(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* How much files may grow: the budget and the disk have other uses. */
static uint64_t most_bytes(const struct tbd_trace *trace, const struct tbd_writer *writer,
                           uint64_t disk_left)
{
    uint64_t budget = tbd_trace_info(trace)->budget, most = UINT64_MAX;
    int dir = tbd_writer_dir(writer);
    struct statvfs disk;

    if (budget) {
        uint64_t used = tbd_trace_disk_bytes(dir) + budget / BUDGET_SHARE;

        most = used < budget ? budget - used : 0;
    }
    if (!fstatvfs(dir, &disk)) {
        uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;

        most = lesser(most, left > disk_left ? left - disk_left : 0);
    }
    return most;
}

static enum tbd_status count_windows(struct tbd_trace *trace, struct tbd_writer *writer,
                                     const struct tbd_count_later *how, struct tbd_error *why)
{
    struct tbd_raise raise = {
        .trace = trace,
        .writer = writer,
        .to = tbd_trace_window_count(trace) - 1,
        .level = TBD_LEVEL_COUNTS,
        .workers = 1,
        .is_aside = true,
        .most_bytes = most_bytes(trace, writer, how->disk_left),
        .goes_on = goes_on,
        .context = (void *)(uintptr_t)how,
    };
    struct tbd_divergence divergence;
    uint32_t raised;

    if (how->be_idle)
        how->be_idle();
    return raise.most_bytes ? tbd_raise_windows(&raise, &raised, &divergence, why) : TBD_OK;
}

/* Native play: a new trace is made, and the old one is there until it is complete. */
static bool has_space(const char *path, const struct tbd_count_later *how)
{
    int dir = tbd_dir_open(path);
    struct statvfs disk;
    bool has = false;

    if (dir < 0)
        return false;
    if (!fstatvfs(dir, &disk))
        has = (uint64_t)disk.f_bavail * disk.f_frsize >
              how->disk_left + NEW_TRACE * tbd_trace_disk_bytes(dir);
    close(dir);
    return has;
}

static enum tbd_status count_stops(const char *path, const struct tbd_count_later *how,
                                   struct tbd_error *why)
{
    const struct tbd_count_stops counting = { .path = path,
                                              .workers = 1,
                                              .is_aside = true,
                                              .helpers = tbd_processors(),
                                              .start = how->start,
                                              .be_idle = how->be_idle,
                                              .goes_on = how->goes_on,
                                              .context = how->context };

    return has_space(path, how) ? tbd_count_stops(&counting, why) : TBD_NOSPACE;
}

enum tbd_status tbd_count_trace(const char *path, const struct tbd_count_later *how,
                                struct tbd_error *why)
{
    struct tbd_writer *writer = NULL;
    struct tbd_trace *trace;
    enum tbd_status status = tbd_trace_open_summary(path, &trace, why);
    bool is_wanted, counts_stops;

    if (status)
        return status;
    counts_stops = tbd_trace_info(trace)->counts_stops;
    is_wanted = counts_stops || has_uncounted(trace);
    tbd_trace_close(trace);
    if (counts_stops)
        status = count_stops(path, how, why);
    if (!is_wanted || status)
        return status;
    status = tbd_writer_open(path, &writer, why);
    if (status)
        return status;
    status = tbd_trace_open(path, &trace, why);
    if (!status && has_uncounted(trace))
        status = count_windows(trace, writer, how, why);
    tbd_trace_close(trace);
    tbd_writer_free(writer);
    return status;
}

/* ---- all of a trace root ---- */

struct counting {
    const struct tbd_count_later *how;
    const char *root;
    int fd;       /* the trace root; its lock is held while the list changes */
    int list;     /* names of traces, a line each; its lock is held by the process that counts */
    off_t offset; /* the lines before are done */
};

/* A file that others have put there is not used. */
static int open_file(int root, const char *name)
{
    int list =
        openat(root, name, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    struct stat info;

    if (list >= 0 && !fstat(list, &info) && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        info.st_nlink == 1)
        return list;
    if (list >= 0)
        close(list);
    return -1;
}

static bool add_to_list(const struct counting *c, const char *name)
{
    bool is_good;

    if (strchr(name, '\n') || flock(c->fd, LOCK_EX))
        return false;
    is_good = dprintf(c->list, "%s\n", name) > 0;
    (void)flock(c->fd, LOCK_UN);
    return is_good;
}

/* The next line; false: there is none. */
static bool next_name(struct counting *c, char *out, size_t bytes)
{
    ssize_t got = pread(c->list, out, bytes - 1, c->offset);
    char *end;

    if (got <= 0)
        return false;
    out[got] = 0;
    end = strchr(out, '\n');
    if (!end)
        return false;
    *end = 0;
    c->offset += end - out + 1;
    return true;
}

/* Gives the list back, empty, unless it has another line: whoever adds one after this finds it free. */
static bool finish_list(struct counting *c)
{
    struct stat info;
    bool is_done;

    if (flock(c->fd, LOCK_EX))
        return true;
    is_done = fstat(c->list, &info) || info.st_size <= c->offset;
    if (is_done) {
        (void)!ftruncate(c->list, 0);
        (void)flock(c->list, LOCK_UN);
    }
    (void)flock(c->fd, LOCK_UN);
    return is_done;
}

/* Failures that concern one trace end nothing. */
static enum tbd_status count_one(const struct counting *c, const char *name, struct tbd_error *why)
{
    enum tbd_status status;
    char path[8192];

    if (!*name || *name == '.' || strchr(name, '/'))
        return TBD_OK;
    snprintf(path, sizeof(path), "%s/%s", c->root, name);
    status = tbd_count_trace(path, c->how, why);
    return status == TBD_INTERRUPTED || status == TBD_NOSPACE || status == TBD_NOMEM ? status
                                                                                     : TBD_OK;
}

/* A list that is not done stays for the next process. */
static enum tbd_status count_list(struct counting *c, struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;
    char name[NAME_MAX + 2];

    do {
        while (!status && next_name(c, name, sizeof(name)))
            status = count_one(c, name, why);
    } while (!status && !finish_list(c));
    return status;
}

static enum tbd_status count_with_list(struct counting *c, const char *name, struct tbd_error *why)
{
    enum tbd_status status;

    c->list = open_file(c->fd, LIST_NAME);
    if (c->list < 0 || !add_to_list(c, name))
        status = count_one(c, name, why);
    else if (flock(c->list, LOCK_EX | LOCK_NB))
        status = tbd_error_set(why, TBD_BUSY, c->root, 0, "somebody counts already");
    else
        status = count_list(c, why);
    if (c->list >= 0)
        close(c->list);
    return status;
}

enum tbd_status tbd_count_traces(const char *path, const struct tbd_count_later *how,
                                 struct tbd_error *why)
{
    struct counting c = { .how = how, .fd = -1 };
    char *copy = strdup(path), *copy_too = strdup(path);
    enum tbd_status status = TBD_NOMEM;

    if (copy && copy_too) {
        c.root = dirname(copy);
        c.fd = tbd_dir_open(c.root);
        status = c.fd < 0 ? tbd_error_set(why, TBD_NOTRACE, c.root, 0, "%s", strerror(errno))
                          : count_with_list(&c, basename(copy_too), why);
    }
    if (c.fd >= 0)
        close(c.fd);
    free(copy);
    free(copy_too);
    return status;
}

/* ---- while it is recorded ---- */

/* Looks how much space is left, now and then: it takes a walk through the trace's folder. */
#define LOOK_NS 5000000000ull
/* Others can use processors, too, and each worker has the program's memory once more. */
#define FOLLOW_WORKERS 3u

struct counting_live {
    const struct tbd_count_later *how;
    int dir;
    uint64_t budget, looked_ns;
};

/* For the rest of the recording, and for what is counted. */
static bool has_space_yet(const struct counting_live *f)
{
    uint64_t used = tbd_trace_disk_bytes(f->dir);
    uint64_t needed = f->budget ? 2 * f->budget - lesser(used, f->budget) : NEW_TRACE * used;
    struct statvfs disk;

    return fstatvfs(f->dir, &disk) ||
           (uint64_t)disk.f_bavail * disk.f_frsize > f->how->disk_left + needed;
}

static bool follow_goes_on(void *context)
{
    struct counting_live *f = context;
    uint64_t now = tbd_clock_ns();

    if (now - f->looked_ns >= LOOK_NS) {
        if (!has_space_yet(f))
            return false;
        f->looked_ns = now;
    }
    return f->how->goes_on(f->how->context);
}

static bool follow_start(void *context, pthread_t *out, void *(*run)(void *), void *argument)
{
    const struct counting_live *f = context;

    return f->how->start(f->how->context, out, run, argument);
}

static void follow_ended(void *context)
{
    const struct counting_live *f = context;

    if (f->how->ended)
        f->how->ended(f->how->context);
}

static enum tbd_status count_while_recorded(struct counting_live *f, const char *path,
                                            struct tbd_error *why)
{
    unsigned workers = tbd_processors() - 1;
    const struct tbd_count_stops counting = {
        .path = path,
        .workers = workers < 1                ? 1
                   : workers > FOLLOW_WORKERS ? FOLLOW_WORKERS
                                              : workers,
        .is_aside = true,
        .helpers = tbd_processors(),
        .start = f->how->start ? follow_start : NULL,
        .be_idle = f->how->be_idle,
        .follows = true,
        .ended = follow_ended,
        .goes_on = follow_goes_on,
        .context = f,
    };
    struct tbd_trace *trace;
    enum tbd_status status = tbd_trace_open_summary(path, &trace, why);
    bool is_wanted;

    if (status)
        return status;
    is_wanted = tbd_trace_info(trace)->counts_stops && !tbd_trace_info(trace)->is_foreign;
    f->budget = tbd_trace_info(trace)->budget;
    tbd_trace_close(trace);
    return is_wanted ? tbd_count_stops(&counting, why) : TBD_OK;
}

enum tbd_status tbd_count_while_recorded(const char *path, const struct tbd_count_later *how,
                                         struct tbd_error *why)
{
    char *copy = strdup(path);
    struct counting c = { .how = how, .fd = copy ? tbd_dir_open(dirname(copy)) : -1 };
    struct counting_live f = { .how = how, .dir = tbd_dir_open(path) };
    enum tbd_status status = TBD_NOTRACE;

    c.list = c.fd < 0 ? -1 : open_file(c.fd, FOLLOW_NAME);
    if (c.list >= 0 && f.dir >= 0 && flock(c.list, LOCK_EX | LOCK_NB))
        status = tbd_error_set(why, TBD_BUSY, path, 0, "somebody counts already");
    else if (c.list >= 0 && f.dir >= 0)
        status = count_while_recorded(&f, path, why);
    if (c.list >= 0)
        close(c.list);
    if (c.fd >= 0)
        close(c.fd);
    if (f.dir >= 0)
        close(f.dir);
    free(copy);
    return status;
}
