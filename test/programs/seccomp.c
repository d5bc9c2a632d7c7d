// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
/* A program that restricts its system calls: what each action of a filter does, several filters, which ones are taken,
 * children that die of theirs or execute a program under them. */
#include "check.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define ANSWER(number, action) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), RETURN(action)

static long set(struct sock_filter *filter, unsigned short count, unsigned flags)
{
    struct sock_fprog program = { count, filter };

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}
#define SET(...)                                                                                   \
    do {                                                                                           \
        struct sock_filter filter_[] = { __VA_ARGS__ };                                            \
        CHECK(set(filter_, sizeof(filter_) / sizeof(filter_[0]), 0) == 0);                         \
    } while (0)
#define REFUSED(why, ...)                                                                          \
    do {                                                                                           \
        struct sock_filter filter_[] = { __VA_ARGS__ };                                            \
        errno = 0;                                                                                 \
        CHECK(set(filter_, sizeof(filter_) / sizeof(filter_[0]), 0) == -1 && errno == (why));      \
    } while (0)

static volatile sig_atomic_t trapped;
static siginfo_t seen;
static greg_t seen_rax, seen_rip;

static void on_trap(int signo, siginfo_t *info, void *context)
{
    ucontext_t *at = context;

    trapped += signo == SIGSYS;
    seen = *info;
    seen_rax = at->uc_mcontext.gregs[REG_RAX];
    seen_rip = at->uc_mcontext.gregs[REG_RIP];
    at->uc_mcontext.gregs[REG_RAX] = -EXDEV;
}

static void check_validity(void)
{
    REFUSED(EINVAL, LOAD(nr));                                              /* no return at the end */
    REFUSED(EINVAL, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), RETURN(0));      /* not aligned */
    REFUSED(EINVAL, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), RETURN(0));     /* behind the end */
    REFUSED(EINVAL, BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), RETURN(0));      /* not a word */
    REFUSED(EINVAL, BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0), RETURN(0));        /* out of the program */
    REFUSED(EINVAL, BPF_STMT(BPF_LD | BPF_MEM, 3), RETURN(0));              /* never written */
    REFUSED(EINVAL, BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), RETURN(0));
    REFUSED(EINVAL, BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 3), RETURN(0));
    CHECK(set(NULL, 1, 0) == -1 && errno == EINVAL);
    CHECK(set((struct sock_filter *)8, 1, 0) == -1 && errno == EFAULT);
    CHECK(set(NULL, 0, 0) == -1 && errno == EINVAL);
    CHECK(set(NULL, 1, 1u << 30) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
}

static void check_actions(void)
{
    struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
    struct timespec now;
    void *page;

    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    CHECK(prctl(PR_GET_SECCOMP) == 0);
    SET(LOAD(nr), ANSWER(SYS_getppid, SECCOMP_RET_ERRNO | 77), ANSWER(SYS_getuid, SECCOMP_RET_ERRNO),
        ANSWER(SYS_geteuid, SECCOMP_RET_TRAP | 55), ANSWER(SYS_getgid, SECCOMP_RET_TRACE),
        ANSWER(SYS_getegid, SECCOMP_RET_USER_NOTIF), ANSWER(SYS_getpgrp, SECCOMP_RET_LOG),
        ANSWER(SYS_clock_gettime, SECCOMP_RET_ERRNO | 1), ANSWER(SYS_munmap, SECCOMP_RET_ERRNO),
        ANSWER(SYS_mremap, SECCOMP_RET_TRAP), RETURN(SECCOMP_RET_ALLOW));
    CHECK(prctl(PR_GET_SECCOMP) == 2);
    CHECK(syscall(SYS_getppid) == -1 && errno == 77);
    CHECK(syscall(SYS_getuid) == 0);
    CHECK(syscall(SYS_getgid) == -1 && errno == ENOSYS);
    CHECK(syscall(SYS_getegid) == -1 && errno == ENOSYS);
    CHECK(syscall(SYS_getpgrp) > 0);
    CHECK(syscall(SYS_geteuid) == -1 && errno == EXDEV && trapped == 1);
    CHECK(seen.si_signo == SIGSYS && seen.si_code == 1 && seen.si_errno == 55);
    CHECK(seen.si_syscall == SYS_geteuid && seen.si_arch == AUDIT_ARCH_X86_64);
    CHECK(seen.si_call_addr == (void *)seen_rip && seen_rax == SYS_geteuid);
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0); /* by the vDSO: no call */
    CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == -1 && errno == EPERM);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(volatile char *)page = 5;
    CHECK(munmap(page, 4096) == 0 && *(volatile char *)page == 5);
    CHECK(mremap(page, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED && errno == EXDEV && trapped == 2);
    CHECK(*(volatile char *)page == 5);
}

/* The strictest wins; of equals the newest.  Arithmetic and memory, too. */
static void check_several(void)
{
    SET(LOAD(nr), ANSWER(SYS_getppid, SECCOMP_RET_ERRNO | 78), ANSWER(SYS_geteuid, SECCOMP_RET_ERRNO | 9),
        RETURN(SECCOMP_RET_ALLOW));
    CHECK(syscall(SYS_getppid) == -1 && errno == 78);
    CHECK(syscall(SYS_geteuid) == -1 && errno == EXDEV && trapped == 3);
    SET(LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsid, 1, 0), RETURN(SECCOMP_RET_ALLOW),
        LOAD(args[0]), BPF_STMT(BPF_ST, 7), BPF_STMT(BPF_LDX | BPF_MEM, 7),
        BPF_STMT(BPF_LD | BPF_IMM, 100), BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 3), BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 2),
        BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO), BPF_STMT(BPF_RET | BPF_A, 0));
    CHECK(syscall(SYS_getsid, 10) == -1 && errno == 52);
}

enum way { KILL_PROCESS, KILL_THREAD, TRAP, UNKNOWN, BY_ZERO, STRICT, STRICT_EXIT };

static void end_in(enum way way)
{
    static const unsigned actions[] = { SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
                                        SECCOMP_RET_TRAP, 0x12340000 };

    signal(SIGSYS, SIG_DFL);
    if (way == STRICT || way == STRICT_EXIT) {
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
        if (way == STRICT_EXIT)
            syscall(SYS_exit, 3);
    } else if (way == BY_ZERO) {
        SET(LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 1, 0), RETURN(SECCOMP_RET_ALLOW),
            BPF_STMT(BPF_LDX | BPF_IMM, 0), BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
            BPF_STMT(BPF_RET | BPF_A, 0));
    } else {
        SET(LOAD(nr), ANSWER(SYS_getpid, actions[way]), RETURN(SECCOMP_RET_ALLOW));
    }
    syscall(SYS_getpid);
    _exit(1);
}

static int status_of(enum way way)
{
    int status = 0;
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0)
        end_in(way);
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static void check_ends(void)
{
    for (enum way way = KILL_PROCESS; way <= BY_ZERO; way++) {
        int status = status_of(way);

        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    }
    CHECK(WTERMSIG(status_of(STRICT)) == SIGKILL);
    CHECK(status_of(STRICT_EXIT) == 3 << 8);
}

/* Under a filter that `id` meets: it is the new program's too. */
static void check_exec(unsigned action)
{
    char *argv[] = { "/bin/sh", "-c", "cd / 2>/dev/null || exit 9", NULL };
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        SET(LOAD(nr), ANSWER(SYS_chdir, SECCOMP_RET_ERRNO | 1), ANSWER(SYS_memfd_create, action),
            RETURN(SECCOMP_RET_ALLOW));
        execv("/bin/nothing-of-that-name", argv);
        CHECK(errno == ENOENT);
        execv(argv[0], argv);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 9 << 8);
}

int main(void)
{
    struct rlimit none = { 0, 0 };

    CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    check_validity();
    check_ends();
    check_exec(SECCOMP_RET_ALLOW);
    check_exec(SECCOMP_RET_KILL_PROCESS);
    check_actions();
    check_several();
    puts("restricted");
    return 0;
}
