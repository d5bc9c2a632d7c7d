// SPDX-License-Identifier: MIT
/* Real-time signals with values in order, sigwaitinfo, timer_create, SIGCHLD, SIGPIPE, setitimer virtual; the limit of
 * signals that wait. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int values[32], count, children, pipes_broken, virtual_ticks;

static void on_value(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    CHECK(info->si_code == SI_QUEUE || info->si_code == SI_TIMER);
    values[count++ % 32] = info->si_value.sival_int;
}

static void on_other(int signal)
{
    int saved = errno;

    if (signal == SIGCHLD) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            children++;
    } else if (signal == SIGPIPE) {
        pipes_broken++;
    } else {
        virtual_ticks++;
    }
    errno = saved;
}

static void check_queue(int number)
{
    sigset_t set, old;
    siginfo_t info;

    sigemptyset(&set);
    sigaddset(&set, number);
    CHECK(sigprocmask(SIG_BLOCK, &set, &old) == 0);
    for (int i = 0; i < 10; i++)
        CHECK(sigqueue(getpid(), number, (union sigval){ .sival_int = i * i }) == 0);
    CHECK(sigwaitinfo(&set, &info) == number && info.si_value.sival_int == 0);
    CHECK(count == 0 && sigprocmask(SIG_SETMASK, &old, NULL) == 0 && count == 9);
    for (int i = 0; i < 9; i++)
        CHECK(values[i] == (i + 1) * (i + 1));
}

/* No signal may wait with its details: real-time ones cannot be queued, others come without them. */
static void at_the_limit(void)
{
    static const int both[] = { SIGSEGV, SIGUSR1 };
    struct rlimit none = { 0, 0 }, before;
    struct timespec now = { 0, 0 };
    siginfo_t info;
    sigset_t set, old;

    sigfillset(&set);
    CHECK(sigprocmask(SIG_BLOCK, &set, &old) == 0 && getrlimit(RLIMIT_SIGPENDING, &before) == 0);
    none.rlim_max = before.rlim_max;
    CHECK(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
    CHECK(sigqueue(getpid(), SIGRTMIN + 2, (union sigval){ .sival_int = 1 }) == -1 && errno == EAGAIN);
    CHECK(raise(SIGRTMIN + 2) == -1 && errno == EAGAIN && kill(getpid(), SIGRTMIN + 2) == 0);
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 2);
    CHECK(sigtimedwait(&set, &info, &now) == SIGRTMIN + 2);
    CHECK(sigtimedwait(&set, &info, &now) == -1 && errno == EAGAIN);
    for (int i = 0; i < 2; i++) {
        CHECK(sigqueue(getpid(), both[i], (union sigval){ .sival_int = 1 }) == 0 && raise(both[i]) == 0);
        sigemptyset(&set);
        sigaddset(&set, both[i]);
        for (int n = 0; n < 2; n++)
            CHECK(sigtimedwait(&set, &info, &now) == both[i] && info.si_code == SI_USER);
        CHECK(sigtimedwait(&set, &info, &now) == -1 && errno == EAGAIN);
    }
    CHECK(setrlimit(RLIMIT_SIGPENDING, &before) == 0 && sigprocmask(SIG_SETMASK, &old, NULL) == 0);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_value, .sa_flags = SA_SIGINFO };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2, .sigev_value.sival_int = 4711 };
    struct itimerspec once = { .it_value = { 0, 3000000 } };
    struct itimerval virtual = { { 0, 1000 }, { 0, 1000 } }, off = { { 0, 0 }, { 0, 0 } };
    struct timespec slice = { 0, 2000000 };
    timer_t timer;
    int fds[2];

    CHECK(sigaction(SIGRTMIN + 2, &action, NULL) == 0);
    signal(SIGCHLD, on_other), signal(SIGPIPE, on_other), signal(SIGVTALRM, on_other);
    check_queue(SIGRTMIN + 2);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &once, NULL) == 0);
    while (count == 9)
        nanosleep(&slice, NULL);
    CHECK(values[9] == 4711 && timer_delete(timer) == 0);
    for (int i = 0; i < 5; i++)
        if (fork() == 0)
            _exit(i);
    while (children < 5)
        nanosleep(&slice, NULL);
    CHECK(pipe(fds) == 0 && close(fds[0]) == 0 && write(fds[1], "x", 1) == -1 && errno == EPIPE && pipes_broken == 1);
    CHECK(setitimer(ITIMER_VIRTUAL, &virtual, NULL) == 0);
    while (virtual_ticks < 3) {}
    CHECK(setitimer(ITIMER_VIRTUAL, &off, NULL) == 0);
    at_the_limit();
    printf("%d values, %d children\n", count, children);
    return 0;
}
