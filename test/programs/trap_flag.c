// SPDX-License-Identifier: MIT
// end: detached
// missing: trap flag
// native: trap flag
/* A program that executes its own instructions one at a time: it is let go before the popf that sets the trap flag, and
 * its handler comes after each instruction, as without us.  A popf that does not set it is nothing special. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100

static volatile unsigned steps;
static volatile uint64_t first;

static void step(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    CHECK(info->si_code == TRAP_TRACE);
    if (!steps++)
        first = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = step, .sa_flags = SA_SIGINFO };
    uint64_t value = 1, after, flags;

    CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
    for (unsigned i = 0; i < 1000; i++)
        __asm__ volatile("sub $128, %%rsp; pushfq; xorq $0x40, (%%rsp); pushq (%%rsp); popfq; pushfq; popq %0; "
                         "popfq; add $128, %%rsp"
                         : "=r"(flags)
                         :
                         : "memory", "cc");
    CHECK(!(flags & TRAP_FLAG));
    __asm__ volatile("sub $128, %%rsp; pushfq; orq %2, (%%rsp); popfq\n\t"
                     "lea 1f(%%rip), %1\n"
                     "1: add $1, %0; add $2, %0; pushfq; andq %3, (%%rsp); popfq; add $128, %%rsp"
                     : "+r"(value), "=&r"(after)
                     : "i"(TRAP_FLAG), "i"(~TRAP_FLAG)
                     : "memory", "cc");
    CHECK(first == after);
    printf("%u steps, %llu\n", steps, (unsigned long long)value);
    return 0;
}
