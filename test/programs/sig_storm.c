// SPDX-License-Identifier: MIT
/* Signals from another process as fast as it can send them, into computations, string instructions and system
 * calls: none of what they interrupt may change, and no queued one may be lost. */
// options: children=no
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SENT 3000
static volatile sig_atomic_t users, queued, children;
static volatile uint64_t sum;
static volatile int inside;

static void on_user(int signo)
{
    (void)signo;
    users++;
}

static void on_queued(int signo, siginfo_t *info, void *context)
{
    (void)context;
    CHECK(signo == SIGRTMIN && info->si_code == SI_QUEUE && !inside);
    inside = 1; /* not SA_NODEFER: one at a time */
    sum += (uint64_t)info->si_value.sival_int;
    queued++;
    inside = 0;
}

static void on_child(int signo)
{
    (void)signo;
    children = 1;
}

static void send_all(pid_t to)
{
    for (int i = 1; i <= SENT; i++) {
        union sigval value = { .sival_int = i };

        kill(to, i % 3 ? SIGUSR1 : SIGUSR2);
        while (sigqueue(to, SIGRTMIN, value) != 0)
            CHECK(errno == EAGAIN);
    }
    _exit(0);
}

static uint64_t work(uint64_t *state)
{
    static char from[3000], to[3000];
    uint64_t hash = 0;

    for (int i = 0; i < 200; i++)
        hash += check_random(state) % 1000003 * 3;
    memset(from, (int)(hash & 0x7f), sizeof(from));
    memcpy(to, from, sizeof(to));
    CHECK(to[2999] == (char)(hash & 0x7f) && to[0] == to[1500]);
    CHECK(getppid() > 0);
    return hash;
}

int main(void)
{
    struct sigaction queue = { .sa_sigaction = on_queued, .sa_flags = SA_SIGINFO | SA_RESTART };
    uint64_t state = 88172645463325252u, hash = 0;
    struct timespec nap = { .tv_nsec = 1000000 };
    pid_t child, self = getpid();
    int status, rounds = 0;

    signal(SIGUSR1, on_user);
    signal(SIGUSR2, on_user);
    signal(SIGCHLD, on_child);
    CHECK(sigaction(SIGRTMIN, &queue, NULL) == 0);
    child = fork();
    if (child == 0)
        send_all(self);
    while (!children || queued < SENT || rounds < 400) {
        hash = hash * 31 + work(&state);
        if (++rounds == 400)
            printf("%016lx\n", (unsigned long)hash);
        if (rounds > 400)
            nanosleep(&nap, NULL);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(queued == SENT && sum == (uint64_t)SENT * (SENT + 1) / 2 && users > 0);
    puts("all arrived");
    return 0;
}
