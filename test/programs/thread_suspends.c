// SPDX-License-Identifier: MIT
/* Threads that wait in calls which write nothing (sigsuspend, pause, wait) while others have the kernel write memory:
 * each write belongs to the call that made it. */
// libs: pthread
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 15 };

static volatile int seen;
static volatile int is_waiting;
static unsigned char buffer[4096];
static int zero, pipes[2];

static void on_signal(int signo)
{
    (void)signo;
    seen++;
}

static void *suspend(void *unused)
{
    sigset_t none;

    sigemptyset(&none);
    for (int i = 0; i < ROUNDS; i++) {
        is_waiting = 1;
        CHECK(sigsuspend(&none) == -1 && errno == EINTR && seen == i + 1);
        memset(buffer, i, sizeof(buffer));
    }
    return unused;
}

static void *wait_child(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        int status;
        char c;
        pid_t child = fork();

        if (child == 0) {
            close(pipes[1]); /* until the other thread has written */
            _exit(read(pipes[0], &c, 1) == 1 ? c : 99);
        }
        is_waiting = 1;
        CHECK(waitpid(-1, &status, 0) == child && WEXITSTATUS(status) == i);
        memset(buffer, i, sizeof(buffer));
    }
    return unused;
}

static unsigned sum(void)
{
    unsigned all = 0;

    for (unsigned i = 0; i < sizeof(buffer); i++)
        all = all * 31 + buffer[i];
    return all;
}

static void let_wait(void)
{
    while (!is_waiting)
        sched_yield();
    is_waiting = 0;
    for (int i = 0; i < 20; i++)
        sched_yield();
    CHECK(read(zero, buffer, sizeof(buffer)) == (ssize_t)sizeof(buffer));
    memset(buffer + 100, 0x55, 100);
}

int main(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigset_t set;
    pthread_t thread;
    unsigned all = 0;

    zero = open("/dev/zero", O_RDONLY);
    CHECK(zero >= 0 && pipe(pipes) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, suspend, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        let_wait();
        all += sum();
        CHECK(pthread_kill(thread, SIGUSR1) == 0);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, wait_child, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        char c = (char)i;

        let_wait();
        all += sum();
        CHECK(write(pipes[1], &c, 1) == 1);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    printf("%u %d\n", all, seen);
    return 0;
}
