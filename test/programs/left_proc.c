// SPDX-License-Identifier: MIT
/* What a browser's sandbox does: in a user namespace, a child of vfork that shares the folders with its parent, and has a TLS of zeros,
 * goes into a root folder that ends with it.  Nothing can be opened by name then, in /proc neither; the program goes on. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 65536

static int leave(void *unused)
{
    (void)unused;
    if (chroot("/proc/self/fdinfo/") || chdir("/"))
        _exit(4);
    _exit(5);
}

/* The child's frames are on memory of their own, without a check of the stack that would need a TLS. */
static int leave_all(void)
{
    static _Alignas(16) char stack[BYTES], tls[BYTES];
    int status;
    pid_t pid = clone(leave, stack + BYTES, CLONE_FS | CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD, NULL, NULL, tls, NULL);

    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(void)
{
    volatile char *page;

    if (unshare(CLONE_NEWUSER)) {
        puts("no user namespaces here");
        return 0;
    }
    printf("left: %d\n", leave_all());
    printf("there: %d\n", open("/proc/self/maps", O_RDONLY));
    page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    memset((char *)page, 7, BYTES);
    CHECK(mprotect((char *)page, BYTES, PROT_READ) == 0);
    printf("page: %d\n", page[BYTES - 1]);
    CHECK(munmap((char *)page, BYTES) == 0);
    printf("again: %d\n", leave_all());
    return 0;
}
