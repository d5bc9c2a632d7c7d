// SPDX-License-Identifier: MIT
/* Blocking calls and signals: EINTR without SA_RESTART, a restart with it, pause, sigsuspend. */
#include "check.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int pipes[2];
static volatile int caught;

static void on_alarm(int signal)
{
    (void)signal;
    caught++;
    if (caught % 2 == 0)
        CHECK(write(pipes[1], "w", 1) == 1);
}

static void arm(int flags)
{
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };
    struct itimerval timer = { { 0, 0 }, { 0, 5000 } };

    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

int main(void)
{
    struct timespec pause_time = { 5, 0 }, rest = { 0, 0 };
    sigset_t none, blocked;
    struct pollfd p;
    char c;

    CHECK(pipe(pipes) == 0);
    p = (struct pollfd){ pipes[0], POLLIN, 0 };
    for (int i = 0; i < 5; i++) {
        arm(0);
        CHECK(read(pipes[0], &c, 1) == -1 && errno == EINTR && caught % 2 == 1);
        arm(SA_RESTART);
        CHECK(read(pipes[0], &c, 1) == 1 && c == 'w' && caught % 2 == 0);
        arm(SA_RESTART);
        CHECK(poll(&p, 1, 5000) == -1 && errno == EINTR); /* never restarted */
        arm(SA_RESTART);
        CHECK(nanosleep(&pause_time, &rest) == -1 && errno == EINTR && rest.tv_sec == 4);
        CHECK(read(pipes[0], &c, 1) == 1);
        arm(0);
        CHECK(pause() == -1 && errno == EINTR);
        sigemptyset(&none);
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGALRM);
        CHECK(sigprocmask(SIG_BLOCK, &blocked, NULL) == 0);
        arm(0);
        CHECK(sigsuspend(&none) == -1 && errno == EINTR && read(pipes[0], &c, 1) == 1);
        CHECK(sigprocmask(SIG_UNBLOCK, &blocked, NULL) == 0);
    }
    printf("%d signals\n", caught);
    return 0;
}
