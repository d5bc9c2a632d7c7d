// SPDX-License-Identifier: MIT
// native_fails: rdtsc is in the midst of another instruction, to which no jump leads that can be seen
/* As hidden.c, but the jump's target is computed: native play knows only the outer instruction, so that its recording has a window that
 * does not replay.  Translated code has both. */
#include "check.h"

static uint64_t now(void)
{
    uint32_t low, high;

    __asm__ volatile("lea 1f(%%rip), %%rax\n"
                     "inc %%rax\n"
                     "jmp *%%rax\n"
                     "1: .byte 0xb8, 0x90, 0x90, 0x0f, 0x31\n" /* mov $0x310f9090, %eax; nop; nop; rdtsc */
                     : "=a"(low), "=d"(high)
                     :
                     : "cc");
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
