// SPDX-License-Identifier: MIT
/* Different files and memory mapped at the same address one after the other, all in one window. */
#include "check.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 4u

static int file_with(int number)
{
    char name[] = "/tmp/tbd-same-place-XXXXXX";
    char text[4096];
    int fd = mkstemp(name);

    CHECK(fd >= 0 && unlink(name) == 0);
    for (unsigned i = 0; i < PAGES; i++) {
        memset(text, 'a' + number + (int)i, sizeof(text));
        CHECK(write(fd, text, sizeof(text)) == (ssize_t)sizeof(text));
    }
    return fd;
}

static unsigned read_pages(const volatile unsigned char *at)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < PAGES; i++)
        sum = sum * 31 + at[i * 4096 + i];
    return sum;
}

int main(void)
{
    unsigned sum = 0;
    size_t bytes = PAGES * 4096;
    char *place = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(place != MAP_FAILED);
    for (int n = 0; n < 8; n++) {
        int fd = file_with(n);
        unsigned char *at = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);

        CHECK((char *)at == place && close(fd) == 0);
        sum += read_pages(at);
        at[n * 100] = (unsigned char)n; /* its own copy of one page */
        sum += read_pages(at);
        CHECK(madvise(at + 4096, 4096, MADV_DONTNEED) == 0);
        CHECK(at[4096] == 'a' + n + 1);
        if (n % 3 == 1) {
            at = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0);
            CHECK((char *)at == place && at[n * 100] == 0 && read_pages(at) == 0);
            at[5] = 5;
            CHECK(madvise(at, 4096, MADV_DONTNEED) == 0 && at[5] == 0);
        } else if (n % 3 == 2) {
            CHECK(munmap(at, bytes) == 0);
            place = mmap(place, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            CHECK(place != MAP_FAILED && read_pages((unsigned char *)place) == 0);
        }
    }
    printf("%u\n", sum);
    return 0;
}
