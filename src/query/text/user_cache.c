// SPDX-License-Identifier: MIT
/* user_cache.c - see user_cache.h
 *
 * USER_CACHE-1  A file appears under its name complete, by rename, or not at all. (not checked:
 *     test_debug_cache does)
 * USER_CACHE-2  Only files that belong to the user, and that nobody else can write, are used. (not
 *     checked: it is what decoding checks of its input)
 * USER_CACHE-3  A folder holds at most CACHE_MAX bytes: the least recently used files are deleted.
 *     (not checked: other processes write there, too) */
#include "query/text/user_cache.h"

#include "query/text/shortage.h"
#include "query/text/user_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_MAX (1ull << 30)
#define FILES_MAX 4096

static bool is_off;

void tbd_user_cache_off(void)
{
    is_off = true;
}

bool tbd_user_cache_path(const char *folder, const char *name, char *out, size_t bytes)
{
    size_t used;

    if (is_off || !tbd_user_path("XDG_CACHE_HOME", ".cache", folder, out, bytes))
        return false;
    used = strlen(out);
    return (size_t)snprintf(out + used, bytes - used, "%s", name) < bytes - used;
}

/* Keeps USER_CACHE-2. */
int tbd_user_cache_open(const char *path)
{
    int fd = is_off ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info;

    if (fd < 0)
        return -1;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & 022) == 0) {
        (void)futimens(fd, NULL); /* used now */
        return fd;
    }
    close(fd);
    return -1;
}

/* ---- deleting old files ---- */

struct cached {
    char name[256];
    uint64_t bytes;
    struct timespec used;
};

static int compare_cached(const void *left, const void *right)
{
    const struct cached *a = left, *b = right;

    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec > b->used.tv_sec ? -1 : 1;
    return a->used.tv_nsec > b->used.tv_nsec ? -1 : a->used.tv_nsec < b->used.tv_nsec;
}

static size_t list_cached(DIR *dir, struct cached *out)
{
    struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(dir)) != NULL && count < FILES_MAX) {
        struct stat info;

        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        snprintf(out[count].name, sizeof(out[count].name), "%s", entry->d_name);
        out[count].bytes = (uint64_t)info.st_size;
        out[count++].used = info.st_mtim;
    }
    return count;
}

/* Keeps USER_CACHE-3. */
static void make_space(const char *folder, uint64_t wanted)
{
    struct cached *files = calloc(FILES_MAX, sizeof(*files));
    DIR *dir = files == NULL ? NULL : opendir(folder);
    uint64_t sum = wanted;
    size_t count;

    if (dir != NULL) {
        count = list_cached(dir, files);
        qsort(files, count, sizeof(*files), compare_cached);
        for (size_t i = 0; i < count; i++) {
            sum += files[i].bytes;
            if (sum > CACHE_MAX)
                (void)unlinkat(dirfd(dir), files[i].name, 0);
        }
        closedir(dir);
    }
    free(files);
}

/* Keeps USER_CACHE-1. */
bool tbd_user_cache_make(const char *path, uint64_t bytes, bool (*fill)(void *context, int fd),
                         void *context)
{
    const char *slash = strrchr(path, '/');
    char temporary[TBD_USER_CACHE_PATH];
    int length, fd;
    bool good;

    length = snprintf(temporary, sizeof(temporary), "%.*s/", (int)(slash - path), path);
    if (is_off || tbd_shortage_seen() || bytes > CACHE_MAX || length < 0 ||
        (size_t)length + 16 >= sizeof(temporary))
        return false;
    make_space(temporary, bytes);
    snprintf(temporary + length, sizeof(temporary) - (size_t)length, ".new-XXXXXX");
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return false;
    good = fill(context, fd);
    good = close(fd) == 0 && good;
    if (good && rename(temporary, path) == 0)
        return true;
    (void)unlink(temporary);
    return false;
}
