// SPDX-License-Identifier: MIT
/* Between many system calls a file is mapped privately and read: the one that is named, or the program's own. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define CALLS 10000
#define BYTES 8192

static void call(void)
{
    for (int i = 0; i < CALLS; i++)
        getppid();
}

static unsigned sum_of(const char *path)
{
    int file = open(path, O_RDONLY);
    const unsigned char *bytes = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, file, 0);
    unsigned sum = 0;

    if (bytes == MAP_FAILED)
        return 0;
    for (int i = 0; i < BYTES; i++)
        sum = sum * 31 + bytes[i];
    close(file);
    return sum;
}

int main(int argc, char **argv)
{
    call();
    printf("%u\n", sum_of(argv[argc > 1]));
    call();
    return 0;
}
