// SPDX-License-Identifier: MIT
// options: window=3000
/* Memory that grows by mremap, page by page: in place, or, where something lies behind it, by a move each time.  All of it
 * is read in each round, and little of it written.  And memory that is moved often before anything of it is used. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

#define PAGE   4096ul
#define ROUNDS 150u

static uint64_t sum_of(const unsigned char *memory, size_t pages)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < pages; i++)
        sum = sum * 31 + memory[i * PAGE + i % PAGE] + memory[i * PAGE + PAGE - 1];
    return sum;
}

/* Something that cannot move away right behind it. */
static void block(unsigned char *end)
{
    void *at = mmap(end, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    CHECK(at == end || at == MAP_FAILED);
}

static void grow(int is_blocked)
{
    unsigned char *memory =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned moves = 0;
    uint64_t sum = 0;

    CHECK(memory != MAP_FAILED);
    for (size_t pages = 1; pages <= ROUNDS; pages++) {
        unsigned char *before = memory;

        memory[(pages - 1) * PAGE + (pages - 1) % PAGE] = (unsigned char)pages;
        memory[pages / 2 * PAGE + PAGE - 1]++;
        if (is_blocked)
            block(memory + pages * PAGE);
        memory = mremap(memory, pages * PAGE, (pages + 1) * PAGE, MREMAP_MAYMOVE);
        CHECK(memory != MAP_FAILED);
        moves += memory != before;
        sum = sum * 7 + sum_of(memory, pages + 1);
    }
    CHECK(moves == ROUNDS || !is_blocked);
    memory = mremap(memory, (ROUNDS + 1) * PAGE, 20 * PAGE, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED);
    memory = mremap(memory, 20 * PAGE, 90 * PAGE, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED);
    printf("%016llx %016llx\n", (unsigned long long)sum, (unsigned long long)sum_of(memory, 90));
    munmap(memory, 90 * PAGE);
}

/* Between two places, a page more each time; only its first and its last page are written. */
static void move_unused(void)
{
    unsigned char *places =
        mmap(NULL, 4 * ROUNDS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *memory =
        mmap(NULL, PAGE * 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(places != MAP_FAILED && memory != MAP_FAILED);
    memory[19 * PAGE] = 19;
    for (size_t pages = 20; pages < ROUNDS; pages++) {
        unsigned char *to = places + pages % 2 * 2 * ROUNDS * PAGE;

        memory[0]++;
        memory =
            mremap(memory, pages * PAGE, (pages + 1) * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        CHECK(memory == to);
    }
    printf("%016llx\n", (unsigned long long)sum_of(memory, ROUNDS));
}

int main(void)
{
    grow(0);
    grow(1);
    move_unused();
    /* as realloc does it */
    for (size_t bytes = 200000, n = 0; n < 200; bytes += 9000, n++) {
        static unsigned char *grown;

        grown = realloc(grown, bytes);
        CHECK(grown);
        memset(grown + bytes - 9000, (int)n, 9000);
        if (n % 50 == 49)
            printf("%016llx\n", (unsigned long long)sum_of(grown, bytes / PAGE));
    }
    return 0;
}
