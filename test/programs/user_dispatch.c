// SPDX-License-Identifier: MIT
// libs: pthread
/* System calls that the program has the kernel hand back to it as SIGSYS (PR_SET_SYSCALL_USER_DISPATCH): with a selector,
 * with a range that is let through, in threads, in children, with wrong arguments; calls that end the process. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET = 59, OFF = 0, ON = 1, INSIDE = 2, DISPATCHED = 2 /* SYS_USER_DISPATCH */ };

static _Thread_local volatile char selector;
static volatile int caught;
static volatile long seen[8];

/* Not through the C library: the instruction is in this file. */
static __attribute__((noinline)) long call(long number, long a, long b)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(0l)
                     : "rcx", "r11", "memory");
    return result;
}

/* Answers the call in the kernel's place. */
static void answer(int signo, siginfo_t *info, void *context)
{
    ucontext_t *u = context;

    selector = 0;
    CHECK(signo == SIGSYS && info->si_code == DISPATCHED && info->si_errno == 0);
    CHECK(info->si_call_addr == (void *)u->uc_mcontext.gregs[REG_RIP]);
    CHECK(u->uc_mcontext.gregs[REG_RCX] == u->uc_mcontext.gregs[REG_RIP]);
    CHECK(u->uc_mcontext.gregs[REG_RAX] == info->si_syscall && info->si_arch == 0xc000003e);
    seen[0] = info->si_syscall;
    seen[1] = u->uc_mcontext.gregs[REG_RDI];
    seen[2] = u->uc_mcontext.gregs[REG_RSI];
    u->uc_mcontext.gregs[REG_RAX] = 1000 + info->si_syscall;
    caught++;
}

static long set(long mode, unsigned long start, unsigned long bytes, volatile char *at)
{
    return syscall(SYS_prctl, SET, mode, start, bytes, at);
}

static void with_selector(void)
{
    CHECK(set(ON, 0, 0, &selector) == 0);
    CHECK(call(SYS_getppid, 0, 0) == getppid());
    selector = 1;
    CHECK(call(SYS_getpid, 5, 6) == 1000 + SYS_getpid && caught == 1);
    CHECK(seen[0] == SYS_getpid && seen[1] == 5 && seen[2] == 6);
    selector = 1; /* a call that there is not, and one that would end the program */
    CHECK(call(5000, 7, 8) == 6000 && caught == 2 && seen[1] == 7);
    selector = 1;
    CHECK(call(SYS_exit_group, 3, 0) == 1000 + SYS_exit_group && caught == 3);
    CHECK(call(SYS_getpid, 0, 0) == getpid() && caught == 3);
    CHECK(set(OFF, 0, 0, NULL) == 0);
    selector = 1;
    CHECK(call(SYS_getpid, 0, 0) == getpid() && caught == 3);
    selector = 0;
    puts("selector");
}

/* Without a selector every call outside of the range is dispatched, also that which ends it. */
static void with_range(void)
{
    unsigned long page = (unsigned long)call & ~4095ul;

    caught = 0;
    CHECK(set(ON, page, 8192, &selector) == 0);
    selector = 1;
    CHECK(call(SYS_getpid, 0, 0) > 0 && caught == 0); /* by its range */
    CHECK(syscall(SYS_getppid) == 1000 + SYS_getppid && caught == 1);
    CHECK(call(SYS_prctl, SET, OFF) == -EINVAL); /* rdx is 0, but r10 and r8 are not */
    selector = 0;
    CHECK(set(OFF, 0, 0, NULL) == 0);
    if (set(INSIDE, page, 8192, &selector) == 0) {
        selector = 1;
        CHECK(getppid() > 0 && caught == 1);
        CHECK(call(SYS_getpid, 0, 0) == 1000 + SYS_getpid && caught == 2);
        CHECK(set(OFF, 0, 0, NULL) == 0);
    }
    puts("range");
}

static void *in_thread(void *unused)
{
    selector = 1; /* threads do not inherit it */
    CHECK(call(SYS_getppid, 0, 0) == getppid());
    selector = 0;
    CHECK(set(ON, 0, 0, &selector) == 0);
    for (int i = 0; i < 50; i++) {
        selector = 1;
        CHECK(call(SYS_gettid, 0, 0) == 1000 + SYS_gettid);
        CHECK(call(SYS_sched_yield, 0, 0) == 0);
    }
    return unused;
}

static void threads(void)
{
    pthread_t thread[2];

    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&thread[i], NULL, in_thread, NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    CHECK(call(SYS_getpid, 0, 0) == getpid());
    puts("threads");
}

/* Children do not inherit it either. */
static void child(void)
{
    int status = 0;
    pid_t pid;

    CHECK(set(ON, 0, 0, &selector) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        selector = 1;
        _exit(getppid() > 0 ? 7 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    selector = 1;
    CHECK(call(SYS_getpid, 0, 0) == 1000 + SYS_getpid);
    CHECK(set(OFF, 0, 0, NULL) == 0);
    puts("child");
}

/* How does a child end that has `value` in the selector at `at`, and SIGSYS handled so? */
static void die(const char *what, volatile char *at, char value, void (*handler)(int), int blocked)
{
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        sigset_t sigsys;

        if (!blocked)
            signal(SIGSYS, handler);
        sigemptyset(&sigsys);
        sigaddset(&sigsys, SIGSYS);
        if (blocked)
            sigprocmask(SIG_BLOCK, &sigsys, NULL);
        CHECK(set(ON, 0, 0, at) == 0);
        selector = value;
        call(SYS_getpid, 0, 0);
        _exit(1);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("%s: signal %d\n", what, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void say(const char *what, long result)
{
    printf("%s: %s\n", what, result == 0 ? "done" : strerror(errno));
}

static void refused(void)
{
    say("off with a range", set(OFF, 1, 0, NULL));
    say("off with a length", set(OFF, 0, 1, NULL));
    say("off with a selector", set(OFF, 0, 0, &selector));
    say("no such mode", set(3, 0, 0, NULL));
    say("range that wraps", set(ON, 16, -8ul, &selector));
    say("range without length", set(ON, 16, 0, &selector));
    say("everything", set(ON, 0, -1ul, &selector));
    CHECK(set(OFF, 0, 0, NULL) == 0);
    say("selector in the kernel", set(ON, 0, 0, (volatile char *)0xffff800000001000));
    CHECK(call(SYS_getpid, 0, 0) == getpid());
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = answer, .sa_flags = SA_SIGINFO };

    if (set(OFF, 0, 0, NULL) != 0) {
        puts("no user dispatch here");
        return 77;
    }
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    with_selector();
    with_range();
    threads();
    child();
    die("default", &selector, 1, SIG_DFL, 0);
    die("ignored", &selector, 1, SIG_IGN, 0);
    die("blocked", &selector, 1, SIG_IGN, 1);
    die("no such value", &selector, 2, SIG_IGN, 1);
    die("selector nowhere", (volatile char *)16, 0, SIG_IGN, 1);
    refused();
    return 0;
}
