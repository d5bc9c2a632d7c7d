// SPDX-License-Identifier: MIT
/* clock.h - elapsed time (not in the engine, which has no libc) */
#ifndef TBD_BASE_CLOCK_H
#define TBD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since a moment that is the same for all processes; clock_gettime(2),
 * CLOCK_MONOTONIC. */
static inline uint64_t tbd_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
