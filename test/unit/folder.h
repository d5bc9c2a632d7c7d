// SPDX-License-Identifier: MIT
/* folder.h - a folder for the files of one test program */
#ifndef TBD_TEST_FOLDER_H
#define TBD_TEST_FOLDER_H

#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#define FOLDER_BYTES 64 /* of a path, at most */

/* Makes a new folder, in memory if there is enough: file systems on disks slow down tests that make
 * and remove thousands of files.  False: it could not be made. */
static inline bool folder_make(char path[FOLDER_BYTES], const char *test)
{
    struct statvfs info;
    bool is_roomy = !statvfs("/dev/shm", &info) && info.f_bavail * info.f_frsize >= 256u << 20;

    snprintf(path, FOLDER_BYTES, "%s/tbd-test-%s-XXXXXX", is_roomy ? "/dev/shm" : "/tmp", test);
    return mkdtemp(path);
}

static inline int folder_remove_entry(const char *path, const struct stat *info, int kind,
                                      struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

/* Removes a folder with all its contents, without a process for it: tests do that thousands of
 * times.  False: some of it is left. */
static inline bool folder_remove(const char *path)
{
    return !nftw(path, folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS) || errno == ENOENT;
}

#endif
