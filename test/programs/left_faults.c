// SPDX-License-Identifier: MIT
/* Faults in blocks that end with an indirect call, jump or return, whose handlers leave by longjmp, or return to the next instruction: what is entered
 * next could be where those lead. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#define UNUSED __attribute__((unused))

static sigjmp_buf back;
static volatile int sum, faults, leaves;

static void on_fault(int signo, siginfo_t *info, void *context)
{
    ucontext_t *u = context;

    (void)signo, (void)info;
    faults++;
    if (leaves)
        siglongjmp(back, 1);
    u->uc_mcontext.gregs[REG_RIP] += 2; /* over the load */
}

__attribute__((noinline)) static int callee(int x)
{
    sum += x;
    return x;
}

/* The load has two bytes. */
__attribute__((noinline)) static int calls(int (*function)(int), const int *at)
{
    int result;

    __asm__ volatile("mov $7, %%edi; mov (%%rcx), %%edi; mov $3, %%edx; call *%[function]"
                     : "=a"(result)
                     : [function] "r"(function), "c"(at)
                     : "rdi", "rsi", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
    return result;
}

__attribute__((naked, noinline)) static int jumps(int (*function)(int) UNUSED, const int *at UNUSED)
{
    __asm__ volatile("mov %rdi, %rax; mov %rsi, %rcx; mov $5, %edi; mov (%rcx), %edi; mov $3, %edx; jmp *%rax");
}

__attribute__((naked, noinline)) static int returns(int (*function)(int) UNUSED, const int *at UNUSED)
{
    __asm__ volatile("mov %rsi, %rcx; mov $1, %eax; mov (%rcx), %edi; ret");
}

int main(void)
{
    int (*volatile const kinds[])(int (*)(int), const int *) = { calls, jumps, returns };
    const int good = 2, *volatile bad = (const int *)16;
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    for (int round = 0; round < 30; round++) {
        leaves = round % 3 == 0;
        if (sigsetjmp(back, 1) == 0)
            sum += kinds[round % 9 / 3](callee, round % 3 == 2 ? &good : bad);
    }
    printf("%d %d\n", sum, faults);
    CHECK(faults == 20);
    return 0;
}
