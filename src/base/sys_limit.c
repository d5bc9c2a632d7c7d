// SPDX-License-Identifier: MIT
/* sys_limit.c - see sys_limit.h */
#include "base/sys_limit.h"

#include "base/linux_abi.h"
#include "base/sys.h"

struct tbd_sys_limit tbd_sys_limit_lift(uint32_t resource)
{
    struct tbd_sys_limit was = { RLIM64_INFINITY, RLIM64_INFINITY };
    struct tbd_sys_limit lifted;

    tbd_sys4(__NR_prlimit64, 0, resource, 0, tbd_sys_pointer(&was));
    lifted = (struct tbd_sys_limit){ was.upper, was.upper };
    if (was.lower != was.upper)
        tbd_sys4(__NR_prlimit64, 0, resource, tbd_sys_pointer(&lifted), 0);
    return was;
}

void tbd_sys_limit_put_back(uint32_t resource, const struct tbd_sys_limit *was)
{
    if (was->lower != was->upper)
        tbd_sys4(__NR_prlimit64, 0, resource, tbd_sys_pointer(was), 0);
}

/* The number that was opened stays valid below the limit as it was. */
int tbd_sys_limit_open(int (*make)(void))
{
    struct tbd_sys_limit was;
    int fd = make();

    if (fd != -EMFILE)
        return fd;
    was = tbd_sys_limit_lift(RLIMIT_NOFILE);
    fd = make();
    tbd_sys_limit_put_back(RLIMIT_NOFILE, &was);
    return fd;
}
