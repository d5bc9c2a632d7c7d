// SPDX-License-Identifier: MIT
/* Bytes that are one instruction, and another one for whoever jumps into its midst.  Translated code has both; native play, which could
 * put a trap into one of them only, goes on translated. */
#include "check.h"

static uint64_t now(void)
{
    uint32_t low, high;

    __asm__ volatile("jmp 1f + 1\n"
                     "1: .byte 0xb8, 0x90, 0x90, 0x0f, 0x31\n" /* mov $0x310f9090, %eax; nop; nop; rdtsc */
                     : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

int main(void)
{
    uint64_t first, then;

    printf("before\n");
    fflush(stdout);
    first = now();
    then = now();
    CHECK(first && then >= first);
    printf("after\n");
    return 0;
}
