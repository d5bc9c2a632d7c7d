// SPDX-License-Identifier: MIT
// flags: -mno-red-zone
/* Alignment checks switched on by the program (flag AC), as runtimes do to find out about the processor: aligned
 * accesses of all sizes, calls, system calls and cpuid go on; an access that is not aligned raises SIGBUS. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t words[64];
static uint8_t bytes[64];
static sigjmp_buf back;
static volatile uint64_t had_ac;

static void on_bus(int signo, siginfo_t *info, void *context)
{
    __asm__ volatile("pushfq; andq $~0x40000, (%%rsp); popfq" ::: "memory", "cc");
    (void)signo;
    (void)context;
    CHECK(info->si_code == BUS_ADRALN);
    siglongjmp(back, 1);
}

/* With AC: stores of one byte first, so that what is recorded is not aligned either; of 1, 2, 4 and 8 bytes, a push, cpuid, getpid; then without. */
static uint64_t aligned(uint64_t rounds)
{
    uint64_t flags, result = SYS_getpid;

    for (uint64_t i = 0; i < rounds; i++) {
        result = SYS_getpid;
        __asm__ volatile("pushfq; orq $0x40000, (%%rsp); popfq\n\t"
                         "movb $1, (%[b])\n\t"
                         "movw $2, 8(%[w])\n\t"
                         "movl $3, 16(%[w])\n\t"
                         "movq $4, 24(%[w])\n\t"
                         "movb $5, 1(%[b])\n\t"
                         "pushfq; popq %[f]\n\t"
                         "push %%rbx; push %%rax; xor %%eax, %%eax; cpuid; pop %%rax; pop %%rbx\n\t"
                         "movb $6, 2(%[b])\n\t"
                         "movq $7, 32(%[w])\n\t"
                         "syscall\n\t"
                         "pushfq; andq $~0x40000, (%%rsp); popfq"
                         : [f] "=&r"(flags), "+a"(result)
                         : [b] "r"(bytes), [w] "r"(words)
                         : "rcx", "rdx", "r11", "memory", "cc");
        CHECK(result == (uint64_t)getpid());
        had_ac += flags >> 18 & 1;
    }
    return words[1] + words[2] + words[3] + words[4] + bytes[0] + bytes[1] + bytes[2];
}

static void not_aligned(void)
{
    __asm__ volatile("pushfq; orq $0x40000, (%%rsp); popfq\n\t"
                     "movb $9, (%0)\n\t"
                     "movl $1, 1(%0)\n\t"
                     "pushfq; andq $~0x40000, (%%rsp); popfq" ::"r"(words)
                     : "memory", "cc");
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
    volatile unsigned faults = 0;

    printf("%llu\n", (unsigned long long)aligned(50));
    CHECK(had_ac == 50);
    CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    for (unsigned i = 0; i < 5; i++) {
        if (sigsetjmp(back, 1))
            faults++;
        else
            not_aligned();
    }
    printf("%u faults, %llu\n", faults, (unsigned long long)words[0]);
    return 0;
}
