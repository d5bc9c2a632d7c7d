// SPDX-License-Identifier: MIT
/* Calls for ranges that begin within a page and end in the next mapping, where the engine may be: the kernel refuses all of them. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <sys/mman.h>

#define PAGE   4096ul
#define PAGES  8ul
#define ENGINE 0x500000000000ul /* src/base/layout.h */

int main(void)
{
    unsigned char *at = (unsigned char *)(ENGINE - PAGES * PAGE);
    long results[6];

    if (mmap(at, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at) {
        printf("another mapping is there\n");
        exit(77);
    }
    memset(at, 1, PAGES * PAGE);
    errno = 0;
    results[0] = madvise(at + 1, PAGES * PAGE, MADV_DONTNEED);
    results[1] = mprotect(at + 1, PAGES * PAGE, PROT_READ);
    results[2] = munmap(at + 1, PAGES * PAGE);
    results[3] = (long)mremap(at + 1, PAGES * PAGE, PAGE, 0);
    results[4] = (long)mmap(at + 1, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    results[5] = (long)mremap(at, PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 1);
    for (int i = 0; i < 6; i++)
        CHECK(results[i] == -1);
    CHECK(errno == EINVAL);
    for (unsigned i = 0; i < PAGES; i++)
        CHECK(at[i * PAGE] == 1);
    printf("all were refused\n");
    return 0;
}
