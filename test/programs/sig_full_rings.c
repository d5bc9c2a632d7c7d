// SPDX-License-Identifier: MIT
// libs: pthread
/* SIGBUS, again and again, to a thread that only computes: none is lost, however often the rings of what runs are full.  That is a
 * SIGSEGV, in whose handler only these two can come. */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { SIGNALS = 200 };

static volatile unsigned count, wrong, stop, work;

static void on_signal(int signo, siginfo_t *info, void *context)
{
    (void)context;
    wrong += info->si_signo != signo || info->si_code != SI_TKILL;
    count++;
}

static void *compute(void *argument)
{
    while (!stop)
        work = work & 1 ? work * 3 + 1 : work / 2 + 12345;
    return argument;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    pthread_t thread;

    CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, compute, NULL) == 0);
    for (unsigned i = 0; i < SIGNALS; i++) {
        CHECK(pthread_kill(thread, SIGBUS) == 0);
        while (count == i)
            sched_yield();
    }
    stop = 1;
    CHECK(pthread_join(thread, NULL) == 0 && wrong == 0);
    printf("%u\n", count);
    return 0;
}
