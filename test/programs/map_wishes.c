// SPDX-License-Identifier: MIT
/* Wishes for addresses all over the lower half of the address space, where the engine lives too: the program gets
 * memory, may write, move and give back all of it, and a wish that must not be changed fails at most. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <sys/mman.h>

#define BYTES (1 << 16)

static void use(char *memory)
{
    memset(memory, 5, BYTES);
    CHECK(mprotect(memory, BYTES / 2, PROT_READ) == 0);
    CHECK(memory[0] == 5 && memory[BYTES - 1] == 5);
    CHECK(mmap(memory, BYTES / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory);
    CHECK(memory[0] == 0);
    CHECK(munmap(memory, BYTES) == 0);
}

int main(void)
{
    for (uintptr_t at = 1ull << 40; at < 1ull << 47; at += 1ull << 40) {
        char *wish = (char *)at + (16ull << 30) + (5ull << 20);
        char *got = mmap(wish, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        CHECK(got != MAP_FAILED);
        use(got);
        got = mmap(wish, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        CHECK(got == wish || (got == MAP_FAILED && errno == EEXIST));
        if (got != MAP_FAILED)
            use(got);
    }
    puts("mapped");
    return 0;
}
