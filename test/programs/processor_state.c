// SPDX-License-Identifier: MIT
/* Instructions whose results depend on the processor's state, and those that a program may not have: descriptors,
 * transactions, calls of other systems.  What raises a signal natively raises it here, at the same place. */
#define _GNU_SOURCE
#include "check.h"
#include <cpuid.h>
#include <signal.h>
#include <ucontext.h>

static volatile int raised;
static volatile uint64_t raised_at;

static void on_signal(int signo, siginfo_t *info, void *raw)
{
    ucontext_t *context = raw;

    (void)info;
    raised = signo;
    raised_at = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    context->uc_mcontext.gregs[REG_RIP] = context->uc_mcontext.gregs[REG_R8];
}

/* Runs it; prints the signal that it raises, 0 if none. */
#define TRY(name, instruction)                                                                        \
    do {                                                                                              \
        uint64_t at;                                                                                  \
        raised = 0;                                                                                   \
        __asm__ volatile("lea 2f(%%rip), %%r8; lea 1f(%%rip), %0; xor %%eax, %%eax; xor %%ecx, %%ecx\n" \
                         "1: " instruction "\n2:"                                                     \
                         : "=&r"(at)                                                                  \
                         :                                                                            \
                         : "rax", "rcx", "rdx", "r8", "memory", "cc");                                \
        CHECK(!raised || raised_at == at);                                                            \
        printf("%s: %d\n", name, raised);                                                             \
    } while (0)

uint32_t in_memory;
static uint16_t selector_in_memory = 0x2b;

static void descriptors(void)
{
    uint32_t limit = 1, rights = 7, kept = 99;
    unsigned char good;

    __asm__ volatile("lsl %2, %0; setz %1" : "+r"(limit), "=q"(good) : "r"(0x2b));
    CHECK(good && limit == 0xffffffff);
    __asm__ volatile("larl %2, %0; setz %1" : "+r"(rights), "=q"(good) : "m"(selector_in_memory));
    CHECK(good && rights != 7);
    __asm__ volatile("lsl %2, %0; setz %1" : "+r"(kept), "=q"(good) : "r"(0x4));
    CHECK(!good && kept == 99);
    __asm__ volatile("verr %w1; setz %0" : "=q"(good) : "r"(0x2b));
    CHECK(good);
    __asm__ volatile("verw %w1; setz %0" : "=q"(good) : "r"(0));
    CHECK(!good);
    __asm__ volatile("lsl %1, %0" : "+r"(limit) : "r"(0x7b)); /* says on which processor it runs, or nothing */
    puts("descriptors");
}

static void transaction(void)
{
    unsigned a, b, c, d, status = 0x1234, inside = 7;

    __asm__ volatile("lea 2f(%%rip), %%r8; mov $-1, %%eax\n\t"
                     ".byte 0xc7, 0xf8; .long 3f - 1f; 1: mov $1, %1; .byte 0x0f, 0x01, 0xd5; jmp 2f\n"
                     "3: mov %%eax, %0; mov $0, %1\n2:"
                     : "+m"(status), "+r"(inside) : : "rax", "r8", "memory", "cc");
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 11))
        CHECK(inside == 1 || (inside == 0 && status != 0x1234));
    else
        CHECK(raised == SIGILL && inside == 7);
    puts("transaction");
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    unsigned a, b, c, d;

    for (int signo = SIGILL; signo <= SIGSEGV; signo++)
        if (signo == SIGILL || signo == SIGSEGV || signo == SIGTRAP || signo == SIGBUS)
            CHECK(sigaction(signo, &action, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        descriptors();
        transaction();
        TRY("sldt", "sldt %%ax");
        TRY("str", "str in_memory(%%rip)");
        TRY("smsw", "smsw %%ax");
        TRY("rdpmc", "rdpmc");
        TRY("xtest", ".byte 0x0f, 0x01, 0xd6");
        TRY("xabort", ".byte 0xc6, 0xf8, 0");
        TRY("int 0x81", "int $0x81");
        TRY("hlt", "hlt");
        TRY("bad selector", "mov %%cs, %%eax; xor $8, %%eax; lea 1f(%%rip), %0; 1: mov %%eax, %%ss");
        __cpuid(0, a, b, c, d);
        if (b == signature_AMD_ebx)
            TRY("sysenter", "sysenter");
    }
    return 0;
}
