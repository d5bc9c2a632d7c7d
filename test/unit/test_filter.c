// links: tbd_base
// sources: ../../src/replay/stub/filter.c
// SPDX-License-Identifier: MIT
/* What a replay process may call: every number there is, and the arguments of those that are
 * allowed, each tried in a child with the filter on. */
#include "base/layout.h"
#include "replay/stub/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <asm/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#define NUMBERS 600
#define X32     0x40000000l
/* The kernel lets these through whatever a filter says; they fail outside of its own trampolines. */
#define URETPROBE 335
#define UPROBE    336

static bool confine(void)
{
    static struct sock_filter code[TBD_FILTER_CAPACITY];
    struct sock_fprog program = { .len = (unsigned short)tbd_filter_make(code), .filter = code };

    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

struct call {
    long number;
    uint64_t args[6];
};

enum fate { KILLED, MADE, ODD };

/* The call may do what it likes: the child ends next. */
static enum fate fate_of(const struct call *call)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        if (!confine())
            _exit(99);
        syscall(call->number, call->args[0], call->args[1], call->args[2], call->args[3],
                call->args[4], call->args[5]);
        syscall(SYS_exit_group, 7);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        return KILLED;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 99)
        skip();
    return WIFEXITED(status) ? MADE : ODD;
}

#define MAPPED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE)
#define FREE   0x200000000000ull /* nothing is there */
#define RW     (PROT_READ | PROT_WRITE)

/* What the stub calls, as it does. */
static const struct call allowed[] = {
    { SYS_futex, { TBD_PLAN_BASE + 12, FUTEX_WAKE, 1 } },
    { SYS_futex, { TBD_STREAM_BASE + 128, FUTEX_WAKE, 1 } },
    { SYS_mmap, { FREE, 4096, RW | PROT_EXEC, MAPPED, UINT64_MAX } },
    { SYS_mmap, { FREE, 4096, PROT_NONE, MAPPED, UINT64_MAX } },
    { SYS_mprotect, { FREE, 4096, RW } },
    { SYS_mprotect, { FREE, 4096, PROT_NONE } },
    { SYS_madvise, { FREE, 4096, MADV_DONTNEED } },
    { SYS_madvise, { FREE, 4096, MADV_DONTDUMP } },
    { SYS_munmap, { FREE, 4096 } },
    { SYS_mremap, { FREE, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, FREE + 4096 } },
    { SYS_restart_syscall, { 0 } },
    { SYS_arch_prctl, { ARCH_SET_GS, 0 } },
    { SYS_exit_group, { 3 } },
};

/* Near to them. */
static const struct call refused[] = {
    { SYS_futex, { TBD_PLAN_BASE + 12, FUTEX_REQUEUE, 1 } },
    { SYS_futex, { TBD_PLAN_BASE + 12, FUTEX_LOCK_PI } },
    { SYS_futex, { TBD_PLAN_BASE + 12, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1 } },
    { SYS_futex, { TBD_PLAN_BASE + 12, 1ull << 32 | FUTEX_WAKE, 1 } },
    { SYS_futex, { TBD_STREAM_BASE - 4, FUTEX_WAKE, 1 } },
    { SYS_futex, { TBD_PRESENT_BASE + (4ull << 30), FUTEX_WAKE, 1 } },
    { SYS_futex, { 0x600000, FUTEX_WAKE, 1 } },
    { SYS_mmap, { FREE, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX } },
    { SYS_mmap, { FREE, 4096, RW, MAPPED | MAP_POPULATE, UINT64_MAX } },
    { SYS_mmap, { FREE, 4096, RW, MAPPED | MAP_HUGETLB, UINT64_MAX } },
    { SYS_mmap, { FREE, 4096, RW, MAP_SHARED | MAP_ANONYMOUS, UINT64_MAX } },
    { SYS_mmap, { FREE, 4096, RW, MAP_PRIVATE | MAP_FIXED_NOREPLACE, 3 } },
    { SYS_mmap, { FREE, 4096, RW | PROT_GROWSDOWN, MAPPED, UINT64_MAX } },
    { SYS_mmap, { FREE, 4096, RW, 1ull << 40 | MAPPED, UINT64_MAX } },
    { SYS_mprotect, { FREE, 4096, PROT_READ | PROT_EXEC } },
    { SYS_mprotect, { FREE, 4096, 1ull << 32 | RW } },
    { SYS_madvise, { FREE, 4096, MADV_REMOVE } },
    { SYS_madvise, { FREE, 4096, MADV_FREE } },
    { SYS_madvise, { FREE, 4096, MADV_HWPOISON } },
    { SYS_madvise, { FREE, 4096, 101 /* MADV_SOFT_OFFLINE */ } },
    { SYS_madvise, { FREE, 4096, MADV_WILLNEED } },
    { SYS_madvise, { FREE, 4096, MADV_POPULATE_WRITE } },
    { SYS_mremap, { FREE, 4096, 8192, MREMAP_MAYMOVE } },
    { SYS_mremap, { FREE, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, 0 } },
    { SYS_arch_prctl, { ARCH_SET_CPUID, 0 } },
    { SYS_arch_prctl, { 0x1022 /* ARCH_REQ_XCOMP_PERM */, 18 } },
    { SYS_write, { 2, FREE, 0 } },
    { SYS_exit, { 0 } },
};

static void calls_of_the_stub_are_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        if (fate_of(&allowed[i]) != MADE)
            fail_msg("row %zu: call %ld is not made", i, allowed[i].number);
}

static void arguments_near_to_them_are_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (fate_of(&refused[i]) != KILLED)
            fail_msg("row %zu: call %ld is made", i, refused[i].number);
}

static bool is_allowed(long number)
{
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        if (allowed[i].number == number)
            return true;
    return number == SYS_rt_sigreturn || number == URETPROBE || number == UPROBE;
}

static void all_others_kill(void **state)
{
    (void)state;
    for (long number = 0; number < NUMBERS; number++) {
        struct call call = { number, { 0 } }, x32 = { X32 | number, { 0 } };

        if (!is_allowed(number) && fate_of(&call) != KILLED)
            fail_msg("call %ld is made", number);
        if (number % 8 == 0 && fate_of(&x32) != KILLED)
            fail_msg("call %ld of x32 is made", number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_the_stub_are_made),
        cmocka_unit_test(arguments_near_to_them_are_not),
        cmocka_unit_test(all_others_kill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
