// SPDX-License-Identifier: MIT
/* sigaltstack, SA_ONSTACK, SA_NODEFER, SA_RESETHAND, masks in handlers, old actions, raise. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

static char alternate[65536];
static volatile int order[16], count, depth;
static sigjmp_buf back;

static int on_alternate(const void *p) { return (const char *)p >= alternate && (const char *)p < alternate + sizeof(alternate); }

static void before_any(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    printf("never set: %d\n", ((ucontext_t *)context)->uc_stack.ss_flags);
}

static void first(int signal, siginfo_t *info, void *context)
{
    stack_t now;
    int here;

    (void)context;
    CHECK(on_alternate(&here) && info->si_pid == getpid() && info->si_signo == signal);
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_ONSTACK && now.ss_sp == alternate);
    order[count++] = 1;
    raise(SIGUSR2); /* blocked while this handler runs */
    order[count++] = 2;
}

static void second(int signal)
{
    (void)signal;
    order[count++] = 3;
}

static void nested(int signal)
{
    if (++depth < 5)
        raise(signal); /* SA_NODEFER: enters again at once */
    order[count++ % 16] = 4;
}

static void overflow(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

__attribute__((noinline, optimize("O0"))) static int eat_stack(int n)
{
    volatile char pad[4096];

    __asm__ volatile("" : : "r"(pad) : "memory"); /* clang would keep one byte of it */
    pad[0] = (char)n;
    return n > (1 << 28) ? n : eat_stack(n + 1) + pad[0];
}

int main(void)
{
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) }, old;
    struct sigaction action = { .sa_sigaction = first, .sa_flags = SA_SIGINFO | SA_ONSTACK }, previous;
    struct sigaction early = { .sa_sigaction = before_any, .sa_flags = SA_SIGINFO };
    sigset_t set, pending;

    CHECK(sigaction(SIGUSR1, &early, NULL) == 0 && raise(SIGUSR1) == 0);
    CHECK(sigaltstack(NULL, &old) == 0 && old.ss_flags == SS_DISABLE && sigaltstack(&stack, NULL) == 0);
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR2);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && signal(SIGUSR2, second) == SIG_DFL);
    CHECK(raise(SIGUSR1) == 0 && count == 3 && order[0] == 1 && order[1] == 2 && order[2] == 3);
    CHECK(sigaction(SIGUSR1, NULL, &previous) == 0 && previous.sa_sigaction == first && (previous.sa_flags & SA_ONSTACK));
    CHECK(sigismember(&previous.sa_mask, SIGUSR2) == 1 && sigismember(&previous.sa_mask, SIGHUP) == 0);
    action = (struct sigaction){ .sa_handler = nested, .sa_flags = SA_NODEFER };
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && raise(SIGUSR1) == 0 && depth == 5);
    action = (struct sigaction){ .sa_handler = second, .sa_flags = (int)SA_RESETHAND };
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && raise(SIGUSR1) == 0 && sigaction(SIGUSR1, NULL, &previous) == 0);
    CHECK(previous.sa_handler == SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && raise(SIGUSR2) == 0 && sigpending(&pending) == 0);
    count = 0;
    CHECK(sigismember(&pending, SIGUSR2) == 1 && sigprocmask(SIG_UNBLOCK, &set, NULL) == 0 && count == 1);
    CHECK(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL);
    action = (struct sigaction){ .sa_handler = overflow, .sa_flags = SA_ONSTACK };
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    if (sigsetjmp(back, 1) == 0)
        eat_stack(0);
    puts("signal stacks ok");
    return 0;
}
