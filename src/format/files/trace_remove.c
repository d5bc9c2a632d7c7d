// SPDX-License-Identifier: MIT
/* trace_remove.c - see trace_remove.h
 *
 * A trace's folders are a few levels deep; what lies deeper is no trace of ours, and stays. */
#include "format/files/trace_remove.h"

#include "format/files/trace_dir.h"

#include "base/open_file.h"

#include <sys/file.h>
#include <time.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 8u

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static uint64_t bytes_below(int dir, unsigned depth)
{
    DIR *entries = tbd_dir_list(dir, ".");
    struct dirent *entry;
    uint64_t sum = 0;

    while (entries && (entry = readdir(entries))) {
        struct stat info;
        int below;

        if (is_dots(entry->d_name) || !tbd_stat_below(dir, entry->d_name, &info))
            continue;
        sum += (uint64_t)info.st_blocks * 512;
        if (!S_ISDIR(info.st_mode) || depth == 0)
            continue;
        below = tbd_open_folder_below(dir, entry->d_name);
        if (below < 0)
            continue;
        sum += bytes_below(below, depth - 1);
        close(below);
    }
    if (entries)
        closedir(entries);
    return sum;
}

uint64_t tbd_trace_disk_bytes(int dir)
{
    return bytes_below(dir, DEPTH_MAX);
}

static bool empty(int dir, unsigned depth);

static bool remove_entry(int dir, const char *name, unsigned depth)
{
    struct stat info;
    bool good;
    int below;

    if (!tbd_stat_below(dir, name, &info))
        return false;
    if (!S_ISDIR(info.st_mode))
        return !unlinkat(dir, name, 0);
    below = tbd_open_folder_below(dir, name);
    if (below < 0)
        return false;
    good = depth != 0 && empty(below, depth - 1);
    close(below);
    return good && !unlinkat(dir, name, AT_REMOVEDIR);
}

static bool empty(int dir, unsigned depth)
{
    DIR *entries = tbd_dir_list(dir, ".");
    struct dirent *entry;
    bool good = entries;

    while (entries && (entry = readdir(entries))) {
        if (!is_dots(entry->d_name))
            good = remove_entry(dir, entry->d_name, depth) && good;
    }
    if (entries)
        closedir(entries);
    return good;
}

/* Who counts the trace's windows must not make files in folders that are about to go.  The lock's descriptor, or -1. */
static int keep_writers_away(int root, const char *name)
{
    const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
    int dir = tbd_open_folder_below(root, name);
    int header = dir < 0 ? -1 : tbd_open_below(dir, "header", O_RDONLY);

    for (int i = 0; header >= 0 && i < 50 && flock(header, LOCK_EX | LOCK_NB); i++)
        nanosleep(&pause, NULL);
    if (dir >= 0)
        close(dir);
    return header;
}

enum tbd_status tbd_trace_remove(int root, const char *name)
{
    int header = keep_writers_away(root, name);
    bool good = remove_entry(root, name, DEPTH_MAX);

    if (header >= 0)
        close(header);
    return good ? TBD_OK : TBD_IO;
}
