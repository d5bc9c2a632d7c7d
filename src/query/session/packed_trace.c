// SPDX-License-Identifier: MIT
/* packed_trace.c - see packed_trace.h
 *
 *   CACHE/tbd/packed/DEVICE-INODE-SIZE-TIME/
 *
 * A folder gets its name when it is complete.  The KEPT_MAX made last are kept.
 *
 * PACKED_TRACE-1  A folder of this name belongs to the user, who alone may write there. (not checked: the cache's own
 *     folder is 0700) */
#include "query/session/packed_trace.h"

#include "base/open_file.h"
#include "base/safe_stream.h"
#include "format/files/trace_dir.h"
#include "format/files/trace_remove.h"
#include "format/packed/archive.h"
#include "format/trace/trace_handle.h"
#include "query/text/other_places.h"
#include "query/text/user_cache.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT_MAX   4u
#define RATIO_MAX  300u
#define LEAST_MOST (256u << 20)

uint64_t tbd_packed_most(int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0 || info.st_size < 0)
        return 0;
    return LEAST_MOST + RATIO_MAX * (uint64_t)info.st_size;
}

static bool has_folder(int dir, const char *name)
{
    int folder = dir < 0 ? -1 : tbd_open_folder_below(dir, name);

    if (folder >= 0)
        close(folder);
    return folder >= 0;
}

void tbd_packed_use_extras(const char *folder)
{
    int dir = tbd_dir_open(folder);
    char path[4400];

    snprintf(path, sizeof(path), "%s/debug", folder);
    if (has_folder(dir, "debug"))
        tbd_places_add_debug(path);
    snprintf(path, sizeof(path), "%s/sources", folder);
    if (has_folder(dir, "sources"))
        tbd_places_add_own_sources(path);
    if (dir >= 0)
        close(dir);
}

/* ---- the cache ---- */

static void name_of(int fd, char *out, size_t bytes)
{
    struct stat info = { 0 };

    (void)fstat(fd, &info);
    snprintf(out, bytes, "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64, (uint64_t)info.st_dev,
             (uint64_t)info.st_ino, (uint64_t)info.st_size,
             (uint64_t)info.st_mtim.tv_sec * 1000000000u + (uint64_t)info.st_mtim.tv_nsec);
}

/* What cannot be removed stays in the cache. */
static void forget(int cache, const char *name)
{
    if (tbd_trace_remove(cache, name) != TBD_OK)
        fprintf(stderr, "tbdq: note: %s of the cache could not be removed\n", name);
}

/* Removes the oldest folder, if there are KEPT_MAX. */
static void forget_oldest(int cache)
{
    DIR *entries = tbd_dir_list(cache, ".");
    char oldest[256] = "";
    struct dirent *entry;
    struct timespec time = { 0 };
    unsigned count = 0;

    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        struct stat info;

        if (entry->d_name[0] == '.' || !tbd_stat_below(cache, entry->d_name, &info))
            continue;
        count++;
        if (oldest[0] == '\0' || info.st_mtim.tv_sec < time.tv_sec) {
            snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
            time = info.st_mtim;
        }
    }
    if (entries != NULL)
        closedir(entries);
    if (count >= KEPT_MAX && oldest[0] != '\0')
        forget(cache, oldest);
}

static enum tbd_status unpack_into(struct tbd_session *session, int fd, int cache, const char *name,
                                   const char *path)
{
    char temporary[64];
    const char *why;
    enum tbd_status status;
    struct stat old;
    int dir;

    snprintf(temporary, sizeof(temporary), "new-%ld", (long)getpid());
    if (tbd_stat_below(cache, temporary, &old))
        forget(cache, temporary);
    status = tbd_dir_make_folder(cache, temporary);
    dir = status == TBD_OK ? tbd_open_folder_below(cache, temporary) : -1;
    if (dir < 0)
        return tbd_error_set(&session->why, TBD_IO, path, 0, "the cache cannot be written");
    fprintf(stderr, "tbdq: note: unpacking %s\n", tbd_shown(path));
    status = tbd_archive_unpack(fd, dir, tbd_packed_most(fd), &why);
    close(dir);
    if (status == TBD_OK)
        status = tbd_dir_rename(cache, temporary, name);
    if (status != TBD_OK)
        forget(cache, temporary);
    return status == TBD_OK ? TBD_OK
                            : tbd_error_set(&session->why, status, path, 0, "%s",
                                            why == NULL ? tbd_status_text(status) : why);
}

/* The folder of the cache; false: there is no cache. */
static bool open_cache(char *out, size_t bytes, int *out_fd)
{
    if (!tbd_user_cache_path("packed/", "", out, bytes))
        return false;
    *out_fd = tbd_dir_open(out);
    return *out_fd >= 0;
}

bool tbd_packed_trace(struct tbd_session *session, const char *path, char *out, size_t bytes,
                      enum tbd_status *status)
{
    char cache[TBD_USER_CACHE_PATH], name[128];
    int fd = path == NULL ? -1 : tbd_open_named(path), folder;
    struct stat info;

    if (fd < 0 || !tbd_archive_is(fd)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    *status = TBD_OK;
    name_of(fd, name, sizeof(name));
    if (!open_cache(cache, sizeof(cache), &folder)) {
        *status = tbd_error_set(&session->why, TBD_IO, path, 0,
                                "there is no cache to unpack it to: use `tbdq unpack`");
    } else {
        if (!tbd_stat_below(folder, name, &info)) {
            forget_oldest(folder);
            *status = unpack_into(session, fd, folder, name, path);
        }
        close(folder);
    }
    close(fd);
    snprintf(out, bytes, "%s%s", cache, name);
    return true;
}
