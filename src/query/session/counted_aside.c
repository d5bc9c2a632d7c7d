// SPDX-License-Identifier: MIT
/* counted_aside.c - see counted_aside.h
 *
 *   CACHE/tbd/counted/ID-DEVICE-INODE-WINDOWS/trace-1/
 *
 * COUNTED_ASIDE-1  A temporary folder is removed by the process that made it, and by none that it has forked. (not checked: one
 *     comparison) */
#include "query/session/counted_aside.h"

#include "base/safe_stream.h"
#include "format/files/file.h"
#include "format/files/trace_dir.h"
#include "format/files/trace_remove.h"
#include "format/trace/trace_handle.h"
#include "query/session/cached_folder.h"
#include "query/text/user_cache.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define TEMPORARY "tbd-counted-XXXXXX"

/* ---- can it be written? ---- */

/* The folder that a path lies in. */
static void take_parent(const char *path, char *out, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    int length = slash == NULL ? 0 : (int)(slash - path);

    if (slash == NULL)
        snprintf(out, bytes, ".");
    else
        snprintf(out, bytes, "%.*s", length > 0 ? length : 1, path);
}

/* For a trace that is counted, which is about as large, beside this one.  After a run that has filled its disk there is none. */
static bool has_space(const struct tbd_trace *trace)
{
    int dir = tbd_trace_dir(trace).fd;
    struct statvfs disk;

    return tbd_trace_window_count(trace) == 0 || fstatvfs(dir, &disk) != 0 ||
           (uint64_t)disk.f_bavail * disk.f_frsize > tbd_trace_disk_bytes(dir);
}

/* With a trace root's sticky bit only the owner may replace the trace. */
bool tbd_counted_aside_is_needed(const struct tbd_trace *trace)
{
    const struct tbd_trace_info *info = tbd_trace_info(trace);
    char parent[PATH_MAX];

    take_parent(info->path, parent, sizeof(parent));
    return info->is_foreign || access(info->path, W_OK | X_OK) != 0 ||
           access(parent, W_OK | X_OK) != 0 || !has_space(trace);
}

/* ---- counting ---- */

static enum tbd_status count_in(const struct tbd_count_stops *how, const char *folder,
                                const char *where, struct tbd_error *why)
{
    struct tbd_stops_part all = { .from = 0, .to = how->part->to, .root = folder };
    struct tbd_count_stops counting = *how;

    counting.part = &all;
    fprintf(stderr, "tbdq: note: %s cannot be written, or has no space: it is counted %s\n",
            tbd_shown(how->path), where);
    return tbd_count_stops_part(&counting, why);
}

static enum tbd_status fill(void *context, int dir, const char *path, struct tbd_error *why)
{
    (void)dir;
    return count_in(context, path, "in your cache, and kept there", why);
}

/* Where temporary folders are to be removed from, and by whom. */
static char temporary_parent[PATH_MAX];
static char temporary_name[sizeof(TEMPORARY)];
static pid_t temporary_owner;

/* Keeps COUNTED_ASIDE-1. */
static void remove_temporary(void)
{
    int parent = temporary_owner == getpid() ? tbd_dir_open(temporary_parent) : -1;

    if (parent < 0)
        return;
    (void)!tbd_trace_remove(parent, temporary_name);
    close(parent);
    temporary_owner = 0;
}

static bool make_temporary(char *out, size_t bytes)
{
    const char *parent = getenv("TMPDIR");
    const char *chosen = parent != NULL && parent[0] == '/' ? parent : "/tmp";

    if ((size_t)snprintf(out, bytes, "%s/" TEMPORARY, chosen) >= bytes || mkdtemp(out) == NULL)
        return false;
    snprintf(temporary_parent, sizeof(temporary_parent), "%s", chosen);
    snprintf(temporary_name, sizeof(temporary_name), "%s",
             out + strlen(out) + 1 - sizeof(TEMPORARY));
    temporary_owner = getpid();
    return atexit(remove_temporary) == 0;
}

static enum tbd_status count_temporarily(const struct tbd_count_stops *how, char *out, size_t bytes,
                                         struct tbd_error *why)
{
    enum tbd_status status;

    remove_temporary(); /* of a trace opened before */
    if (!make_temporary(out, bytes))
        return tbd_error_set(why, TBD_IO, how->path, 0,
                             "it cannot be written, and there is no place to count it in");
    status = count_in(how, out, "in a temporary folder, for this time only", why);
    if (status != TBD_OK)
        remove_temporary();
    return status;
}

/* What was counted of this recording is right until it is recorded again. */
static void name_of(const struct tbd_trace *trace, char *out, size_t bytes)
{
    struct stat info = { 0 };

    (void)fstat(tbd_trace_dir(trace).fd, &info);
    snprintf(out, bytes, "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx32, tbd_trace_id(trace),
             (uint64_t)info.st_dev, (uint64_t)info.st_ino, tbd_trace_window_count(trace));
}

enum tbd_status tbd_counted_aside(const struct tbd_count_stops *how,
                                  const struct tbd_trace *uncounted, struct tbd_trace **out,
                                  struct tbd_error *why)
{
    char name[128], folder[PATH_MAX], made[PATH_MAX + sizeof(TBD_STOPS_PART_NAME)];
    struct tbd_stops_part all = { .to = tbd_trace_window_count(uncounted) };
    struct tbd_count_stops counting = *how;
    const struct tbd_cached_folder wanted = { "counted/", name, fill, &counting };
    enum tbd_status status;

    counting.part = &all;
    name_of(uncounted, name, sizeof(name));
    status = tbd_cached_folder(&wanted, folder, sizeof(folder), why);
    if (status == TBD_NOTFOUND)
        status = count_temporarily(&counting, folder, sizeof(folder), why);
    if (status != TBD_OK)
        return status;
    snprintf(made, sizeof(made), "%s/" TBD_STOPS_PART_NAME, folder);
    status = tbd_trace_open(made, out, why);
    if (status == TBD_OK && !tbd_trace_stand_for(*out, how->path, tbd_trace_info(uncounted)->owner))
        status = TBD_NOMEM;
    return status;
}
