// SPDX-License-Identifier: MIT
/* int3, ud2, division by zero and bus errors: the handler's rip and si_code are as without us. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

extern const char ud2_here[], int3_here[], div_here[];
static sigjmp_buf back;
static volatile int seen_signal, seen_code;
static volatile greg_t seen_rip;

static void on_signal(int signal, siginfo_t *info, void *context)
{
    seen_signal = signal;
    seen_code = info->si_code;
    seen_rip = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    siglongjmp(back, 1);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    static const int signals[] = { SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGSEGV };
    char name[] = "/tmp/tbd-traps-XXXXXX";
    int fd = mkstemp(name), zero = 0;
    volatile char *page;

    for (size_t i = 0; i < 5; i++)
        sigaction(signals[i], &action, NULL);
    for (int i = 0; i < 20; i++) {
        if (sigsetjmp(back, 1) == 0)
            __asm__ volatile(".globl ud2_here\nud2_here: ud2");
        CHECK(seen_signal == SIGILL && seen_code == ILL_ILLOPN && seen_rip == (greg_t)ud2_here);
        if (sigsetjmp(back, 1) == 0)
            __asm__ volatile(".globl int3_here\nint3_here: int3");
        CHECK(seen_signal == SIGTRAP && seen_rip == (greg_t)int3_here + 1);
        if (sigsetjmp(back, 1) == 0)
            __asm__ volatile(".globl div_here\ndiv_here: idivl %0" ::"m"(zero) : "eax", "edx");
        CHECK(seen_signal == SIGFPE && seen_code == FPE_INTDIV && seen_rip == (greg_t)div_here);
        page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        if (sigsetjmp(back, 1) == 0)
            zero += page[0]; /* beyond the end of the file */
        CHECK(seen_signal == SIGBUS && seen_code == BUS_ADRERR);
        munmap((void *)page, 4096);
        if (sigsetjmp(back, 1) == 0)
            ((void (*)(void))(uintptr_t)0x10)(); /* a call to nowhere: rip is the target */
        CHECK(seen_signal == SIGSEGV && seen_rip == 0x10);
    }
    unlink(name);
    puts("traps ok");
    return 0;
}
