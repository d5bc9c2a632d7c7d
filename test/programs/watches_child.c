// SPDX-License-Identifier: MIT
/* A recorded program that watches a child (ptrace): what the kernel writes to it in each request. */
// options: children=no
#define _GNU_SOURCE
#include "check.h"
#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASK_FS_BASE 0x1003 /* ARCH_GET_FS */
#define ASK_ARCH    30     /* PTRACE_ARCH_PRCTL */

int main(void)
{
    static const char unlucky[] = "ptrace is not allowed here";
    struct user_regs_struct regs;
    struct iovec part = { &regs, 4096 };
    unsigned long base = 0, mask = 1;
    siginfo_t info;
    int status;
    pid_t child = fork();

    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        _exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        puts(unlucky);
        return 77;
    }
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    CHECK(syscall(SYS_ptrace, ASK_ARCH, child, &base, ASK_FS_BASE) == 0 && base != 0);
    CHECK(ptrace(PTRACE_GETREGSET, child, (void *)NT_PRSTATUS, &part) == 0 && part.iov_len == sizeof(regs));
    CHECK(regs.fs_base == base);
    part.iov_len = 4096;
    CHECK(ptrace(PTRACE_SETREGSET, child, (void *)NT_PRSTATUS, &part) == 0 && part.iov_len == sizeof(regs));
    CHECK(ptrace(PTRACE_GETSIGINFO, child, NULL, &info) == 0 && info.si_signo == SIGSTOP);
    CHECK(ptrace(PTRACE_GETSIGMASK, child, (void *)sizeof(mask), &mask) == 0 && mask == 0);
    CHECK(ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    puts("watched");
    return 0;
}
