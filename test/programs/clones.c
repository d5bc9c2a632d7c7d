// SPDX-License-Identifier: MIT
/* Children made by clone and clone3 with flags that fork does not use: in new namespaces (where that is
 * allowed), with a thread pointer and a stack of their own, without the parent's handlers of signals. */
#define _GNU_SOURCE
#include "check.h"

#include <asm/prctl.h>
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long clone_plain(unsigned long flags, void *stack, void *tls)
{
    return syscall(SYS_clone, flags | SIGCHLD, stack, NULL, NULL, tls);
}

static int status_of(long pid)
{
    int status;

    CHECK(waitpid((pid_t)pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static uint64_t work(uint64_t n)
{
    volatile uint64_t sum = 0;

    for (uint64_t i = 0; i < n; i++)
        sum += i * i;
    return sum;
}

/* Its process id there is 1: it is the parent of all orphans, a tracer's too, so it must not have any. */
static void in_namespaces(void)
{
    long pid = clone_plain(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS, NULL, NULL);

    if (pid == 0) {
        long grandchild;

        CHECK(syscall(SYS_getpid) == 1);
        grandchild = clone_plain(0, NULL, NULL);
        if (grandchild == 0)
            _exit(work(1000) == 332833500 ? 3 : 4);
        CHECK(grandchild > 1);
        CHECK(status_of(grandchild) == 3);
        CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
        _exit(3);
    }
    CHECK(pid > 0 ? status_of(pid) == 3 : errno == EPERM || errno == ENOSPC || errno == EINVAL);
}

/* The child does without libc: its thread pointer is not libc's. */
static void with_a_thread_pointer(void)
{
    static uint64_t block[64];
    long pid;

    block[0] = (uint64_t)(uintptr_t)block;
    block[5] = 0x1234; /* the stack check reads its guard here */
    pid = clone_plain(CLONE_SETTLS, NULL, block);
    if (pid == 0) {
        uint64_t self, result;

        __asm__ volatile("mov %%fs:0, %0" : "=r"(self));
        result = self == block[0] ? 7 : 8;
        __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(result) : "rcx", "r11", "memory");
    }
    CHECK(status_of(pid) == 7);
}

/* A user namespace alone: an ordinary child, with a trace. */
static void in_a_user_namespace(void)
{
    long pid = clone_plain(CLONE_NEWUSER, NULL, NULL);

    if (pid == 0)
        _exit(work(10) == 285 ? 5 : 6);
    CHECK(pid > 0 ? status_of(pid) == 5 : errno == EPERM || errno == ENOSPC || errno == EINVAL);
}

static volatile int handled;

static void handle(int signo)
{
    handled = signo;
}

static int has_action(int signo, void (*handler)(int), int cleared)
{
    struct sigaction action;

    return sigaction(signo, NULL, &action) == 0 && action.sa_handler == handler &&
           (!cleared || action.sa_flags == 0);
}

/* Whether the handlers of the parent are those of the child.  0: all is as it should be. */
static int check_handlers(int cleared)
{
    void (*handler)(int) = cleared ? SIG_DFL : handle;

    if (!has_action(SIGUSR1, handler, cleared) || !has_action(SIGWINCH, handler, cleared) ||
        !has_action(SIGSEGV, handler, cleared) || !has_action(SIGPIPE, SIG_IGN, cleared) ||
        !has_action(SIGFPE, SIG_IGN, cleared) || !has_action(SIGTERM, SIG_DFL, cleared))
        return 1;
    handled = 0;
    raise(SIGWINCH);
    raise(SIGPIPE);
    raise(SIGFPE);
    if (handled != (cleared ? 0 : SIGWINCH))
        return 2;
    signal(SIGUSR2, handle);
    raise(SIGUSR2);
    if (handled != SIGUSR2)
        return 3;
    if (cleared)
        raise(SIGUSR1); /* ends it */
    return work(10) == 285 ? 0 : 4;
}

static void with_clone3(unsigned long flags)
{
    struct clone_args args = { .exit_signal = SIGCHLD, .flags = flags };
    int cleared = (flags & CLONE_CLEAR_SIGHAND) != 0, status;
    long pid = syscall(SYS_clone3, &args, sizeof(args));

    if (pid == 0)
        _exit(check_handlers(cleared));
    CHECK(pid > 0 && waitpid((pid_t)pid, &status, 0) == pid);
    CHECK(cleared ? WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1
                  : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* As posix_spawn of newer C libraries makes it: the child has the parent's memory and stack. */
static void with_memory_shared(void)
{
    static struct sigaction found[2]; /* as the kernel writes it: the handler first */
    static long results[2];
    struct clone_args args = { .exit_signal = SIGCHLD,
                               .flags = CLONE_CLEAR_SIGHAND | CLONE_VM | CLONE_VFORK };
    long pid;

    __asm__ volatile("syscall"
                     : "=a"(pid)
                     : "a"(SYS_clone3), "D"(&args), "S"(sizeof(args))
                     : "rcx", "r11", "memory");
    if (pid == 0) {
        results[0] = syscall(SYS_rt_sigaction, SIGUSR1, NULL, &found[0], 8);
        results[1] = syscall(SYS_rt_sigaction, SIGFPE, NULL, &found[1], 8);
        _exit(11);
    }
    CHECK(status_of(pid) == 11);
    CHECK(results[0] == 0 && found[0].sa_handler == SIG_DFL);
    CHECK(results[1] == 0 && found[1].sa_handler == SIG_IGN);
}

static void with_handlers(void)
{
    signal(SIGUSR1, handle);
    signal(SIGWINCH, handle);
    signal(SIGSEGV, handle);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGFPE, SIG_IGN);
    with_clone3(CLONE_CLEAR_SIGHAND);
    with_clone3(0);
    with_memory_shared();
    CHECK(check_handlers(0) == 0);
}

int main(void)
{
    in_namespaces();
    in_a_user_namespace();
    with_a_thread_pointer();
    with_handlers();
    printf("all children ended as they should\n");
    return 0;
}
