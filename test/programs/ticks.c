// SPDX-License-Identifier: MIT
/* A timer that ticks faster than windows turn, over system calls, allocation, string functions and floating
 * point: nothing the interrupted code computes may change. */
#include "check.h"
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile unsigned ticks;
static volatile double in_handler = 1.0;

static void on_tick(int signal, siginfo_t *info, void *context)
{
    char buffer[64];

    (void)info;
    (void)context;
    memset(buffer, (int)++ticks, sizeof(buffer));
    in_handler *= 1.0000001;
    if (signal != SIGALRM || buffer[63] != (char)ticks)
        _exit(9);
}

static unsigned long through_pipe(const int *fd, unsigned long value)
{
    unsigned long back = 0;

    CHECK(write(fd[1], &value, sizeof(value)) == sizeof(value));
    CHECK(read(fd[0], &back, sizeof(back)) == sizeof(back));
    return back;
}

#define ROUNDS 20000

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
    struct itimerval timer = { { 0, 200 }, { 0, 200 } };
    unsigned long sum = 0;
    double total = 0;
    double step = 3.0;
    int fd[2];

    CHECK(pipe(fd) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    for (unsigned i = 0; i < ROUNDS || ticks < 20; i++) {
        unsigned n = i % ROUNDS;
        char *block = malloc(n % 1000 + 1);

        memset(block, (int)n, n % 1000 + 1);
        if (i < ROUNDS) {
            sum = sum * 31 + n + (unsigned char)block[n % 1000];
            total += step * n;
            step = step > 100 ? 1 : step + 0.5;
            if (n % 50 == 0)
                CHECK(through_pipe(fd, sum) == sum);
        }
        free(block);
    }
    memset(&timer, 0, sizeof(timer));
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0 && in_handler > 1);
    printf("%lu %.3f\n", sum, total);
    return 0;
}
