// SPDX-License-Identifier: MIT
// cpu: amx_tile
// end: detached
// missing: it has tiles (AMX) in memory that others may write
// native: it has tiles (AMX) in memory that others may write
/* A tile that is loaded from memory which other processes may write: the program goes on untraced. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
};

static const struct config shape = { .palette = 1, .bytes = { 64 }, .rows = { 16 } };

int main(void)
{
    static uint8_t copy[1024];
    int file = memfd_create("shared", 0);
    uint8_t *shared;

    CHECK(file >= 0 && ftruncate(file, 4096) == 0);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(shared != MAP_FAILED && syscall(SYS_arch_prctl, 0x1023, 18) == 0);
    memset(shared, 5, 4096);
    puts("begins");
    fflush(stdout);
    __asm__ volatile("ldtilecfg %0" ::"m"(shape));
    __asm__ volatile("tileloadd (%0, %1, 1), %%tmm0" ::"r"(shared), "r"(64l) : "memory");
    __asm__ volatile("tilestored %%tmm0, (%0, %1, 1)" ::"r"(copy), "r"(64l) : "memory");
    CHECK(memcmp(copy, shared, sizeof(copy)) == 0);
    __asm__ volatile("tilezero %tmm0");
    __asm__ volatile("tilestored %%tmm0, (%0, %1, 1)" ::"r"(shared), "r"(64l) : "memory");
    CHECK(shared[0] == 0 && shared[1023] == 0 && shared[1024] == 5);
    puts("done");
    return 0;
}
