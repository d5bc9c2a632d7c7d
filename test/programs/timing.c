// SPDX-License-Identifier: MIT
/* Clocks: the vDSO's functions go forward and agree with the plain system calls. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t ns(const struct timespec *t) { return t->tv_sec * 1000000000ll + t->tv_nsec; }

int main(void)
{
    static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_MONOTONIC_COARSE,
                                        CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID };
    struct timespec a, b, c;
    struct timeval tv;
    time_t t;

    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
        for (int n = 0; n < 50; n++) {
            CHECK(clock_gettime(clocks[i], &a) == 0);
            CHECK(syscall(SYS_clock_gettime, clocks[i], &b) == 0);
            CHECK(clock_gettime(clocks[i], &c) == 0);
            CHECK(ns(&a) <= ns(&b) && ns(&b) <= ns(&c));
        }
        CHECK(clock_getres(clocks[i], &a) == 0 && a.tv_sec == 0);
    }
    CHECK(gettimeofday(&tv, NULL) == 0 && time(&t) == t && t - tv.tv_sec <= 1);
    CHECK(sched_getcpu() >= 0 && clock() != (clock_t)-1);
    CHECK(clock_gettime(99, &a) == -1);
    puts("time ok");
    return 0;
}
