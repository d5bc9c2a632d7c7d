// SPDX-License-Identifier: MIT
// signal: 9
// options: window=20000
/* Killed in the window that first looks at pages which mremap moved in an earlier one: what they hold was only ever told of
 * their old places. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE  4096ul
#define WORDS (PAGE / 8)

static volatile uint64_t sum;

static uint64_t *map(size_t pages)
{
    void *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(at != MAP_FAILED);
    return at;
}

/* All pages but the last, which is never written. */
static uint64_t *filled(size_t pages, uint64_t seed)
{
    uint64_t *at = map(pages);

    for (size_t i = 0; i < (pages - 1) * WORDS; i += 32)
        at[i] = check_random(&seed);
    return at;
}

static uint64_t *moved(uint64_t *from, size_t pages, size_t to_pages, int flags)
{
    uint64_t *room = map(to_pages);
    void *to = mremap(from, pages * PAGE, to_pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | flags, room);

    CHECK(to == room);
    return to;
}

static void later(unsigned blocks)
{
    for (unsigned i = 0; i < blocks; i++)
        sum += i;
}

/* Where control goes depends on what is there. */
static void look(const uint64_t *at, size_t pages)
{
    for (size_t i = 0; i < pages * WORDS; i += 32) {
        if (at[i] & 1)
            sum += at[i];
        else if (at[i] & 2)
            sum ^= at[i];
    }
}

int main(void)
{
    uint64_t *once = moved(filled(6, 3), 6, 6, 0);
    uint64_t *grown = moved(filled(4, 5), 4, 7, 0);
    uint64_t *old = filled(5, 7), *twice = filled(5, 11);
    uint64_t *copy = moved(old, 5, 5, MREMAP_DONTUNMAP);

    later(30000);
    twice = moved(twice, 5, 5, 0);
    once[WORDS] = 1; /* told at the window's end: the others are not */
    later(30000);
    twice = moved(twice, 5, 5, 0);
    later(30000);
    look(once, 6);
    look(grown, 7);
    look(copy, 5);
    look(old, 5);
    look(twice, 5);
    kill(getpid(), SIGKILL);
    return 1;
}
