// SPDX-License-Identifier: MIT
// signal: 9
/* Killed in the middle of a window that used memory which another process wrote: before this one first used it, and
 * after.  Nobody else knows what the memory held then. */
#define _GNU_SOURCE
#include "check.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE_WORDS 512

static volatile uint64_t *map_shared(int fd)
{
    void *at = mmap(NULL, 4 * PAGE_WORDS * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                    MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

    CHECK(at != MAP_FAILED);
    return at;
}

/* Pages 0 and 1 are used before the other process writes, page 2 only afterwards, page 3 by nobody else. */
static void let_other_write(volatile uint64_t *words)
{
    pid_t child;
    int status;

    CHECK(words[1] == 0);
    words[0] = 1;
    words[PAGE_WORDS] = 2;
    child = fork();
    if (!child) {
        for (int i = 0; i < 3 * PAGE_WORDS; i++)
            words[i] += 10;
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void look(volatile uint64_t *words)
{
    CHECK(words[0] == 11 && words[PAGE_WORDS] == 12 && words[2 * PAGE_WORDS] == 10);
    words[2 * PAGE_WORDS + 1]++;
    words[3 * PAGE_WORDS]++;
    CHECK(words[2 * PAGE_WORDS + 1] == 11 && words[3 * PAGE_WORDS] == 1);
}

int main(void)
{
    int fd = memfd_create("die_shared", 0);
    volatile uint64_t *anonymous, *file;

    CHECK(fd >= 0 && ftruncate(fd, 4 * PAGE_WORDS * sizeof(uint64_t)) == 0);
    anonymous = map_shared(-1);
    file = map_shared(fd);
    let_other_write(anonymous);
    let_other_write(file);
    look(anonymous);
    look(file);
    puts("before");
    fflush(stdout);
    kill(getpid(), SIGKILL);
    return 0;
}
