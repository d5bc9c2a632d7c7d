// SPDX-License-Identifier: MIT
/* creat(2) opens a file that is there, too: the program's own memory. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

static volatile uint64_t word = 1;

int main(void)
{
    uint64_t value = 9;
    unsigned turns = 0;
    int fd = creat("/proc/self/mem", 0600);

    CHECK(fd >= 0);
    CHECK(pwrite(fd, &value, sizeof(value), (off_t)(uintptr_t)&word) == sizeof(value));
    for (uint64_t i = word; i > 0; i--)
        turns++;
    CHECK(turns == 9);
    printf("%u turns\n", turns);
    return 0;
}
