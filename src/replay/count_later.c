// SPDX-License-Identifier: MIT
/* count_later.c - see count_later.h
 *
 * Invariants
 * COUNT_LATER-1  A trace that ends while somebody counts in its trace root is counted by that process: it looks again for such traces
 *     after it has given the lock back. (not checked: test_counting records several programs) */
#include "replay/count_later.h"

#include "base/open_file.h"
#include "format/files/file.h"
#include "format/files/trace_remove.h"
#include "format/merging/change.h"
#include "replay/raise.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* This part of a budget stays free: the index over windows grows, too. */
#define BUDGET_SHARE 16u
/* Traces of which others have counted a part are counted as well if they are not older than this. */
#define RECENT_SECONDS 3600

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

    return raise.most_bytes ? tbd_raise_windows(&raise, &raised, &divergence, why) : TBD_OK;
}

enum tbd_status tbd_count_trace(const char *path, const struct tbd_count_later *how,
                                struct tbd_error *why)
{
    struct tbd_writer *writer = NULL;
    struct tbd_trace *trace;
    enum tbd_status status = tbd_trace_open_summary(path, &trace, why);
    bool is_wanted;

    if (status)
        return status;
    is_wanted = has_uncounted(trace);
    tbd_trace_close(trace);
    if (!is_wanted)
        return TBD_OK;
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
    const char *first; /* the trace that it was called for */
    int fd;
    time_t since;                /* traces that were written to before are left alone */
    char (*tried)[NAME_MAX + 1]; /* owned */
    size_t tried_count;
};

static bool is_tried(const struct counting *c, const char *name)
{
    for (size_t i = 0; i < c->tried_count; i++)
        if (strcmp(c->tried[i], name) == 0)
            return true;
    return false;
}

static bool note_tried(struct counting *c, const char *name)
{
    void *grown = realloc(c->tried, (c->tried_count + 1) * sizeof(*c->tried));

    if (!grown)
        return false;
    c->tried = grown;
    snprintf(c->tried[c->tried_count++], sizeof(c->tried[0]), "%s", name);
    return true;
}

/* When was its last record written? */
static time_t written(int root, const char *name)
{
    int folder = tbd_open_folder_below(root, name);
    struct stat index = { 0 };

    if (folder >= 0) {
        (void)!tbd_stat_below(folder, "index", &index);
        close(folder);
    }
    return index.st_mtime;
}

/* Is it a trace to be counted? */
static bool is_left(struct counting *c, const char *name)
{
    struct tbd_trace *trace;
    struct stat folder;
    char path[8192];
    bool is_left;

    snprintf(path, sizeof(path), "%s/%s", c->root, name);
    if (*name == '.' || strlen(name) > NAME_MAX || is_tried(c, name) ||
        !tbd_stat_below(c->fd, name, &folder) || !S_ISDIR(folder.st_mode) ||
        folder.st_uid != geteuid() || written(c->fd, name) < c->since ||
        tbd_trace_open_summary(path, &trace, NULL))
        return false;
    is_left = has_uncounted(trace);
    if (!is_left && tbd_trace_info(trace)->finished)
        (void)note_tried(c, name);
    tbd_trace_close(trace);
    return is_left;
}

/* The next trace to be counted, which has not been tried. */
static bool find_next(struct counting *c, char *out, size_t bytes)
{
    DIR *list = tbd_dir_list(c->fd, ".");
    struct dirent *entry;
    bool is_found = false;

    while (list && !is_found && (entry = readdir(list))) {
        is_found = is_left(c, entry->d_name);
        if (is_found)
            snprintf(out, bytes, "%s", entry->d_name);
    }
    if (list)
        closedir(list);
    return is_found;
}

static bool is_failure_of_all(enum tbd_status status)
{
    return status == TBD_INTERRUPTED || status == TBD_NOSPACE || status == TBD_NOMEM;
}

/* Failures that concern one trace end nothing. */
static enum tbd_status count_one(struct counting *c, const char *name, struct tbd_error *why)
{
    enum tbd_status status;
    char path[8192];

    if (!note_tried(c, name))
        return TBD_NOMEM;
    snprintf(path, sizeof(path), "%s/%s", c->root, name);
    status = tbd_count_trace(path, c->how, why);
    return is_failure_of_all(status) ? status : TBD_OK;
}

static enum tbd_status count_all(struct counting *c, struct tbd_error *why)
{
    enum tbd_status status = is_tried(c, c->first) ? TBD_OK : count_one(c, c->first, why);
    char name[NAME_MAX + 1];

    while (!status && find_next(c, name, sizeof(name)))
        status = count_one(c, name, why);
    return status;
}

static enum tbd_status take_turns(struct counting *c, struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;
    char name[NAME_MAX + 1];

    do {
        if (flock(c->fd, LOCK_EX | LOCK_NB))
            return tbd_error_set(why, TBD_BUSY, c->root, 0, "somebody counts already");
        status = count_all(c, why);
        (void)flock(c->fd, LOCK_UN);
    } while (!status && find_next(c, name, sizeof(name)));
    return status;
}

enum tbd_status tbd_count_traces(const char *path, const struct tbd_count_later *how,
                                 struct tbd_error *why)
{
    struct counting c = { .how = how, .fd = -1, .since = time(NULL) - RECENT_SECONDS };
    char *copy = strdup(path), *copy_too = strdup(path);
    enum tbd_status status = TBD_NOMEM;

    if (copy && copy_too) {
        c.root = dirname(copy);
        c.first = basename(copy_too);
        c.fd = tbd_dir_open(c.root);
        status = c.fd < 0 ? tbd_error_set(why, TBD_NOTRACE, c.root, 0, "%s", strerror(errno))
                          : take_turns(&c, why);
    }
    if (c.fd >= 0)
        close(c.fd);
    free(c.tried);
    free(copy);
    free(copy_too);
    return status;
}
