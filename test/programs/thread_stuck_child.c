// SPDX-License-Identifier: MIT
// libs: pthread
// end: detached
// missing: without giving way
/* A child of vfork waits for another thread of its parent, which natively goes on: the program is let go, and does so. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2];
static volatile char got;

static void *fork_and_wait(void *argument)
{
    pid_t child = vfork();
    int status;

    if (child == 0) {
        char byte = 0;

        _exit(read(ends[0], &byte, 1) == 1 && (got = byte) == 'x' ? 4 : 5);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 4);
    CHECK(got == 'x');
    return argument;
}

int main(void)
{
    pthread_t thread;
    void *result;

    CHECK(pipe(ends) == 0);
    CHECK(pthread_create(&thread, NULL, fork_and_wait, &ends) == 0);
    usleep(10000);
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(pthread_join(thread, &result) == 0 && result == &ends);
    puts("forked");
    return 0;
}
