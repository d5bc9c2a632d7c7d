// SPDX-License-Identifier: MIT
/* Signal frames that cannot be written (stack overflow, no signal stack, a full one) and frames that rt_sigreturn does
 * not accept: the kernel's SIGSEGV comes in their place, or ends the program. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK = 65536 };

static char *stack;
static volatile int segv_code, segv_count, others;
static sigjmp_buf back;
static volatile uint64_t seen_rax;

static void on_other(int signo)
{
    (void)signo;
    others++;
}

static void on_segv(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    segv_code = info->si_code;
    segv_count++;
    seen_rax = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX];
    siglongjmp(back, 1);
}

static void handle(int signo, void (*handler)(int), int flags)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

    CHECK(sigaction(signo, &action, NULL) == 0);
}

static void handle_segv(int flags)
{
    struct sigaction action = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | flags };

    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    segv_count = segv_code = others = 0;
}

static void set_stack(void *at, size_t bytes)
{
    stack_t set = { .ss_sp = at, .ss_size = bytes };

    CHECK(sigaltstack(&set, NULL) == 0);
}

static int is_blocked(int signo)
{
    sigset_t now;

    CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
    return sigismember(&now, signo);
}

/* Makes kill(getpid(), signo) with the stack pointer at `sp`. */
static void kill_at(void *sp, int signo)
{
    __asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tsyscall\n\tmov %%rbx, %%rsp"
                     :
                     : "r"(sp), "a"(SYS_kill), "D"(getpid()), "S"(signo)
                     : "rbx", "rcx", "r11", "memory");
}

static void divide_at(void *sp)
{
    __asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tdiv %1\n\tmov %%rbx, %%rsp"
                     :
                     : "r"(sp), "r"(0), "a"(1), "d"(0)
                     : "rbx", "memory");
}

static void show(const char *what)
{
    printf("%s: %d SIGSEGV, code %d, %d others, blocked %d %d\n", what, segv_count, segv_code, others,
           is_blocked(SIGSEGV), is_blocked(SIGUSR1));
}

/* The signal stack is not there; SIGSEGV uses the program's. */
static void no_signal_stack(char *nowhere)
{
    set_stack(nowhere, STACK);
    handle(SIGUSR1, on_other, SA_ONSTACK);
    handle_segv(0);
    for (int i = 0; i < 3; i++)
        if (!sigsetjmp(back, 1))
            raise(SIGUSR1);
    show("no signal stack");
    handle(SIGUSR1, on_other, SA_ONSTACK | SA_RESETHAND);
    if (!sigsetjmp(back, 1))
        raise(SIGUSR1);
    CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
    show("once");
}

/* The stack pointer is nowhere; SIGSEGV has its own stack. */
static void no_stack(char *nowhere)
{
    set_stack(stack, STACK);
    handle(SIGUSR1, on_other, 0);
    handle(SIGFPE, on_other, 0);
    handle_segv(SA_ONSTACK);
    if (!sigsetjmp(back, 1))
        kill_at(nowhere + STACK, SIGUSR1);
    show("no stack");
    if (!sigsetjmp(back, 1))
        divide_at(nowhere + STACK);
    show("no stack for a fault");
    if (!sigsetjmp(back, 1))
        kill_at((char *)0x10, SIGUSR1);
    show("address 0");
    if (!sigsetjmp(back, 1))
        kill_at((char *)0x8000000000000000, SIGUSR1);
    show("no address");
    handle(SIGUSR1, on_other, SA_NODEFER); /* a stack that ends in its frame */
    if (!sigsetjmp(back, 1))
        kill_at(nowhere + 2 * STACK + 700, SIGUSR1);
    show("part of a stack");
}

static volatile int deep;

static __attribute__((noinline)) int recurse(int n)
{
    volatile char some[4096];

    some[0] = (char)n;
    deep = n;
    return n < 0 ? 0 : recurse(n + 1) + some[0]; /* never that long */
}

static void overflow(void)
{
    handle_segv(SA_ONSTACK);
    if (!sigsetjmp(back, 1))
        recurse(0);
    CHECK(deep > 100);
    segv_code = 0;
    show("overflow");
}

/* In a child: how it ends. */
static void child(const char *what, void (*function)(void))
{
    int status;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        function();
        _exit(others);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("%s: %s %d\n", what, WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static char *outside;

static void nowhere_by_default(void)
{
    handle(SIGUSR1, on_other, 0);
    signal(SIGSEGV, SIG_DFL);
    kill_at(outside + STACK, SIGUSR1);
}

static void nowhere_ignored(void)
{
    handle(SIGUSR1, on_other, 0);
    signal(SIGSEGV, SIG_IGN);
    kill_at(outside + STACK, SIGUSR1);
}

static void nowhere_blocked(void)
{
    sigset_t set;

    handle(SIGUSR1, on_other, 0);
    handle_segv(SA_ONSTACK);
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill_at(outside + STACK, SIGUSR1);
}

static void segv_nowhere(void)
{
    handle_segv(0);
    kill_at(outside + STACK, SIGSEGV);
}

static void on_full(int signo)
{
    (void)signo;
    others++;
    kill_at(stack + 600, SIGUSR2); /* below it there is memory, but not of the signal stack */
}

static void full(void)
{
    set_stack(stack, STACK);
    handle(SIGUSR1, on_full, SA_ONSTACK);
    handle(SIGUSR2, on_other, SA_ONSTACK);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGUSR1);
}

/* ---- returns ---- */

static void return_at(void *sp)
{
    __asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tsyscall\n\tud2" : : "r"(sp), "a"(SYS_rt_sigreturn) : "rbx", "rcx", "r11", "memory");
}

static int edit;

/* Bits of the vector state that no processor has. */
static void on_edit(int signo, siginfo_t *info, void *pointer)
{
    ucontext_t *context = pointer;
    struct _libc_fpstate *state = context->uc_mcontext.fpregs;

    (void)signo, (void)info;
    context->uc_mcontext.gregs[REG_RAX] = 0x1234;
    if (edit == 0)
        state->mxcsr |= 0x80000000u;
    else if (edit == 1)
        context->uc_mcontext.fpregs = (void *)outside;
    else
        ((uint64_t *)((char *)state + 512))[1] = ~0ull; /* xcomp_bv */
}

static void bad_returns(void)
{
    struct sigaction action = { .sa_sigaction = on_edit, .sa_flags = SA_SIGINFO };

    handle_segv(SA_ONSTACK);
    if (!sigsetjmp(back, 1))
        return_at(outside + STACK);
    CHECK(seen_rax == 0);
    show("no frame");
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (edit = 0; edit < 3; edit++) {
        handle_segv(0);
        seen_rax = 1;
        if (!sigsetjmp(back, 1))
            raise(SIGUSR1);
        CHECK(seen_rax == 0);
        show("bad state");
    }
}

int main(void)
{
    char *all = mmap(NULL, 8 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(all != MAP_FAILED);
    outside = all + STACK;
    CHECK(mprotect(outside, 2 * STACK, PROT_NONE) == 0);
    stack = all + 5 * STACK;
    no_signal_stack(outside);
    no_stack(outside);
    overflow();
    child("by default", nowhere_by_default);
    child("ignored", nowhere_ignored);
    child("blocked", nowhere_blocked);
    child("SIGSEGV", segv_nowhere);
    child("full", full);
    bad_returns();
    return 0;
}
