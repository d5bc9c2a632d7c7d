// SPDX-License-Identifier: MIT
/* Pages that fault though their mapping says otherwise (MADV_GUARD_INSTALL, Linux 6.13), with mprotect where the kernel
 * refuses them, as C libraries do for the ends of stacks. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE    4096
#define INSTALL 102
#define REMOVE  103

static sigjmp_buf back;

static void handler(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static int faults(char *at, int writes)
{
    if (sigsetjmp(back, 1))
        return 1;
    if (writes)
        *(volatile char *)at = 7;
    else
        (void)*(volatile char *)at;
    return 0;
}

/* By both calls, which a kernel may have or not. */
static void guard(char *at, size_t bytes, int advice, int own)
{
    struct {
        void *start;
        size_t bytes;
    } range = { at, bytes };
    long fd = own ? syscall(434 /* pidfd_open */, getpid(), 0) : -1;
    long result = own ? syscall(440 /* process_madvise */, fd, &range, 1, advice, 0)
                      : madvise(at, bytes, advice);

    if (result < 0)
        CHECK(mprotect(at, bytes, advice == INSTALL ? PROT_NONE : PROT_READ | PROT_WRITE) == 0);
    if (fd >= 0)
        close((int)fd);
}

static void show(const char *when, char *memory)
{
    printf("%s:", when);
    for (int i = 0; i < 8; i++)
        printf(" %d%d", faults(memory + i * PAGE, 0), faults(memory + i * PAGE + 1, 1));
    putchar('\n');
    fflush(stdout);
}

int main(void)
{
    char *memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED && signal(SIGSEGV, handler) != SIG_ERR);
    for (int own = 0; own < 2; own++) {
        memset(memory, 1, 8 * PAGE);
        guard(memory + 2 * PAGE, 3 * PAGE, INSTALL, own);
        show("guarded", memory);
        if (fork() == 0) {
            show("child", memory);
            _exit(0);
        }
        CHECK(wait(NULL) > 0);
        guard(memory + 3 * PAGE, PAGE, REMOVE, own);
        show("opened", memory);
        guard(memory + 2 * PAGE, 3 * PAGE, REMOVE, own);
        show("removed", memory);
    }
    return 0;
}
