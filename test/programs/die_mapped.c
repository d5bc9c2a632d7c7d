// SPDX-License-Identifier: MIT
// signal: 9
/* Killed in the window that mapped files: one that is deleted, one that was just written and is overwritten, a part of one,
 * one that ends within its mapping.  What the program read is in no file any more. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul
#define PAGES 5ul

static char deleted[] = "/tmp/tbd-die-mapped-XXXXXX", kept[] = "/tmp/tbd-die-mapped-XXXXXX";
static volatile uint64_t sum;

static int make_file(char *name, uint64_t seed)
{
    uint64_t words[PAGES * PAGE / 8];
    int fd = mkstemp(name);

    for (size_t i = 0; i < PAGES * PAGE / 8; i++)
        words[i] = check_random(&seed);
    CHECK(fd >= 0 && write(fd, words, sizeof(words) - 100) == (ssize_t)sizeof(words) - 100);
    return fd;
}

/* Where control goes depends on every word. */
static void look(const uint64_t *at, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8; i++) {
        if (at[i] & 1)
            sum += at[i];
        else if (at[i] & 2)
            sum ^= at[i];
    }
}

static uint64_t *map(int fd, size_t first, size_t count, int prot)
{
    void *at = mmap(NULL, count * PAGE, prot, MAP_PRIVATE, fd, (off_t)(first * PAGE));

    CHECK(at != MAP_FAILED);
    return at;
}

int main(void)
{
    int gone = make_file(deleted, 7), stays = make_file(kept, 11);
    uint64_t *writable;

    CHECK(unlink(deleted) == 0);
    look(map(gone, 0, PAGES, PROT_READ), PAGES * PAGE);
    look(map(gone, 2, 2, PROT_READ), 2 * PAGE);
    look(map(stays, 1, 3, PROT_READ), 3 * PAGE);
    writable = map(stays, 0, PAGES, PROT_READ | PROT_WRITE);
    writable[3] = sum;
    look(writable, PAGES * PAGE);
    CHECK(madvise(writable, 2 * PAGE, MADV_DONTNEED) == 0);
    CHECK(writable[3] != sum);
    look(writable, PAGES * PAGE);
    CHECK(unlink(kept) == 0 && ftruncate(stays, 0) == 0);
    printf("%llx\n", (unsigned long long)sum);
    fflush(stdout);
    kill(getpid(), SIGKILL);
    return 0;
}
