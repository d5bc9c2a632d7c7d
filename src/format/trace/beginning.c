// SPDX-License-Identifier: MIT
/* beginning.c - see beginning.h */
#include "format/trace/beginning.h"

#include "base/open_file.h"
#include "format/files/trace_dir.h"

#include <errno.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_later(const struct stat *a, const struct stat *b)
{
    return a->st_ctim.tv_sec != b->st_ctim.tv_sec ? a->st_ctim.tv_sec > b->st_ctim.tv_sec
                                                  : a->st_ctim.tv_nsec > b->st_ctim.tv_nsec;
}

enum tbd_beginning tbd_beginning_of(int dir)
{
    struct stat info;

    if (tbd_stat_below(dir, "header", &info))
        return TBD_NOT_BEGINNING;
    if (flock(dir, LOCK_SH | LOCK_NB))
        return errno == EWOULDBLOCK ? TBD_BEGINNING : TBD_NOT_BEGINNING;
    (void)flock(dir, LOCK_UN);
    /* It may have ended as it should since the header was looked for.  With an index it is a trace that has lost its header. */
    return tbd_stat_below(dir, "windows", &info) && S_ISDIR(info.st_mode) &&
                   !tbd_stat_below(dir, "header", &info) && !tbd_stat_below(dir, "index", &info)
               ? TBD_BEGUN_ONLY
               : TBD_NOT_BEGINNING;
}

/* Is it one, this user's, and later than *latest? */
static bool is_better(int root, const char *name, struct stat *latest)
{
    int dir = tbd_open_folder_below(root, name);
    struct stat info;
    bool is;

    if (dir < 0)
        return false;
    is = !fstat(dir, &info) && info.st_uid == geteuid() && is_later(&info, latest) &&
         tbd_beginning_of(dir) == TBD_BEGINNING;
    close(dir);
    if (is)
        *latest = info;
    return is;
}

bool tbd_find_beginning(const char *root, char *out, size_t bytes)
{
    int dir = tbd_dir_open(root);
    DIR *list = dir < 0 ? NULL : tbd_dir_list(dir, ".");
    struct stat latest = { 0 };
    const struct dirent *entry;
    bool found = false;

    while (list && (entry = readdir(list))) {
        if (entry->d_name[0] != '.' && is_better(dir, entry->d_name, &latest))
            found = (size_t)snprintf(out, bytes, "%s/%s", root, entry->d_name) < bytes;
    }
    if (list)
        closedir(list);
    if (dir >= 0)
        close(dir);
    return found;
}
