// SPDX-License-Identifier: MIT
/* trace_remove.c - see trace_remove.h
 *
 * A trace's folders are a few levels deep; what lies deeper is no trace of ours, and stays. */
#include "format/files/trace_remove.h"

#include "format/files/trace_dir.h"

#include "base/open_file.h"

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

enum tbd_status tbd_trace_remove(int root, const char *name)
{
    return remove_entry(root, name, DEPTH_MAX) ? TBD_OK : TBD_IO;
}
