// SPDX-License-Identifier: MIT
// end: detached
// missing: trap flag
// native: trap flag
/* A handler sets the trap flag in the state to which it returns: the program is let go there, and its handler comes after
 * each instruction, as without us. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100l

static volatile unsigned steps;

static void step(int signo, siginfo_t *info, void *context)
{
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

    (void)info;
    if (signo == SIGUSR1)
        *flags |= TRAP_FLAG;
    else if (++steps == 20)
        *flags &= ~TRAP_FLAG;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = step, .sa_flags = SA_SIGINFO };

    CHECK(sigaction(SIGTRAP, &action, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(raise(SIGUSR1) == 0);
    for (volatile int i = 0; i < 100; i++)
        continue;
    printf("%u steps\n", steps);
    return 0;
}
