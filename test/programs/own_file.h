// SPDX-License-Identifier: MIT
/* own_file.h - an empty file that has no name any more, made without a look at the clock
 *
 * mkstemp() reads it: how often the vDSO tries that again depends on the time, so that two runs differ (test_rings.py steps programs). */
#ifndef TEST_PROGRAMS_OWN_FILE_H
#define TEST_PROGRAMS_OWN_FILE_H

#include "check.h"
#include <fcntl.h>
#include <unistd.h>

static inline int make_own_file(void)
{
    char name[] = "/tmp/tbd-own-file-0000000000";
    unsigned pid = (unsigned)getpid();
    int fd;

    for (char *at = name + sizeof(name) - 2; *at != '-'; at--, pid /= 10)
        *at = (char)('0' + pid % 10);
    fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && unlink(name) == 0);
    return fd;
}

#endif
