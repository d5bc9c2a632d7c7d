// SPDX-License-Identifier: MIT
/* packed_trace.c - see packed_trace.h
 *
 *   CACHE/tbd/packed/DEVICE-INODE-SIZE-TIME/ */
#include "query/session/packed_trace.h"

#include "base/open_file.h"
#include "base/safe_stream.h"
#include "format/files/trace_dir.h"
#include "format/packed/archive.h"
#include "format/trace/trace_handle.h"
#include "query/session/cached_folder.h"
#include "query/text/other_places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* It says what it was unpacked from. */
static void name_of(int fd, char *out, size_t bytes)
{
    struct stat info = { 0 };

    (void)fstat(fd, &info);
    snprintf(out, bytes, "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64, (uint64_t)info.st_dev,
             (uint64_t)info.st_ino, (uint64_t)info.st_size,
             (uint64_t)info.st_mtim.tv_sec * 1000000000u + (uint64_t)info.st_mtim.tv_nsec);
}

struct packed_from {
    int fd;
    const char *path;
};

static enum tbd_status unpack(void *context, int dir, const char *path, struct tbd_error *why)
{
    const struct packed_from *from = context;
    const char *detail = NULL;
    enum tbd_status status;

    (void)path;
    fprintf(stderr, "tbdq: note: unpacking %s\n", tbd_shown(from->path));
    status = tbd_archive_unpack(from->fd, dir, tbd_packed_most(from->fd), &detail);
    if (status == TBD_OK)
        return TBD_OK;
    return tbd_error_set(why, status, from->path, 0, "%s",
                         detail == NULL ? tbd_status_text(status) : detail);
}

bool tbd_packed_trace(struct tbd_session *session, const char *path, char *out, size_t bytes,
                      enum tbd_status *status)
{
    int fd = path == NULL ? -1 : tbd_open_named(path);
    struct packed_from from = { fd, path };
    char name[128];

    if (fd < 0 || !tbd_archive_is(fd)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    name_of(fd, name, sizeof(name));
    *status = tbd_cached_folder(&(struct tbd_cached_folder){ "packed/", name, unpack, &from }, out,
                                bytes, &session->why);
    if (*status == TBD_NOTFOUND)
        *status = tbd_error_set(&session->why, TBD_IO, path, 0,
                                "there is no cache to unpack it to: use `tbdq unpack`");
    close(fd);
    return true;
}
