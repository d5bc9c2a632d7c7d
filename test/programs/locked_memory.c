// SPDX-License-Identifier: MIT
/* mlockall: the program's memory is locked, now and later, and nothing else is. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096u
#define BYTES (64u * PAGE)

static void show(const char *what, int result)
{
    printf("%s: %d %d\n", what, result, result ? errno : 0);
}

/* KiB that are locked, by /proc/self/status. */
static long locked(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long value = -1;

    CHECK(file);
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, "VmLck:", 6) == 0)
            value = atol(line + 6);
    fclose(file);
    return value;
}

static unsigned char *map(int prot)
{
    unsigned char *at = mmap(NULL, BYTES, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(at != MAP_FAILED);
    return at;
}

static int present(unsigned char *at)
{
    unsigned char state[BYTES / PAGE];
    int count = 0;

    CHECK(mincore(at, BYTES, state) == 0);
    for (unsigned i = 0; i < BYTES / PAGE; i++)
        count += state[i] & 1;
    return count;
}

static void in_child(void)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        unsigned char *at = map(PROT_READ | PROT_WRITE);

        _exit(locked() == 0 && present(at) == 0 ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    struct rlimit limit;
    unsigned char *early = map(PROT_READ | PROT_WRITE), *late;
    int result;

    CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (geteuid() != 0 && limit.rlim_cur < 64u << 20) {
        puts("too little memory can be locked here");
        return 77;
    }
    show("nothing", mlockall(0));
    show("on fault alone", mlockall(MCL_ONFAULT));
    show("other flags", mlockall(64 | MCL_CURRENT));
    CHECK(locked() == 0 && present(early) == 0);
    result = mlockall(MCL_CURRENT | MCL_FUTURE);
    show("all", result);
    if (result) /* without the right to, which user namespaces take away */
        return 0;
    CHECK(locked() > (long)(BYTES >> 10) && locked() < 1 << 20);
    late = map(PROT_READ | PROT_WRITE);
    printf("present: %d %d\n", present(early), present(late));
    in_child();
    errno = 0;
    show("drop what is locked", madvise(late, BYTES, MADV_DONTNEED));
    show("none", munlockall());
    CHECK(locked() == 0);
    show("drop it now", madvise(late, BYTES, MADV_DONTNEED));
    late = map(PROT_READ | PROT_WRITE);
    printf("present: %d\n", present(late));
    show("later ones, on fault", mlockall(MCL_FUTURE | MCL_ONFAULT));
    late = map(PROT_READ | PROT_WRITE);
    late[PAGE] = 1;
    printf("present: %d, locked: %ld\n", present(late), locked());
    show("none", munlockall());
    return 0;
}
