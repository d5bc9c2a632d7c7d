// SPDX-License-Identifier: MIT
/* Orphans come to this process: it finds those that it would find natively, no others, and no signals of others. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void on_child(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)context;
    CHECK(info->si_code == CLD_EXITED && info->si_status >= 3 && info->si_status <= 5);
    signals++;
}

/* A child that leaves a child of its own behind. */
static void start(int status)
{
    pid_t child = fork();

    CHECK(child >= 0);
    if (child)
        return;
    if (fork() == 0) {
        usleep(20000);
        _exit(status);
    }
    _exit(3);
}

static unsigned wait_for_all(unsigned *sum)
{
    unsigned count = 0;
    int status;

    *sum = 0;
    for (;;) {
        pid_t pid = waitpid(-1, &status, 0);

        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            break;
        CHECK(WIFEXITED(status));
        *sum += (unsigned)WEXITSTATUS(status);
        count++;
    }
    CHECK(errno == ECHILD);
    return count;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_child, .sa_flags = SA_SIGINFO };
    siginfo_t info = { 0 };
    unsigned sum;

    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    start(4);
    CHECK(wait_for_all(&sum) == 2 && sum == 7);
    CHECK(waitid(P_ALL, 0, &info, WEXITED) == -1 && errno == ECHILD);
    CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
    start(5);
    CHECK(wait_for_all(&sum) == 2 && sum == 8);
    CHECK(signals >= 1 && signals <= 2);
    puts("two each");
    return 0;
}
