// SPDX-License-Identifier: MIT
// flags: -mcx16 -mavx2 -mxsave
// cpu: avx2 cx16 xsave fsgsbase
/* What translated code cannot do with an operand relative to gs: strings, gathers, masked stores, states, instructions
 * that need every register; loads and reads of segment registers; all of it on memory that changes behind its back, too:
 * a file mapped twice. */
#define _GNU_SOURCE
#include "check.h"
#include <asm/prctl.h>
#include <immintrin.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define BYTES 16384
static unsigned char *here, *there; /* the same memory where others write; the same address where not */

static void set_gs(const void *base)
{
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, base) == 0);
}

static uint64_t get_gs(void)
{
    uint64_t base = 1;

    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
    return base;
}

static void fill(uint64_t seed)
{
    for (size_t i = 0; i < BYTES; i += 8) {
        uint64_t value = check_random(&seed);

        memcpy(there + i, &value, 8);
    }
}

static void strings(uint64_t seed)
{
    static unsigned char out[8192];
    uint64_t count, from, to, value;
    uint32_t narrow;

    fill(seed);
    from = 4000, to = (uint64_t)out, count = 5000;
    __asm__ volatile("rep movsb %%gs:(%%rsi), %%es:(%%rdi)" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    CHECK(from == 9000 && count == 0 && to == (uint64_t)out + 5000 && memcmp(out, there + 4000, 5000) == 0);
    from = 8, to = (uint64_t)out + 64;
    __asm__ volatile("movsq %%gs:(%%rsi), %%es:(%%rdi); movsb %%gs:(%%rsi), %%es:(%%rdi)" : "+S"(from), "+D"(to) : : "memory");
    CHECK(from == 17 && to == (uint64_t)out + 73 && memcmp(out + 64, there + 8, 9) == 0);
    from = 4095, count = 4;
    __asm__ volatile("std; rep lodsl %%gs:(%%rsi), %%eax; cld" : "+S"(from), "+c"(count), "=a"(value));
    memcpy(&narrow, there + 4095 - 12, 4);
    CHECK(from == 4095 - 16 && value == narrow);
    memcpy(out, there + 100, 8000);
    out[7000] ^= 1;
    from = 100, to = (uint64_t)out, count = 8000;
    __asm__ volatile("repe cmpsb %%es:(%%rdi), %%gs:(%%rsi)" : "+S"(from), "+D"(to), "+c"(count) : : "memory", "cc");
    CHECK(from == 7101 && to == (uint64_t)out + 7001 && count == 999);
    from = 0xffff00000010, count = 3; /* cut to 32 bits, then relative to the base */
    __asm__ volatile("rep lodsb %%gs:(%%esi), %%al" : "+S"(from), "+c"(count), "=a"(value));
    CHECK(from == 0x13 && (value & 0xff) == there[0x12]);
}

static void vectors(uint64_t seed)
{
    __m256i index = _mm256_setr_epi32(0, 1000, 3, 3, 77, 4000, 2, 9), mask = _mm256_setr_epi32(-1, 0, -1, 1, -1, -1, 0, -1);
    __m256i value = _mm256_set1_epi32(5), left = mask;
    uint32_t got[8], expected[8], words[8];

    fill(seed);
    __asm__ volatile("vpgatherdd %1, %%gs:8(%3,%2,4), %0" : "+x"(value), "+x"(left) : "x"(index), "r"(4ull));
    memcpy(got, &value, 32);
    memcpy(words, &index, 32);
    for (unsigned i = 0; i < 8; i++) {
        expected[i] = 5;
        if (i == 0 || i == 2 || i == 4 || i == 5 || i == 7)
            memcpy(&expected[i], there + 12 + words[i] * 4, 4);
    }
    CHECK(memcmp(got, expected, 32) == 0 && _mm256_testz_si256(left, left));
    memcpy(expected, there + 4090, 32);
    __asm__ volatile("vpmaskmovd %0, %1, %%gs:(%2)" : : "x"(index), "x"(mask), "r"(4090ull) : "memory");
    for (unsigned i = 0; i < 8; i++)
        if (i == 0 || i == 2 || i == 4 || i == 5 || i == 7)
            expected[i] = words[i];
    CHECK(memcmp(there + 4090, expected, 32) == 0);
    __asm__ volatile("maskmovdqu %0, %1" : : "x"(_mm256_castsi256_si128(mask)), "x"(_mm256_castsi256_si128(index)), "D"(there + 64) : "memory");
    __asm__ volatile(".byte 0x65; maskmovdqu %0, %1" : : "x"(_mm256_castsi256_si128(mask)), "x"(_mm256_castsi256_si128(index)), "D"(128ull) : "memory");
    CHECK(there[128] == there[64] && there[136] == there[72]);
}

static void states(uint64_t seed)
{
    static _Alignas(64) unsigned char plain[4096];
    double value = 1.5 + (double)(seed % 8);

    fill(seed);
    memset(there + 512, 0, 4096);
    memset(plain, 0, sizeof(plain));
    __asm__ volatile("fldl %%gs:(%1); fstpl %0" : "=m"(value) : "r"(8192ull));
    __asm__ volatile("movq %0, %%xmm9; fxsave64 %%gs:(%1); fxsave64 %2" : : "r"(seed), "r"(512ull), "m"(plain) : "xmm9", "memory");
    CHECK(memcmp(there + 512 + 160, plain + 160, 256) == 0);
    memset(there + 512, 0, 512);
    memset(plain, 0, sizeof(plain));
    __asm__ volatile("xsave64 %%gs:(%0); xsave64 %1" : : "r"(1024ull), "m"(plain), "a"(7), "d"(0) : "memory");
    CHECK(memcmp(there + 1024 + 160, plain + 160, 256) == 0 && memcmp(there + 1024 + 512, plain + 512, 8) == 0);
    memset(there + 6000, 0, 64);
    __asm__ volatile("fnstenv %%gs:(%0); fnstcw %%gs:32(%0)" : : "r"(6000ull) : "memory");
    CHECK(memcmp(there + 6000, there + 6032, 2) == 0);
    __asm__ volatile("fldenv %%gs:(%0)" : : "r"(6000ull) : "memory");
}

/* rax, rbx, rcx, rdx, rsi and rdi are all named; bit strings and tables. */
static void others(uint64_t seed)
{
    uint64_t low, high, a = 17;
    unsigned char done;

    fill(seed);
    memcpy(&low, there + 48, 8);
    memcpy(&high, there + 56, 8);
    __asm__ volatile("lock cmpxchg16b %%gs:(%%rsi,%%rdi); setz %0"
                     : "=r"(done), "+a"(low), "+d"(high)
                     : "b"(seed), "c"(~seed), "S"(16ull), "D"(32ull)
                     : "memory", "cc");
    CHECK(done && memcmp(there + 48, &seed, 8) == 0);
    __asm__ volatile("btsq %2, %%gs:(%1); setc %0" : "=r"(done) : "r"(1000ull), "r"(64ll * 5 + 3) : "memory", "cc");
    CHECK(there[1000 + 40] & 8);
    __asm__ volatile("btrq %2, %%gs:(%1); setc %0" : "=r"(done) : "r"(1000ull), "r"(-64ll * 5 + 3) : "memory", "cc");
    CHECK(!(there[1000 - 40] & 8));
    __asm__ volatile("xlatb %%gs:(%%rbx)" : "+a"(a) : "b"(500ull));
    CHECK(a == there[517]);
    a = 3;
    __asm__ volatile(".byte 0x67; xlatb %%gs:(%%rbx)" : "+a"(a) : "b"(0xabc000000000ull + 500));
    CHECK(a == there[503]);
}

/* ---- faults ---- */

static volatile uint64_t fault_at, fault_rip;

static void on_fault(int signo, siginfo_t *info, void *raw)
{
    ucontext_t *context = raw;

    (void)signo;
    fault_at = (uint64_t)info->si_addr;
    fault_rip = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    CHECK(get_gs() == (uint64_t)here);
    context->uc_mcontext.gregs[REG_RIP] = context->uc_mcontext.gregs[REG_R8];
}

static void faults(void)
{
    uint64_t from = BYTES - 4, count = 100, to = (uint64_t)(there + 64), rip = 0;

    __asm__ volatile("lea 2f(%%rip), %%r8; lea 1f(%%rip), %3; 1: rep movsb %%gs:(%%rsi), %%es:(%%rdi); ud2; 2:"
                     : "+S"(from), "+D"(to), "+c"(count), "=&r"(rip) : : "r8", "memory");
    CHECK(fault_at == (uint64_t)here + BYTES && fault_rip == rip && count == 96 && from == BYTES);
    CHECK(memcmp(there + 64, there + BYTES - 4, 4) == 0);
    __asm__ volatile("lea 2f(%%rip), %%r8; lea 1f(%%rip), %0; 1: fnsave %%gs:(%1); ud2; 2:"
                     : "=&r"(rip) : "r"((uint64_t)BYTES) : "r8", "memory");
    CHECK(fault_at == (uint64_t)here + BYTES && fault_rip == rip);
}

/* ---- selectors ---- */

static uint16_t selector(void)
{
    uint16_t value;

    __asm__ volatile("mov %%gs, %0" : "=r"(value));
    return value;
}

static void selectors(void)
{
    uint64_t flat = 0, before = get_gs(), pushed;
    uint16_t data, user, stack;

    __asm__ volatile("mov %%ss, %0; mov %%ds, %1" : "=r"(stack), "=r"(data));
    user = selector();
    __asm__ volatile("push %%gs; pop %0" : "=r"(pushed));
    CHECK(user == 0 && pushed == 0 && data == 0);
    __asm__ volatile("mov %0, %%gs" : : "r"(stack)); /* the flat data segment: base 0 */
    CHECK(selector() == stack && get_gs() == 0);
    __asm__ volatile("movq %%gs:(%1), %0" : "=r"(flat) : "r"(there));
    CHECK(memcmp(&flat, there, 8) == 0);
    __asm__ volatile("movw %%gs, (%0); mov %%gs, %1" : : "r"(there + 8), "m"(data) : "memory");
    CHECK(memcmp(there + 8, &stack, 2) == 0);
    __asm__ volatile("push %0; pop %%gs" : : "r"(0ull));
    CHECK(selector() == 0);
    set_gs((void *)before);
    __asm__ volatile("mov %0, %%ds; mov %0, %%es" : : "r"(stack));
    __asm__ volatile("mov %%ds, %0" : "=r"(data));
    CHECK(data == stack);
    __asm__ volatile("mov %0, %%ds; mov %0, %%es" : : "r"(0));
}

static void all(unsigned rounds)
{
    set_gs(here);
    for (uint64_t i = 1; i <= rounds; i++) {
        strings(i);
        vectors(i * 3);
        states(i * 5);
        others(i * 7);
        CHECK(get_gs() == (uint64_t)here);
    }
    faults();
    printf("%016llx\n", (unsigned long long)check_hash(there, 512));
    selectors();
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    int fd = memfd_create("shared", 0);

    CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
    here = there = mmap(NULL, BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(here != MAP_FAILED && mprotect(here + BYTES, 4096, PROT_NONE) == 0);
    all(20);
    here = mmap(NULL, BYTES + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mmap(here, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == here);
    there = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(there != MAP_FAILED);
    all(20);
    set_gs(NULL);
    return 0;
}
