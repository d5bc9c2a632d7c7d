// SPDX-License-Identifier: MIT
/* fork and wait, exit statuses, a child that is killed, vfork and exec, posix_spawn. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile int shared_value = 5;

int main(void)
{
    char *arguments[] = { "sh", "-c", "exit 7", NULL };
    int status, pipes[2];
    siginfo_t info;
    char text[16];
    pid_t child;

    CHECK(pipe(pipes) == 0);
    for (int i = 0; i < 4; i++) {
        child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            shared_value += i;
            CHECK(write(pipes[1], "child", 5) == 5);
            _exit(shared_value);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5 + i);
        CHECK(shared_value == 5 && read(pipes[0], text, 16) == 5);
    }
    child = fork();
    if (child == 0) {
        raise(SIGTERM);
        _exit(1);
    }
    CHECK(waitid(P_PID, (id_t)child, &info, WEXITED) == 0 && info.si_code == CLD_KILLED && info.si_status == SIGTERM);
    child = vfork();
    if (child == 0) {
        execv("/bin/sh", arguments);
        _exit(127);
    }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    CHECK(posix_spawn(&child, "/no/such/program", NULL, NULL, arguments, environ) != 0);
    CHECK(wait(&status) == -1);
    puts("forks ok");
    return 0;
}
