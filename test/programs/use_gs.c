// SPDX-License-Identifier: MIT
// libs: pthread
// flags: -mcx16
/* A program that uses the gs segment itself: all kinds of operands, threads with a base each, signal handlers, a
 * forked child. */
#define _GNU_SOURCE
#include "check.h"
#include <asm/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static _Alignas(64) uint64_t area[64];

static void set_gs(const void *base)
{
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, base) == 0);
}

static const void *get_gs(void)
{
    uint64_t base = 1;

    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
    return (const void *)base;
}

static void fill(uint64_t *words, uint64_t seed)
{
    for (uint64_t i = 0; i < 64; i++)
        words[i] = i * i + seed;
}

/* ---- operands ---- */

static uint64_t load(uint64_t offset)
{
    uint64_t value;

    __asm__ volatile("movq %%gs:(%1), %0" : "=r"(value) : "r"(offset));
    return value;
}

static void store(uint64_t offset, uint64_t value)
{
    __asm__ volatile("movq %1, %%gs:(%0)" : : "r"(offset), "r"(value) : "memory");
}

static void check_addresses(void)
{
    uint64_t value, low;

    fill(area, 7);
    for (uint64_t i = 0; i < 64; i++)
        CHECK(load(i * 8) == i * i + 7);
    __asm__ volatile("movq %%gs:24, %0" : "=r"(value));
    CHECK(value == 16);
    __asm__ volatile("movq %%gs:8(%1,%2,8), %0" : "=r"(value) : "r"(16ull), "r"(2ull));
    CHECK(value == 25 + 7);
    __asm__ volatile("movq %%gs:(,%1,8), %0" : "=r"(value) : "r"(6ull));
    CHECK(value == 36 + 7);
    __asm__ volatile("movabsq %%gs:0x38, %%rax" : "=a"(value));
    CHECK(value == 49 + 7);
    __asm__ volatile("movl $-1, %%eax; movabsb %%gs:0x38, %%al" : "=a"(value));
    CHECK(value == 0xffffff00 + 49 + 7);
    __asm__ volatile("movabsq %%rax, %%gs:0x38" : : "a"(1234ull) : "memory");
    CHECK(area[7] == 1234);
    /* cut to 32 bits before the base is added */
    __asm__ volatile("movq %%gs:8(%k1), %0" : "=r"(value) : "r"(0xffff00000000ull));
    CHECK(value == 8);
    /* relative to rip: the base is what is missing to the address */
    __asm__ volatile("leaq 1f(%%rip), %0\n1:" : "=r"(low));
    set_gs((const void *)64);
    __asm__ volatile("movq %%gs:area-64+16(%%rip), %0" : "=r"(value));
    set_gs(area);
    CHECK(value == 4 + 7);
}

static void check_registers(void)
{
    uint64_t sum = 0, other = 40;

    fill(area, 1);
    /* r14 and r15 as bases, index and data; all the others hold something */
    __asm__ volatile("movl $8, %%r14d\n\t"
                     "movl $3, %%r15d\n\t"
                     "movq %%gs:(%%r14), %%r14\n\t"       /* 2 */
                     "addq %%gs:(%%r14,%%r15,2), %%r15\n\t" /* at 8: 2; 5 */
                     "addq %%r15, %%gs:8(%%r14,%%r14,2)\n\t" /* at 14 */
                     "movq %%r15, %0\n\t"
                     "movq %%r14, %%gs:(%1)"
                     : "+&r"(sum)
                     : "r"(other)
                     : "r14", "r15", "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "memory", "cc");
    CHECK(sum == 5 && area[5] == 2);
    memcpy(&sum, (char *)area + 14, sizeof(sum));
    CHECK(sum == (5ull << 16) + 5);
}

static void check_kinds(void)
{
    uint64_t a = 0, value;
    uint8_t bytes[16], carry;

    fill(area, 3);
    __asm__ volatile("pushq %%gs:16; popq %0" : "=r"(value) : : "memory");
    CHECK(value == 4 + 3);
    __asm__ volatile("pushq %0; popq %%gs:16" : : "r"(99ull) : "memory");
    CHECK(area[2] == 99);
    __asm__ volatile("lock xaddq %0, %%gs:(%1)" : "+r"(value) : "r"(16ull) : "memory", "cc");
    CHECK(value == 99 && area[2] == 106);
    __asm__ volatile("xchgq %0, %%gs:16" : "+r"(value) : : "memory");
    CHECK(value == 106 && area[2] == 99);
    __asm__ volatile("movdqu %%gs:(%1), %%xmm1; movdqu %%xmm1, %0" : "=m"(bytes) : "r"(8ull) : "xmm1");
    CHECK(memcmp(bytes, &area[1], 16) == 0);
    __asm__ volatile("movb $5, %%gs:(%0); addl $7, %%gs:4(%0)" : : "r"(80ull) : "memory", "cc");
    CHECK(area[10] == 5 + (7ull << 32));
    __asm__ volatile("btsq %2, %%gs:(%1); setc %0" : "=r"(carry) : "r"(88ull), "r"(64ull + 63) : "memory", "cc");
    CHECK(!carry && area[12] >> 63);
    for (unsigned i = 0; i < 256; i++)
        ((uint8_t *)area)[i] = (uint8_t)(255 - i);
    __asm__ volatile("xlatb %%gs:(%%rbx)" : "+a"(a) : "b"(17ull));
    CHECK(a == 255 - 17);
    fill(area, 0);
    __asm__ volatile("lock cmpxchg16b %%gs:(%%rsi); setz %0"
                     : "=r"(carry), "+a"((uint64_t){ 4 }), "+d"((uint64_t){ 9 })
                     : "b"(11ull), "c"(12ull), "S"(16ull)
                     : "memory", "cc");
    CHECK(carry && area[2] == 11 && area[3] == 12);
    /* movq %gs:24, %rax, and before it an extension prefix that means nothing because it is not the last */
    __asm__ volatile(".byte 0x41, 0x65, 0x48, 0x8b, 0x04, 0x25, 24, 0, 0, 0" : "=a"(value));
    CHECK(value == 12);
}

static uint64_t twice(uint64_t n)
{
    return 2 * n;
}

static void check_transfers(void)
{
    uint64_t value = 21, result;

    area[4] = (uint64_t)(uintptr_t)twice;
    __asm__ volatile("subq $128, %%rsp; call *%%gs:(%2); addq $128, %%rsp"
                     : "=a"(result), "+D"(value)
                     : "c"(32ull)
                     : "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    CHECK(result == 42);
    __asm__ volatile("leaq 1f(%%rip), %0; movq %0, %%gs:40; movl $5, %k0; jmp *%%gs:40; ud2\n1:"
                     : "=r"(result) : : "memory");
    CHECK(result == 5);
}

/* ---- signals ---- */

static volatile uint64_t seen, fault_at;

static void on_fault(int signo, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;

    (void)signo;
    fault_at = (uint64_t)(uintptr_t)info->si_addr;
    seen = load(8);
    uc->uc_mcontext.gregs[REG_RAX] = 64;
}

static void check_signals(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    uint64_t value = 0;

    fill(area, 5);
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    __asm__ volatile("movq %%gs:(%1), %0" : "=r"(value) : "a"(0x10 - (uint64_t)area));
    CHECK(fault_at == 0x10 && seen == 6 && value == 64 + 5);
    CHECK(get_gs() == area);
}

/* ---- threads, processes ---- */

static void *work(void *argument)
{
    uint64_t own[64], n = (uintptr_t)argument;

    CHECK(get_gs() == area); /* inherited */
    set_gs(own);
    fill(own, n);
    for (unsigned i = 0; i < 3000; i++) {
        store(8 * (i % 64), load(8 * (i % 64)) + n);
        if (i % 1000 == 0)
            usleep(100);
    }
    CHECK(get_gs() == own);
    return (void *)(uintptr_t)check_hash(own, sizeof(own));
}

static void check_threads(void)
{
    pthread_t thread[3];
    uint64_t sum = 0;

    for (uintptr_t n = 0; n < 3; n++)
        CHECK(pthread_create(&thread[n], NULL, work, (void *)(n + 1)) == 0);
    for (unsigned n = 0; n < 3; n++) {
        void *result;

        CHECK(pthread_join(thread[n], &result) == 0);
        CHECK(get_gs() == area);
        sum += (uintptr_t)result;
    }
    printf("threads %llx\n", (unsigned long long)sum);
}

static void check_child(bool shares_memory)
{
    int status;
    pid_t child;

    fill(area, 9);
    child = shares_memory ? vfork() : fork();
    if (child == 0)
        _exit((int)load(24));
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 18);
}

/* ---- instructions that read and write the base ---- */

static void check_base(void)
{
    uint64_t base;

    if (!(getauxval(AT_HWCAP2) & 2))
        return;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    CHECK(base == (uint64_t)(uintptr_t)area);
    __asm__ volatile("movq %1, %%r15; wrgsbase %%r15; rdgsbase %%r14; movq %%r14, %0"
                     : "=r"(base) : "r"(&area[8]) : "r14", "r15");
    CHECK(base == (uint64_t)(uintptr_t)&area[8] && get_gs() == &area[8] && load(8) == area[9]);
    __asm__ volatile("movq $-1, %0; rdgsbase %k0" : "=r"(base));
    CHECK(base == (uint32_t)(uintptr_t)&area[8]);
    set_gs(area);
}

int main(void)
{
    set_gs(area);
    CHECK(get_gs() == area);
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, 1ull << 63) == -1 && get_gs() == area);
    check_addresses();
    check_registers();
    check_kinds();
    check_transfers();
    check_signals();
    check_base();
    check_threads();
    check_child(false);
    check_child(true);
    set_gs(NULL);
    puts("gs ok");
    return 0;
}
