// SPDX-License-Identifier: MIT
/* child.h - forked children of test programs */
#ifndef TEST_PROGRAMS_CHILD_H
#define TEST_PROGRAMS_CHILD_H

#include "check.h"
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* fork(); what was printed before is not printed by the child again. */
static pid_t new_process(void)
{
    pid_t child;

    fflush(stdout);
    child = fork();
    CHECK(child >= 0);
    return child;
}

/* The child exits with `status`. */
static void wait_for(pid_t child, int status)
{
    int got;
    pid_t pid;

    while ((pid = waitpid(child, &got, 0)) == -1 && errno == EINTR)
        ;
    CHECK(pid == child && WIFEXITED(got) && WEXITSTATUS(got) == status);
}

#endif
