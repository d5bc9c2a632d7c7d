// SPDX-License-Identifier: MIT
// missing: gs
/* A program that uses the gs segment itself: not supported, so it must run natively and right. */
#include "check.h"
#include <asm/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t area[16];

int main(void)
{
    uint64_t value = 0, base = 0;

    puts("before");
    for (uint64_t i = 0; i < 16; i++)
        area[i] = i * i;
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, area) == 0);
    for (int i = 0; i < 16; i++) {
        __asm__ volatile("movq %%gs:(%1), %0" : "=r"(value) : "r"((uint64_t)i * 8));
        CHECK(value == (uint64_t)(i * i));
    }
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base == (uint64_t)area);
    puts("gs ok");
    return 0;
}
