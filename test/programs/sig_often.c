// SPDX-License-Identifier: MIT
/* A thread that calls is interrupted every few microseconds, between all of its instructions, by a handler that calls the same function. */
#include "check.h"
#include <signal.h>
#include <time.h>

enum { SIGNALS = 2000 };

static timer_t timer;
static volatile unsigned count, sum;

static __attribute__((noinline)) unsigned half(unsigned n)
{
    return n & 1 ? n * 3 + 1 : n / 2;
}

static void interrupt_soon(void)
{
    struct itimerspec when = { .it_value.tv_nsec = 1 + count % 64 * 250 };

    CHECK(timer_settime(timer, 0, &when, NULL) == 0);
}

static void on_signal(int signo)
{
    sum += half((unsigned)signo);
    if (count++ < SIGNALS)
        interrupt_soon();
}

int main(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    volatile unsigned n = 1;

    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    interrupt_soon();
    while (count <= SIGNALS)
        n = half(n);
    printf("%u signals\n", count);
    return 0;
}
