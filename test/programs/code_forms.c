// SPDX-License-Identifier: MIT
// flags: -mcx16
/* Forms of code: trampolines on a stack that is executable, jumps into the middle of a block and of an instruction, code bytes
 * that two blocks share, functions chosen at load time, compare-and-exchange of 8 and 16 bytes that fails and succeeds,
 * repeated strings in both directions that faults interrupt. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <ucontext.h>

/* ---- trampolines ---- */

static uint64_t with_context(uint64_t argument)
{
    uint64_t context;

    __asm__ volatile("mov %%r10, %0" : "=r"(context)); /* as compilers pass it to nested functions */
    return argument * 3 + context;
}

/* mov r10, context; mov r11, function; jmp r11 */
static __attribute__((noinline)) uint64_t through_stack(uint64_t context, uint64_t argument)
{
    unsigned char code[24];
    uint64_t function = (uint64_t)(uintptr_t)with_context, result = argument;
    void *at = code;

    memcpy(code, "\x49\xba", 2);
    memcpy(code + 2, &context, 8);
    memcpy(code + 10, "\x49\xbb", 2);
    memcpy(code + 12, &function, 8);
    memcpy(code + 20, "\x41\xff\xe3", 3);
    __asm__ volatile("" : : "r"(code) : "memory");
    __asm__ volatile("mov %%rsp, %%r12; and $-16, %%rsp; sub $256, %%rsp; call *%1; mov %%r12, %%rsp"
                     : "+D"(result), "+a"(at)
                     :
                     : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
    return (uint64_t)(uintptr_t)at;
}

static void trampolines(void)
{
    uint64_t sum = 0;

    CHECK(mprotect((void *)((uintptr_t)&sum & -4096ul), 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    CHECK(mprotect((void *)(((uintptr_t)&sum & -4096ul) - 4096), 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    for (uint64_t i = 0; i < 300; i++) {
        CHECK(through_stack(i * i, i) == i * 3 + i * i);
        sum += i;
    }
    CHECK(mprotect((void *)((uintptr_t)&sum & -4096ul), 4096, PROT_READ | PROT_WRITE) == 0);
    CHECK(mprotect((void *)(((uintptr_t)&sum & -4096ul) - 4096), 4096, PROT_READ | PROT_WRITE) == 0);
    printf("trampolines %lu\n", (unsigned long)sum);
}

/* ---- shared bytes ---- */

uint64_t into_middle(uint64_t n);
uint64_t into_itself(uint64_t n);
uint64_t into_immediate(uint64_t n);
__asm__(".pushsection .text\n"
        /* one block from its first, second and third instruction */
        "into_middle: xor %eax, %eax; mov %rdi, %rcx; and $3, %ecx; lea 9f(%rip), %rdx\n"
        "movslq (%rdx,%rcx,4), %rcx; add %rdx, %rcx; jmp *%rcx\n"
        "1: add $1, %rax; 2: add $10, %rax; 3: add $100, %rax; 4: add %rdi, %rax; ret\n"
        ".balign 4\n9: .long 1b - 9b, 2b - 9b, 3b - 9b, 4b - 9b\n"
        /* eb ff c0: a jump to its own second byte, and there inc eax */
        "into_itself: mov %rdi, %rax; mov $3, %ecx; 5: .byte 0xeb, 0xff, 0xc0; loop 5b; ret\n"
        /* the immediate of one instruction is another: 05 = add eax, imm32; 83 c0 07 = add eax, 7 */
        "into_immediate: mov %edi, %eax; test $1, %dil; jz 7f\n"
        "6: .byte 0x05, 0x83, 0xc0, 0x07, 0x00; ret\n"
        "7: jmp 6b + 1\n.popsection\n");

static void shared_bytes(void)
{
    static const uint64_t steps[] = { 111, 110, 100, 0 };

    for (uint64_t i = 0; i < 400; i++) {
        CHECK(into_middle(i) == steps[i % 4] + i);
        CHECK(into_itself(i) == i + 3);
        if (i % 2)
            CHECK(into_immediate(i) == i + 0x7c083);
    }
    puts("shared bytes");
}

/* ---- chosen at load time ---- */

static uint64_t first_choice(uint64_t n)
{
    return n + 1;
}

static uint64_t (*choose(void))(uint64_t)
{
    return first_choice;
}

uint64_t chosen(uint64_t n) __attribute__((ifunc("choose")));

/* ---- compare and exchange ---- */

static void exchanges(void)
{
    static _Alignas(16) uint64_t pair[2];
    uint32_t low, high;
    uint64_t wide_low, wide_high;
    bool done;

    for (uint32_t i = 0; i < 200; i++) {
        pair[0] = (uint64_t)i << 32 | (i * 7);
        low = i * 7, high = i + (i % 3 == 0);
        __asm__ volatile("lock cmpxchg8b %3" : "=@ccz"(done), "+a"(low), "+d"(high), "+m"(pair[0]) : "b"(1), "c"(2));
        CHECK(done == (i % 3 != 0) && low == i * 7 && high == i);
        CHECK(pair[0] == (done ? 2ull << 32 | 1 : (uint64_t)i << 32 | (i * 7)));
        pair[0] = i, pair[1] = i * 2;
        wide_low = i + (i % 5 == 0), wide_high = i * 2;
        __asm__ volatile("cmpxchg16b %3" : "=@ccz"(done), "+a"(wide_low), "+d"(wide_high), "+m"(pair) : "b"(8ull), "c"(9ull));
        CHECK(done == (i % 5 != 0) && wide_low == i && wide_high == i * 2ull && pair[0] == (done ? 8 : i));
    }
    puts("exchanges");
}

/* ---- strings that faults interrupt ---- */

#define PAGES 6
static unsigned char *from, *to, *repaired[64];
static volatile unsigned faults;
static volatile uint64_t at_fault[3];

static void on_fault(int signo, siginfo_t *info, void *raw)
{
    const greg_t *r = ((ucontext_t *)raw)->uc_mcontext.gregs;
    unsigned char *page = (unsigned char *)((uintptr_t)info->si_addr & -4096ul);

    (void)signo;
    at_fault[0] = (uint64_t)r[REG_RCX];
    at_fault[1] = (uint64_t)r[REG_RDI];
    at_fault[2] = (uint64_t)r[REG_RSI];
    repaired[faults++ % 64] = page;
    CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void hide(unsigned char *memory, unsigned page)
{
    CHECK(mprotect(memory + page * 4096, 4096, PROT_NONE) == 0);
}

/* A count of elements, left over where it stopped, agrees with the pointers. */
#define INTERRUPTED(name, instruction, size)                                                          \
    static void name(bool down, unsigned source, unsigned target)                                     \
    {                                                                                                 \
        uint64_t count = 3 * 4096 / size, all = count, offset = 4096 + 40, step = (down ? -1ull : 1) * size; \
        uint64_t rdi = (uint64_t)to + offset + (down ? (count - 1) * size : 0), first = rdi;          \
        uint64_t rsi = (uint64_t)from + offset + 8 + (down ? (count - 1) * size : 0);                 \
        unsigned before = faults;                                                                     \
                                                                                                      \
        hide(from, source);                                                                           \
        hide(to, target);                                                                             \
        if (down)                                                                                     \
            __asm__ volatile("std; " instruction "; cld" : "+c"(count), "+S"(rsi), "+D"(rdi) : "a"(0x5a5a5a5a5a5a5a5a) : "memory", "cc"); \
        else                                                                                          \
            __asm__ volatile(instruction : "+c"(count), "+S"(rsi), "+D"(rdi) : "a"(0x5a5a5a5a5a5a5a5a) : "memory", "cc"); \
        CHECK(count == 0 && rdi == first + all * step && faults > before);                            \
        CHECK(at_fault[1] == first + (all - at_fault[0]) * step);                                     \
        CHECK(mprotect(from, PAGES * 4096, PROT_READ | PROT_WRITE) == 0);                             \
        CHECK(mprotect(to, PAGES * 4096, PROT_READ | PROT_WRITE) == 0);                               \
    }
INTERRUPTED(move_bytes, "rep movsb", 1)
INTERRUPTED(move_quads, "rep movsq", 8)
INTERRUPTED(set_words, "rep stosw", 2)
INTERRUPTED(set_quads, "rep stosq", 8)
INTERRUPTED(compare, "repe cmpsb", 1)

static void strings(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    from = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    to = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(from != MAP_FAILED && to != MAP_FAILED);
    for (unsigned round = 0; round < 12; round++) {
        bool down = round & 1;

        for (size_t i = 0; i < PAGES * 4096; i++)
            from[i] = (unsigned char)(i * 7 + round);
        move_bytes(down, 1 + round % 4, 1 + round / 3);
        CHECK(memcmp(from + 4096 + 48, to + 4096 + 40, 3 * 4096) == 0);
        memset(to, 0, PAGES * 4096);
        move_quads(down, 1 + round / 3, 1 + round % 4);
        CHECK(memcmp(from + 4096 + 48, to + 4096 + 40, 3 * 4096) == 0);
        compare(down, 1 + round / 3, 1 + round % 4);
        set_words(down, 5, 1 + round % 4);
        set_quads(down, 5, 1 + round % 4);
        for (size_t i = 0; i < 3 * 4096; i++)
            CHECK(to[4096 + 40 + i] == 0x5a);
    }
    CHECK(faults >= 60);
    puts("strings");
}

int main(void)
{
    trampolines();
    shared_bytes();
    CHECK(chosen(4) == 5);
    exchanges();
    strings();
    return 0;
}
