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
static volatile int caught, is_writing;

static void on_alarm(int signal)
{
    (void)signal;
    caught++;
    if (is_writing) {
        is_writing = 0;
        CHECK(write(pipes[1], "w", 1) == 1);
    }
}

static void set_timer(long microseconds)
{
    struct itimerval timer = { { 0, microseconds }, { 0, microseconds } };

    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

/* Again and again: on a busy machine one comes before the call that is to be interrupted. */
static void arm(int flags, int writes)
{
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };

    set_timer(0);
    is_writing = writes;
    caught = 0;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    set_timer(5000);
}

int main(void)
{
    struct timespec pause_time = { 60, 0 }, rest = { 0, 0 };
    sigset_t none, blocked;
    struct pollfd p;
    int rounds;
    char c;

    CHECK(pipe(pipes) == 0);
    p = (struct pollfd){ pipes[0], POLLIN, 0 };
    for (rounds = 0; rounds < 5; rounds++) {
        arm(0, 0);
        CHECK(read(pipes[0], &c, 1) == -1 && errno == EINTR && caught > 0);
        arm(SA_RESTART, 1);
        CHECK(read(pipes[0], &c, 1) == 1 && c == 'w' && caught > 0);
        arm(SA_RESTART, 0);
        CHECK(poll(&p, 1, 60000) == -1 && errno == EINTR && caught > 0); /* never restarted */
        arm(SA_RESTART, 0);
        CHECK(nanosleep(&pause_time, &rest) == -1 && errno == EINTR && rest.tv_sec < 60);
        arm(0, 0);
        CHECK(pause() == -1 && errno == EINTR && caught > 0);
        sigemptyset(&none);
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGALRM);
        CHECK(sigprocmask(SIG_BLOCK, &blocked, NULL) == 0);
        arm(0, 1);
        CHECK(sigsuspend(&none) == -1 && errno == EINTR && read(pipes[0], &c, 1) == 1 && c == 'w');
        set_timer(0);
        CHECK(sigprocmask(SIG_UNBLOCK, &blocked, NULL) == 0);
    }
    printf("%d rounds\n", rounds);
    return 0;
}
