// SPDX-License-Identifier: MIT
// signal: 11
/* Handles faults of three kinds and a signal of its own, then dies by a store to memory that it may only read. */
#include "check.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static sigjmp_buf again;
static volatile int seen, zero;

__attribute__((noinline)) static int note(int signo)
{
    seen = seen * 100 + signo;
    return seen;
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    note(signo);
    siglongjmp(again, 1);
}

static void on_user(int signo)
{
    note(signo);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(page != MAP_FAILED);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    signal(SIGUSR1, on_user);
    if (!sigsetjmp(again, 1))
        seen = *(volatile int *)(uintptr_t)(0x18 + zero);
    if (!sigsetjmp(again, 1))
        seen = seen / zero;
    if (!sigsetjmp(again, 1))
        __builtin_trap();
    raise(SIGUSR1);
    printf("%d\n", seen);
    fflush(stdout);
    signal(SIGSEGV, SIG_DFL);
    page[5] = 1;
    puts("never");
    return 0;
}
