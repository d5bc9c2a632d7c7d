// SPDX-License-Identifier: MIT
// options: window=200
/* A stack pointer that is no multiple of 8: what is pushed lies on two pages, of which one may hold nothing else that
 * was written.  In one block with what set the pointer, and in blocks that cannot know. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

#define PAGES 80
static unsigned char *memory;

static uint64_t push_at_once(void *top, uint64_t value)
{
    uint64_t result;

    __asm__ volatile("mov %%rsp, %%r12; mov %1, %%rsp; push %2; pop %0; mov %%r12, %%rsp"
                     : "=&r"(result) : "r"(top), "r"(value) : "r12", "memory");
    return result;
}

static uint64_t push_after_leave(void *top, uint64_t value)
{
    uint64_t result;

    __asm__ volatile("mov %%rsp, %%r12; mov %%rbp, %%r13; lea -8(%1), %%rbp; leave; push %2; pop %0\n\t"
                     "mov %%r12, %%rsp; mov %%r13, %%rbp"
                     : "=&r"(result) : "r"(top), "r"(value) : "r12", "r13", "memory");
    return result;
}

static uint64_t push_elsewhere(void *top, uint64_t value)
{
    uint64_t result;

    __asm__ volatile("mov %%rsp, %%r12; mov %1, %%rsp; jmp 1f; ud2\n"
                     "2: pop %0; mov %%r12, %%rsp; jmp 3f; ud2\n"
                     "1: push %2; jmp 2b; ud2\n3:"
                     : "=&r"(result) : "r"(top), "r"(value) : "r12", "memory");
    return result;
}

static uint64_t push_words(void *top, uint64_t value)
{
    uint64_t result;

    __asm__ volatile("mov %%rsp, %%r12; lea 15(%1), %%rsp; and $-16, %%rsp; pushw %w2; push %2; sub $-8, %%rsp; push %2; pop %0; mov %%r12, %%rsp"
                     : "=&r"(result) : "r"(top), "r"(value) : "r12", "memory", "cc");
    return result;
}

static uint64_t push_after_popw(void *top, uint64_t value)
{
    uint64_t result;

    __asm__ volatile("mov %%rsp, %%r12; lea 15(%1), %%rsp; and $-16, %%rsp; popw %w0; push %2; pop %0; mov %%r12, %%rsp"
                     : "=&r"(result) : "r"(top), "r"(value) : "r12", "memory", "cc");
    return result;
}

int main(void)
{
    memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (uint64_t n = 0; n < PAGES / 10; n++) /* first: no block has begun with such a pointer yet */
        CHECK(push_after_popw(memory + n * 10 * 4096 + 9 * 4096, ~n) == ~n);
    for (uint64_t n = 0; n < PAGES / 10; n++) { /* two pages for each push, and none in between */
        unsigned char *edge = memory + n * 10 * 4096 + 4096;

        CHECK(push_elsewhere(edge + 4, ~n) == ~n);
        CHECK(push_at_once(edge + 8192 + 3, ~n) == ~n);
        CHECK(push_after_leave(edge + 2 * 8192 + 1 + n % 7, ~n) == ~n);
        CHECK(push_words(edge + 3 * 8192 + 16, ~n) == ~n);
    }
    printf("%016llx\n", (unsigned long long)check_hash(memory, PAGES * 4096));
    return 0;
}
