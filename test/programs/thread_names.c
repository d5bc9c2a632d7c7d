// SPDX-License-Identifier: MIT
// libs: pthread
/* Names: a thread has its creator's until it gives itself one. */
#include "check.h"
#include <pthread.h>
#include <sys/prctl.h>

static void *quiet(void *argument)
{
    char name[16];

    CHECK(!prctl(PR_GET_NAME, name));
    return strcmp(name, argument) ? NULL : argument;
}

static void *named(void *argument)
{
    char name[16];

    CHECK(!prctl(PR_SET_NAME, "worker two"));
    CHECK(!prctl(PR_GET_NAME, name) && !strcmp(name, "worker two"));
    return argument;
}

static void check_one(void *(*work)(void *), const char *name)
{
    pthread_t thread;
    void *result;

    CHECK(!pthread_create(&thread, NULL, work, (void *)(uintptr_t)name));
    CHECK(!pthread_join(thread, &result) && result);
}

int main(void)
{
    check_one(quiet, "thread_names");
    check_one(named, "x");
    CHECK(!prctl(PR_SET_NAME, "renamed main"));
    check_one(quiet, "renamed main");
    printf("names kept\n");
    return 0;
}
