// SPDX-License-Identifier: MIT
/* calls.c - `calls N`: N system calls; half of them write 16 bytes to a file in memory, half read
 * them again */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    uint64_t count = argc == 2 ? strtoull(argv[1], NULL, 10) / 2 : 0;
    int fd = memfd_create("calls", 0);
    uint64_t sum = 0;

    if (fd < 0)
        return 1;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t record[2] = { i, i * i };
        off_t at = (off_t)(i % 256 * sizeof(record));

        if (pwrite(fd, record, sizeof(record), at) != sizeof(record) ||
            pread(fd, record, sizeof(record), at) != sizeof(record))
            return 1;
        sum += record[0] ^ record[1];
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
