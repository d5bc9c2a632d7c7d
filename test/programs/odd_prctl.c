// SPDX-License-Identifier: MIT
// libs: pthread
/* prctl in ways that reach the engine's own state: the word that the kernel clears at a thread's end, asked for and set
 * again; filters that are not there. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *low;

/* The C library has the word in the thread's descriptor. */
static void *ask(void *unused)
{
    char *word = NULL, *self = (char *)pthread_self();

    if (prctl(PR_GET_TID_ADDRESS, &word) != 0) {
        CHECK(errno == EINVAL); /* a kernel without checkpoints */
        return unused;
    }
    CHECK(word >= self && word < self + 4096 && *(int *)(void *)word == gettid());
    CHECK(syscall(SYS_set_tid_address, word) == gettid());
    CHECK(prctl(PR_GET_TID_ADDRESS, &low) == 0 && low == word);
    CHECK(prctl(PR_GET_TID_ADDRESS, (char **)16) == -1 && errno == EFAULT);
    return unused;
}

static void threads(void)
{
    for (int i = 0; i < 3; i++) {
        pthread_t thread;

        ask(NULL);
        CHECK(pthread_create(&thread, NULL, ask, NULL) == 0);
        ask(NULL);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    puts("threads");
}

static void say(const char *what, long result)
{
    printf("%s: %s\n", what, result == 0 ? "done" : strerror(errno));
}

static void filters(void)
{
    struct sock_fprog none = { 1, NULL }, empty = { 0, NULL }, nowhere = { 1, (void *)16 };

    for (int i = 0; i < 2; i++) {
        say("no program", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
        say("program nowhere", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 16L));
        say("no filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &none));
        say("empty filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &empty));
        say("filter nowhere", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &nowhere));
        say("no such mode", prctl(PR_SET_SECCOMP, 77L, &none));
        say("seccomp, no program", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
        say("seccomp, no filter", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &none));
        say("seccomp, flags", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 1 << 30, NULL));
        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    }
}

int main(void)
{
    threads();
    filters();
    return 0;
}
