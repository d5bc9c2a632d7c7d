// SPDX-License-Identifier: MIT
/* folder.h - a folder for the files of one test program */
#ifndef TBD_TEST_FOLDER_H
#define TBD_TEST_FOLDER_H

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

/* Removes a folder with all its contents.  False: some of it is left. */
static inline bool folder_remove(const char *path)
{
    char command[256];

    snprintf(command, sizeof(command), "rm -rf '%s'", path);
    return !system(command);
}

#endif
