// SPDX-License-Identifier: MIT
/* folder.h - a folder for the files of one test program */
#ifndef TBD_TEST_FOLDER_H
#define TBD_TEST_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#define FOLDER_BYTES 64 /* of its path, at most */

/* Makes a new one, in memory where there is enough of that: tests that make and remove thousands of
 * files are kept waiting by file systems on disks.  False: it could not be made. */
static inline bool folder_make(char path[FOLDER_BYTES], const char *test)
{
    struct statvfs info;
    bool is_roomy = !statvfs("/dev/shm", &info) && info.f_bavail * info.f_frsize >= 256u << 20;

    snprintf(path, FOLDER_BYTES, "%s/tbd-test-%s-XXXXXX", is_roomy ? "/dev/shm" : "/tmp", test);
    return mkdtemp(path);
}

/* Removes one with all that is in it.  False: some of it is still there. */
static inline bool folder_remove(const char *path)
{
    char command[256];

    snprintf(command, sizeof(command), "rm -rf '%s'", path);
    return !system(command);
}

#endif
