// SPDX-License-Identifier: MIT
/* A timer interrupts a computation; its result must not change, the handler must run. */
#include "check.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t ticks;
static volatile double scratch = 1;

static void on_alarm(int signal)
{
    (void)signal;
    ticks++;
    scratch = scratch * 1.5 > 100 ? 1 : scratch * 1.5; /* vector registers in the handler */
}

int main(void)
{
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    struct itimerval timer = { { 0, 2000 }, { 0, 2000 } }, off = { { 0, 0 }, { 0, 0 } };
    double sum = 0;
    uint64_t x = 88172645463325252u;
    unsigned rounds = 0;

    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
    while (ticks < 20 && rounds < 200) {
        uint64_t hash = 88172645463325252u;
        double partial = 0;

        for (int i = 0; i < 100000; i++) {
            check_random(&hash);
            partial += (double)(hash >> 40) * 0.25;
        }
        CHECK(rounds == 0 || (hash == x && partial == sum));
        x = hash;
        sum = partial;
        rounds++;
    }
    setitimer(ITIMER_REAL, &off, NULL);
    CHECK(ticks > 0);
    printf("%016llx %.2f\n", (unsigned long long)x, sum);
    return 0;
}
