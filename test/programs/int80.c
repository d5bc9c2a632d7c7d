// SPDX-License-Identifier: MIT
// end: detached
// missing: 32-bit
/* A system call of 32-bit programs in 64-bit code: the program is let go before it, and goes on natively, with whatever
 * the kernel says to it. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/types.h>
#include <ucontext.h>
#include <unistd.h>

static void on_fault(int signo, siginfo_t *info, void *raw) /* a kernel without such calls */
{
    (void)signo;
    (void)info;
    ((ucontext_t *)raw)->uc_mcontext.gregs[REG_RIP] += 2;
    ((ucontext_t *)raw)->uc_mcontext.gregs[REG_RAX] = getpid();
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    long result = 20; /* getpid */

    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    puts("before");
    __asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
    CHECK(result == getpid());
    puts("after");
    return 0;
}
