// SPDX-License-Identifier: MIT
/* signals.c - `signals N [MICROSECONDS]`: N signals that the program sends itself with kill, and nothing else; or while a
 * timer sends others so often.  How many the timer sends depends on the time, so stderr has their number: who divides by N
 * what the program takes must not have the timer. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t own;
static volatile sig_atomic_t ticks;

static void count(int number)
{
    if (number == SIGUSR1)
        own++;
    else
        ticks++;
}

int main(int argc, char **argv)
{
    const struct itimerval off = { { 0, 0 }, { 0, 0 } };
    uint64_t signals = argc >= 2 ? strtoull(argv[1], NULL, 10) : 0;
    long every = argc >= 3 ? strtol(argv[2], NULL, 10) : 0;
    struct itimerval fast = { { 0, every }, { 0, every } };
    struct sigaction act = { .sa_handler = count, .sa_flags = SA_RESTART };

    sigaction(SIGUSR1, &act, NULL);
    sigaction(SIGALRM, &act, NULL);
    if (every && setitimer(ITIMER_REAL, &fast, NULL))
        return 1;
    for (uint64_t i = 0; i < signals; i++)
        if (kill(getpid(), SIGUSR1))
            return 1;
    if (setitimer(ITIMER_REAL, &off, NULL))
        return 1;
    printf("%d\n", (int)own);
    if (every)
        fprintf(stderr, "%d of the timer\n", (int)ticks);
    return !every || ticks ? 0 : 1;
}
