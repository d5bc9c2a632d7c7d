// SPDX-License-Identifier: MIT
/* Jumps, calls and returns to what is no address fault themselves: their handler finds the registers from before
 * them, and once it has put an address in the target's place they are executed again. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <ucontext.h>

#define REPEATS 20

static volatile uint64_t bad = 0x8000000000001234; /* also with five levels of page tables */
static volatile uint64_t target;                   /* of branches by memory */
static uint64_t good;                              /* what becomes of the target */
static uint64_t at, stack;                         /* the branch, and rsp before it */
static unsigned faults;
static bool is_return;

static void mend(int signo, siginfo_t *info, void *context)
{
    greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;

    (void)signo;
    CHECK(info->si_code == SI_KERNEL && info->si_addr == NULL);
    CHECK(gregs[REG_TRAPNO] == 13 && gregs[REG_ERR] == 0);
    CHECK((uint64_t)gregs[REG_RIP] == at);
    CHECK((uint64_t)gregs[REG_RSP] == stack);
    if (is_return)
        *(uint64_t *)stack = good;
    else if ((uint64_t)gregs[REG_RAX] == bad)
        gregs[REG_RAX] = (greg_t)good;
    else
        target = good;
    faults++;
}

/* `branch` with rax, or `target` of memory, as its target.  Its label 1 is the branch, and it comes to 2. */
#define BRANCH(rax, branch)                                                                        \
    __asm__ volatile("lea 1f(%%rip), %%rcx; mov %%rcx, %[at]\n\t"                                  \
                     "lea 2f(%%rip), %%rcx; mov %%rcx, %[good]\n\t"                                \
                     "sub $128, %%rsp\n\t" branch "\n"                                             \
                     "2: add $128, %%rsp"                                                          \
                     : [at] "=m"(at), [good] "=m"(good), [stack] "=m"(stack), "+a"(rax)            \
                     : [target] "m"(target)                                                        \
                     : "rcx", "memory", "cc")

static void test_jumps(void)
{
    uint64_t rax = bad, other = 0;

    BRANCH(rax, "mov %%rsp, %[stack]\n1: jmp *%%rax");
    target = bad;
    BRANCH(other, "mov %%rsp, %[stack]\n1: jmp *%[target]");
    rax = bad; /* as longjmp does */
    BRANCH(rax, "mov %%rsp, %[stack]; mov %[stack], %%rsp\n1: jmp *%%rax");
}

/* A call comes to a pop of the return address. */
static void test_calls(void)
{
    uint64_t rax = bad, other = 0;

    BRANCH(rax, "mov %%rsp, %[stack]\n1: call *%%rax\n2: add $8, %%rsp; jmp 2f");
    target = bad;
    BRANCH(other, "mov %%rsp, %[stack]\n1: call *%[target]\n2: add $8, %%rsp; jmp 2f");
}

static void test_returns(void)
{
    uint64_t rax = bad;

    is_return = true;
    BRANCH(rax, "push %%rax; mov %%rsp, %[stack]\n1: ret");
    rax = bad;
    BRANCH(rax, "push %%rax; push %%rax; mov %%rsp, %[stack]\n1: ret $8");
    is_return = false;
}

/* bad_targets [REPEATS] */
int main(int argc, char **argv)
{
    unsigned repeats = argc > 1 ? (unsigned)atoi(argv[1]) : REPEATS;
    struct sigaction action = { .sa_sigaction = mend, .sa_flags = SA_SIGINFO };

    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    for (unsigned i = 0; i < repeats; i++) {
        test_jumps();
        test_calls();
        test_returns();
    }
    printf("%u faults\n", faults);
    return 0;
}
