// SPDX-License-Identifier: MIT
// libs: pthread
/* Processes made by threads: fork with others running and waiting, wait in another thread, vfork and exec, popen. */
#include "check.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int ends[2];
static volatile unsigned stop;

static void *run_on(void *argument)
{
    while (!stop)
        usleep(500);
    return argument;
}

static void *wait_on(void *argument)
{
    char byte;

    CHECK(read(ends[0], &byte, 1) == 1);
    return argument;
}

static int status_of(pid_t pid)
{
    int status;

    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void *inner(void *argument)
{
    return (char *)argument + 1;
}

static void *fork_here(void *argument)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) { /* its only thread is this one; it may make others */
        pthread_t thread;
        void *result;

        if (pthread_create(&thread, NULL, inner, (void *)40) || pthread_join(thread, &result))
            _exit(1);
        _exit((int)(uintptr_t)result + 1);
    }
    CHECK(status_of(pid) == 42);
    return argument;
}

static void *spawn_here(void *argument)
{
    char *const argv[] = { "sh", "-c", "exit 5", NULL };
    pid_t pid;

    CHECK(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) == 0);
    CHECK(status_of(pid) == 5);
    return argument;
}

int main(void)
{
    pthread_t threads[4];

    CHECK(pipe(ends) == 0);
    pthread_create(&threads[0], NULL, run_on, NULL);
    pthread_create(&threads[1], NULL, wait_on, NULL);
    pthread_create(&threads[2], NULL, fork_here, NULL);
    pthread_create(&threads[3], NULL, spawn_here, NULL);
    pthread_join(threads[2], NULL);
    pthread_join(threads[3], NULL);
    fork_here(NULL);
    CHECK(system("exit 3") >> 8 == 3);
    stop = 1;
    CHECK(write(ends[1], "x", 1) == 1);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    puts("forked");
    return 0;
}
