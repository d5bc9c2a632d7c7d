// SPDX-License-Identifier: MIT
// libs: pthread
/* Filters of threads: inherited, of one thread alone, shared with all, and the end of one thread. */
#include "check.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t barrier;

static long refuse(unsigned number, unsigned action, unsigned flags)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { 4, filter };

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void *inherit(void *argument)
{
    CHECK(syscall(SYS_getppid) == -1 && errno == 71);
    CHECK(refuse(SYS_getuid, SECCOMP_RET_ERRNO | 72, 0) == 0); /* this thread's alone */
    CHECK(syscall(SYS_getuid) == -1 && errno == 72);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    CHECK(syscall(SYS_getgid) >= 0);
    return argument;
}

static void *take_part(void *argument)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    CHECK(syscall(SYS_getgid) == -1 && errno == 73);
    return argument;
}

static void *die_alone(void *argument)
{
    CHECK(refuse(SYS_getegid, SECCOMP_RET_KILL_THREAD, 0) == 0);
    syscall(SYS_getegid);
    CHECK(!argument); /* not reached */
    return argument;
}

int main(void)
{
    pthread_t thread, other;

    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    pthread_barrier_init(&barrier, NULL, 2);
    CHECK(refuse(SYS_getppid, SECCOMP_RET_ERRNO | 71, 0) == 0);
    pthread_create(&thread, NULL, inherit, NULL);
    pthread_barrier_wait(&barrier);
    CHECK(syscall(SYS_getuid) == getuid());
    CHECK(refuse(SYS_getgid, SECCOMP_RET_ERRNO | 73, SECCOMP_FILTER_FLAG_TSYNC) > 0); /* it has one that we have not */
    CHECK(syscall(SYS_getgid) >= 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, take_part, NULL);
    pthread_barrier_wait(&barrier);
    CHECK(refuse(SYS_getgid, SECCOMP_RET_ERRNO | 73, SECCOMP_FILTER_FLAG_TSYNC) == 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_create(&other, NULL, die_alone, &thread);
    CHECK(pthread_join(other, NULL) == 0);
    puts("each its own");
    return 0;
}
