// SPDX-License-Identifier: MIT
/* cached_folder.c - see cached_folder.h */
#include "query/session/cached_folder.h"

#include "base/open_file.h"
#include "format/files/file.h"
#include "format/files/trace_dir.h"
#include "format/files/trace_remove.h"
#include "query/text/user_cache.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What cannot be removed stays in the cache. */
static void forget(int cache, const char *name)
{
    if (tbd_trace_remove(cache, name) != TBD_OK)
        fprintf(stderr, "tbdq: note: %s of the cache could not be removed\n", name);
}

/* Removes the oldest folder, if there are as many as are kept. */
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
    if (count >= TBD_CACHED_FOLDERS && oldest[0] != '\0')
        forget(cache, oldest);
}

/* Two processes may make the same one: the second finds it there, and has made its own for nothing. */
static enum tbd_status name_it(int cache, const char *unfinished, const char *name)
{
    enum tbd_status status = tbd_dir_rename(cache, unfinished, name);
    struct stat info;

    if (status == TBD_OK || !tbd_stat_below(cache, name, &info))
        return status;
    forget(cache, unfinished);
    return TBD_OK;
}

static enum tbd_status make(const struct tbd_cached_folder *wanted, int cache,
                            const char *cache_path, struct tbd_error *why)
{
    char unfinished[64], path[TBD_USER_CACHE_PATH + 64];
    enum tbd_status status;
    struct stat old;
    int dir;

    snprintf(unfinished, sizeof(unfinished), "new-%ld", (long)getpid());
    snprintf(path, sizeof(path), "%s%s", cache_path, unfinished);
    if (tbd_stat_below(cache, unfinished, &old))
        forget(cache, unfinished);
    forget_oldest(cache);
    status = tbd_dir_make_folder(cache, unfinished);
    dir = status == TBD_OK ? tbd_open_folder_below(cache, unfinished) : -1;
    if (dir < 0)
        return tbd_error_set(why, TBD_IO, cache_path, 0, "the cache cannot be written");
    status = wanted->fill(wanted->context, dir, path, why);
    close(dir);
    if (status == TBD_OK && name_it(cache, unfinished, wanted->name) != TBD_OK)
        status = tbd_error_set(why, TBD_IO, cache_path, 0, "the cache cannot be written");
    if (status != TBD_OK)
        forget(cache, unfinished);
    return status;
}

enum tbd_status tbd_cached_folder(const struct tbd_cached_folder *wanted, char *out, size_t bytes,
                                  struct tbd_error *why)
{
    char cache[TBD_USER_CACHE_PATH];
    enum tbd_status status = TBD_OK;
    struct stat info;
    int dir;

    if (!tbd_user_cache_path(wanted->kind, "", cache, sizeof(cache)))
        return TBD_NOTFOUND;
    dir = tbd_dir_open(cache);
    if (dir < 0)
        return TBD_NOTFOUND;
    if (!tbd_stat_below(dir, wanted->name, &info))
        status = make(wanted, dir, cache, why);
    close(dir);
    snprintf(out, bytes, "%s%s", cache, wanted->name);
    return status;
}
