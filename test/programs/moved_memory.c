// SPDX-License-Identifier: MIT
// options: window=200
/* Memory that is moved, doubled, dropped and brought back by mremap and madvise: what each page holds afterwards, many windows
 * later, too. */
#define _GNU_SOURCE
#include "own_file.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul

static unsigned char *map(size_t pages, int flags)
{
    unsigned char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

    CHECK(at != MAP_FAILED);
    return at;
}

static void fill(unsigned char *at, size_t pages, unsigned seed)
{
    for (size_t n = 0; n < pages; n++)
        memset(at + n * PAGE, (int)(seed + n), PAGE);
}

/* Some blocks later. */
static void check_all(const volatile unsigned char *at, size_t pages, unsigned seed, unsigned step)
{
    for (unsigned round = 0; round < 3; round++)
        for (size_t n = 0; n < pages; n++)
            for (size_t i = 0; i < PAGE; i += 97)
                CHECK(at[n * PAGE + i] == (unsigned char)(seed + step * n));
}

static void moved(void)
{
    unsigned char *from = map(8, MAP_PRIVATE), *room = map(16, MAP_PRIVATE), *to;

    fill(from, 8, 10);
    to = mremap(from, 8 * PAGE, 12 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    CHECK(to == room);
    check_all(to, 8, 10, 1);
    check_all(to + 8 * PAGE, 4, 0, 0);
    to = mremap(to, 12 * PAGE, 5 * PAGE, 0);
    CHECK(to == room);
    check_all(to, 5, 10, 1);
    munmap(room, 16 * PAGE);
}

/* The old place stays, and is empty. */
static void left_behind(void)
{
    unsigned char *from = map(6, MAP_PRIVATE);
    unsigned char *to;

    fill(from, 6, 30);
    to = mremap(from, 6 * PAGE, 6 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    if (to == MAP_FAILED) {
        CHECK(errno == EINVAL); /* before Linux 5.7 */
        munmap(from, 6 * PAGE);
        return;
    }
    check_all(to, 6, 30, 1);
    check_all(from, 6, 0, 0);
    fill(from, 6, 50);
    check_all(from, 6, 50, 1);
    check_all(to, 6, 30, 1);
    munmap(from, 6 * PAGE);
    munmap(to, 6 * PAGE);
}

/* With a size of 0 shared memory is mapped once more. */
static void doubled(void)
{
    unsigned char *from = map(4, MAP_SHARED);
    unsigned char *to;

    fill(from, 4, 70);
    to = mremap(from, 0, 4 * PAGE, MREMAP_MAYMOVE);
    CHECK(to != MAP_FAILED && to != from);
    check_all(to, 4, 70, 1);
    to[PAGE] = 7;
    CHECK(*(volatile unsigned char *)(from + PAGE) == 7);
    from[PAGE] = 71;
    check_all(to, 4, 70, 1);
    munmap(from, 4 * PAGE);
    check_all(to, 4, 70, 1);
    munmap(to, 4 * PAGE);
}

static void dropped(void)
{
    unsigned char *at = map(10, MAP_PRIVATE);

    fill(at, 10, 90);
    CHECK(madvise(at, 2 * PAGE, MADV_DONTNEED) == 0);
    CHECK(madvise(at + 2 * PAGE, 2 * PAGE, MADV_COLD) == 0 || errno == EINVAL);
    CHECK(madvise(at + 4 * PAGE, 2 * PAGE, MADV_PAGEOUT) == 0 || errno == EINVAL);
    CHECK(madvise(at, 10 * PAGE, MADV_WILLNEED) == 0 && madvise(at, 10 * PAGE, MADV_SEQUENTIAL) == 0);
    check_all(at, 2, 0, 0);
    check_all(at + 2 * PAGE, 8, 92, 1);
    CHECK(madvise(at, 2 * PAGE, MADV_POPULATE_WRITE) == 0 || errno == EINVAL);
    CHECK(madvise(at, 10 * PAGE, MADV_HUGEPAGE) == 0 || errno == EINVAL);
    CHECK(madvise(at, 10 * PAGE, MADV_DONTDUMP) == 0 && madvise(at, 10 * PAGE, MADV_DODUMP) == 0);
    check_all(at, 2, 0, 0);
    CHECK(madvise(at + 4 * PAGE, 2 * PAGE, MADV_FREE) == 0);
    fill(at + 4 * PAGE, 2, 5); /* written again: it stays */
    check_all(at + 4 * PAGE, 2, 5, 1);
    CHECK(madvise(at, PAGE, 12345) == -1 && errno == EINVAL);
    munmap(at, 10 * PAGE);
}

/* Of a private mapping of a file, what was written goes, and the file comes back. */
static void dropped_file(void)
{
    unsigned char *at, page[PAGE];
    int fd = make_own_file();

    for (unsigned n = 0; n < 3; n++) {
        memset(page, (int)(120 + n), PAGE);
        CHECK(write(fd, page, PAGE) == (ssize_t)PAGE);
    }
    at = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(at != MAP_FAILED);
    fill(at, 3, 1);
    check_all(at, 3, 1, 1);
    CHECK(madvise(at + PAGE, PAGE, MADV_DONTNEED) == 0);
    check_all(at, 1, 1, 1);
    check_all(at + PAGE, 1, 121, 1);
    check_all(at + 2 * PAGE, 1, 3, 1);
    munmap(at, 3 * PAGE);
    close(fd);
}

int main(void)
{
    moved();
    left_behind();
    doubled();
    dropped();
    dropped_file();
    puts("every page holds what it should");
    return 0;
}
