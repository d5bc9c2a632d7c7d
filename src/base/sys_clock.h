// SPDX-License-Identifier: MIT
/* sys_clock.h - elapsed time without libc: base/clock.h for the engine */
#ifndef TBD_BASE_SYS_CLOCK_H
#define TBD_BASE_SYS_CLOCK_H

#include "base/linux_abi.h"
#include "base/sys.h"

/* Nanoseconds of CLOCK_MONOTONIC, clock_gettime(2). */
static inline uint64_t tbd_sys_clock_ns(void)
{
    uint64_t now[2] = { 0, 0 };

    tbd_sys3(__NR_clock_gettime, CLOCK_MONOTONIC, tbd_sys_pointer(now), 0);
    return now[0] * 1000000000 + now[1];
}

#endif
