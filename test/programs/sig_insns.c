// SPDX-License-Identifier: MIT
/* Signals at every kind of instruction: a timer ticks over loops of each, and its handler changes flags, x87, MXCSR,
 * vector registers and the stack below; what the loops compute stays the same. */
// cpu: avx2 bmi2 xsave
// libs: m
// flags: -mavx2 -mbmi2 -mcx16
#define _GNU_SOURCE
#include "check.h"
#include <immintrin.h>
#include <math.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum { BYTES = 20000 };

static unsigned char from[BYTES + 64], to[BYTES + 64];
static volatile unsigned long ticks;
static volatile unsigned char sink;

static void on_tick(int signo, siginfo_t *info, void *context)
{
    ucontext_t *frame = context;
    unsigned char some[3000];

    (void)signo, (void)info;
    memset(some, (int)ticks++, sizeof(some));
    sink = some[ticks % sizeof(some)];
    CHECK(!(frame->uc_mcontext.gregs[REG_EFL] & 0x100));
    __asm__ volatile("fninit; fldpi; fldpi; vzeroall; vpcmpeqd %%ymm7, %%ymm7, %%ymm7; vpcmpeqd %%ymm15, %%ymm15, %%ymm15\n\t"
                     "movl $0x7fbf, -4(%%rsp); ldmxcsr -4(%%rsp); stc; std; cld"
                     :
                     :
                     : "memory", "cc", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "xmm0", "xmm7", "xmm15");
}

static uint64_t strings(uint64_t n)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < n; i++) {
        void *source = from + i % 50, *target = to + i % 40;
        uint64_t count = BYTES - i * 7 % 500;

        __asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(count) : : "memory");
        sum += count + (uint64_t)((unsigned char *)source - from);
        target = to + i % 60;
        count = BYTES / 8 - i % 100;
        __asm__ volatile("rep stosq" : "+D"(target), "+c"(count) : "a"(i) : "memory");
        count = 3000;
        source = from + BYTES - 1;
        target = to + BYTES - 1;
        __asm__ volatile("std; rep movsb; cld" : "+S"(source), "+D"(target), "+c"(count) : : "memory");
        sum += (uint64_t)((unsigned char *)source - from) + check_hash(to, 200);
    }
    return sum + check_hash(to, sizeof(to));
}

static uint64_t scans(uint64_t n)
{
    uint64_t sum = 0;

    memcpy(to, from, sizeof(to));
    for (uint64_t i = 0; i < n; i++) {
        void *source = from, *target = to;
        uint64_t count = BYTES;
        unsigned char equal;

        to[i * 97 % BYTES] ^= 1;
        __asm__ volatile("repe cmpsb; sete %3" : "+S"(source), "+D"(target), "+c"(count), "=r"(equal) : : "memory", "cc");
        sum = sum * 31 + count + equal;
        to[i * 97 % BYTES] ^= 1;
        target = from;
        count = BYTES;
        __asm__ volatile("repne scasb" : "+D"(target), "+c"(count) : "a"((unsigned char)i) : "memory", "cc");
        sum = sum * 31 + count;
        count = 500;
        __asm__ volatile("1: lodsb; add %%rax, %0; loop 1b" : "+r"(sum), "+S"(source), "+c"(count) : : "rax", "memory", "cc");
        source = from;
    }
    return sum;
}

static uint64_t branches(uint64_t n)
{
    uint64_t sum = 0, x = 88172645463325252u;

    for (uint64_t i = 0; i < n * 3000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        __asm__ volatile("bt $7, %1; jc 1f; add $3, %0; jmp 2f; 1: lea 5(%0), %0; 2: mov %1, %%rcx; and $3, %%ecx; jrcxz 3f; add $1, %0; 3:"
                         : "+r"(sum)
                         : "r"(x)
                         : "rcx", "cc");
    }
    return sum;
}

static __attribute__((noinline)) uint64_t leaf(uint64_t x)
{
    return x * 3 + 1;
}

static __attribute__((noinline)) uint64_t other_leaf(uint64_t x)
{
    return x ^ x >> 5;
}

static uint64_t calls(uint64_t n)
{
    uint64_t (*volatile table[2])(uint64_t) = { leaf, other_leaf };
    uint64_t sum = 1;

    for (uint64_t i = 0; i < n * 2000; i++)
        sum = table[sum >> 3 & 1](sum) + leaf(i);
    return sum;
}

static uint64_t pushes(uint64_t n)
{
    uint64_t sum = 1;

    for (uint64_t i = 0; i < n * 2000; i++)
        __asm__ volatile("lea -256(%%rsp), %%rsp; push %0; pushq $77; push %1; pushfq; popfq; pop %%rax; pop %%rcx; pop %%rdx\n\t"
                         "add %%rax, %0; add %%rcx, %0; rol $3, %%rdx; xor %%rdx, %0; enter $32, $0; leave\n\t"
                         "push %%rsp; pop %%rax; sub %%rsp, %%rax; add %%rax, %0; lea 256(%%rsp), %%rsp"
                         : "+r"(sum)
                         : "r"(i)
                         : "rax", "rcx", "rdx", "cc", "memory");
    return sum;
}

/* Values below the stack pointer. */
static uint64_t red_zone(uint64_t n)
{
    uint64_t sum = 1;

    for (uint64_t i = 0; i < n * 1000; i++)
        __asm__ volatile("mov %0, -8(%%rsp); mov %1, -128(%%rsp); nop; nop; add -8(%%rsp), %0; xor -128(%%rsp), %0; rol $7, %0"
                         : "+r"(sum)
                         : "r"(i)
                         : "cc", "memory");
    return sum;
}

static uint64_t system_calls(uint64_t n)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < n * 20; i++) {
        uint64_t rcx = 1, r11 = 1;
        long result;

        __asm__ volatile("syscall; mov %%rcx, %1; mov %%r11, %2"
                         : "=a"(result), "=r"(rcx), "=r"(r11)
                         : "a"(SYS_getppid)
                         : "rcx", "r11", "memory");
        CHECK(result == getppid() && rcx && (r11 & 0x202) == 0x202);
        sum += i;
    }
    return sum;
}

static uint64_t atomics(uint64_t n)
{
    static uint64_t pair[2] __attribute__((aligned(16)));
    uint64_t sum = 0;

    pair[0] = pair[1] = 0;
    for (uint64_t i = 0; i < n * 1000; i++) {
        uint64_t low = pair[0], high = pair[1], x = i;
        unsigned char ok;

        __asm__ volatile("lock cmpxchg16b %1; sete %0" : "=r"(ok), "+m"(pair[0]), "+a"(low), "+d"(high) : "b"(low + i), "c"(high ^ i) : "cc", "memory");
        __asm__ volatile("lock xaddq %0, %1; lock btsq $5, %1; xchg %0, %1" : "+r"(x), "+m"(pair[1]) : : "cc", "memory");
        sum = sum * 5 + ok + x;
    }
    return sum + pair[0] + pair[1];
}

static uint64_t vectors(uint64_t n)
{
    __m256i a = _mm256_set1_epi32(7), b = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), g;
    uint64_t out[4];

    for (uint64_t i = 0; i < n * 500; i++) {
        a = _mm256_add_epi32(_mm256_mullo_epi32(a, b), _mm256_loadu_si256((const void *)(from + i % 4000)));
        g = _mm256_i32gather_epi32((const int *)(const void *)from, _mm256_and_si256(a, _mm256_set1_epi32(4095)), 4);
        b = _mm256_xor_si256(_mm256_shuffle_epi8(b, a), g);
        _mm256_storeu_si256((void *)(to + i % 4000), b);
        _mm256_maskstore_epi32((int *)(void *)(to + i % 3000), a, b);
        _mm_stream_si128((void *)(((uintptr_t)to + 15) & ~15ull), _mm256_castsi256_si128(a));
    }
    _mm256_storeu_si256((void *)out, _mm256_add_epi64(a, b));
    return check_hash(out, sizeof(out)) + check_hash(to, sizeof(to));
}

static uint64_t floats(uint64_t n)
{
    long double sum = 1.0L;
    double small = 1.0;
    uint64_t out[2] = { 0, 0 };

    for (uint64_t i = 0; i < n * 300; i++) {
        __asm__ volatile("fldt %0; fld1; faddp; fsqrt; fldpi; fmulp; fstpt %0" : "+m"(sum));
        small = small * 1.25 + (double)i;
        small = sqrt(small);
    }
    memcpy(out, &sum, 10);
    return out[0] + out[1] + (uint64_t)(small * 1e9);
}

static uint64_t special(uint64_t n)
{
    static unsigned char image[4096] __attribute__((aligned(64)));
    uint64_t sum = 0, last = 0;

    for (uint64_t i = 0; i < n * 10; i++) {
        uint32_t a = 0, b, c = 0, d, low, high;

        __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
        __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
        CHECK(((uint64_t)high << 32 | low) >= last);
        last = (uint64_t)high << 32 | low;
        __asm__ volatile("xsave %0; xrstor %0" : "+m"(image) : "a"(7), "d"(0) : "memory");
        __asm__ volatile("fxsave %0; fxrstor %0; stmxcsr %0; ldmxcsr %0" : "+m"(image) : : "memory");
        sum += b + i;
    }
    return sum;
}

static uint64_t divisions(uint64_t n)
{
    uint64_t sum = 1;

    for (uint64_t i = 1; i < n * 1000; i++) {
        uint64_t low = sum, high = 0, flags;

        __asm__ volatile("div %2; mulx %0, %0, %1; adc $0, %0; pushfq; pop %3" : "+a"(low), "+d"(high) , "+r"(sum), "=r"(flags) : : "cc", "memory");
        sum = (low ^ high) * 3 + (flags & 0xc5) + i;
        if (!sum)
            sum = 1;
    }
    return sum;
}

/* Loads and stores that cross pages and cache lines. */
static uint64_t unaligned(uint64_t n)
{
    uint64_t sum = 1;

    for (uint64_t i = 0; i < n * 1000; i++) {
        unsigned char *at = to + (4096 - ((uintptr_t)to & 4095)) - 4 + (i & 1) * 4096;

        __asm__ volatile("mov %0, (%1); addq $3, 1(%1); movups 2(%1), %%xmm3; movups %%xmm3, 3(%1); add (%1), %0; ror $9, %0"
                         : "+r"(sum)
                         : "r"(at)
                         : "xmm3", "cc", "memory");
    }
    return sum;
}

int main(void)
{
    static const struct {
        const char *name;
        uint64_t (*run)(uint64_t n);
        uint64_t n;
    } kinds[] = {
        { "strings", strings, 50 },     { "scans", scans, 50 },       { "branches", branches, 60 }, { "calls", calls, 60 },
        { "pushes", pushes, 60 },       { "red zone", red_zone, 100 }, { "atomics", atomics, 60 },   { "vectors", vectors, 100 },
        { "floats", floats, 100 },       { "divisions", divisions, 40 }, { "unaligned", unaligned, 100 },
        { "system calls", system_calls, 30 }, { "special", special, 30 },
    };
    struct sigaction action = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
    struct itimerval timer = { { 0, 400 }, { 0, 400 } }, off = { { 0, 0 }, { 0, 0 } };
    uint64_t state = 42;

    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (unsigned char)(check_random(&state) | 1);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        uint64_t before = kinds[i].run(kinds[i].n), with;

        memset(to, 0, sizeof(to));
        before = kinds[i].run(kinds[i].n);
        memset(to, 0, sizeof(to));
        CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
        with = kinds[i].run(kinds[i].n);
        CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
        printf("%s: %s\n", kinds[i].name, before == with ? "same" : "different");
        fflush(stdout);
    }
    return ticks == 0;
}
