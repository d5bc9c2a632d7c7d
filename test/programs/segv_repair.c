// SPDX-License-Identifier: MIT
/* A SIGSEGV handler that repairs: opens the page, or steps over the instruction, and sees the
 * exact registers of the faulting instruction. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

extern const char fault_here[], fault_next[];
int fault_with_known_registers(void *address);

/* Faults once at fault_here with every register known; the handler moves rip to fault_next. */
__asm__(".pushsection .text\n.globl fault_with_known_registers\nfault_with_known_registers:\n"
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "mov $1, %eax; mov $2, %ebx; mov $3, %ecx; mov $4, %edx; mov $5, %esi; mov $6, %ebp; mov $8, %r8; mov $9, %r9\n"
        "mov $10, %r10; mov $11, %r11; mov $12, %r12; mov $13, %r13; mov $14, %r14; mov $15, %r15\n"
        "cmp %rax, %rbx; movb $7, -9(%rsp); add %r14, %r15; stc\n"
        ".globl fault_here\nfault_here: mov %r14d, (%rdi)\n"
        ".globl fault_next\nfault_next: lea 1(%r15), %rax\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n.popsection\n");

static unsigned char *page;
static volatile int faults, steps;

static void check_registers(const greg_t *r)
{
    CHECK(r[REG_RAX] == 1 && r[REG_RBX] == 2 && r[REG_RCX] == 3 && r[REG_RDX] == 4 && r[REG_RSI] == 5 && r[REG_RBP] == 6);
    CHECK(r[REG_R8] == 8 && r[REG_R9] == 9 && r[REG_R10] == 10 && r[REG_R11] == 11 && r[REG_R12] == 12);
    CHECK(r[REG_R13] == 13 && r[REG_R14] == 14 && r[REG_R15] == 29 && (r[REG_EFL] & 1) == 1);
    CHECK((r[REG_EFL] & 0x40) == 0 && *(unsigned char *)(r[REG_RSP] - 9) == 7);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

    CHECK(signal == SIGSEGV && (unsigned char *)info->si_addr >= page && (unsigned char *)info->si_addr < page + 4096);
    faults++;
    if (regs[REG_RIP] == (greg_t)fault_here) {
        check_registers(regs);
        regs[REG_RIP] = (greg_t)fault_next;
        regs[REG_R15] += 100;
        steps++;
        return;
    }
    CHECK(info->si_code == SEGV_ACCERR && mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    unsigned sum = 0;

    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && sigaction(SIGSEGV, &action, NULL) == 0);
    for (int i = 0; i < 50; i++) {
        CHECK(mprotect(page, 4096, PROT_READ) == 0);
        CHECK(fault_with_known_registers(page + i) == 130);
        page[i] = (unsigned char)(i * 3); /* faults, is repaired, is done again */
        CHECK(mprotect(page, 4096, PROT_NONE) == 0);
        sum += page[i] * (unsigned)i;
    }
    printf("%d faults, %d steps, sum %u\n", faults, steps, sum);
    return 0;
}
