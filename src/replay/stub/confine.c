// SPDX-License-Identifier: MIT
/* confine.c - a replay process can do nothing but compute
 *
 * A trace may come from anybody, and replaying it means running the code in it, next to an engine
 * that it can overwrite.  So before the first window the process gives up its descriptors and every
 * system call but those the stub itself makes: memory of its own, waiting for the driver, the end.
 * Anything else kills it, which the driver reports. */
#include "replay/stub/stub.h"

#include "base/linux_abi.h"
#include "base/sys.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <stddef.h>

/* From the instruction after it to `kill` or `allow` at the end: filled in by jump_to_end(). */
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 0)

static struct sock_filter program[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(__NR_futex),
    ALLOW(__NR_restart_syscall), /* waiting goes on after SIGSTOP and SIGCONT */
    ALLOW(__NR_mmap),
    ALLOW(__NR_munmap),
    ALLOW(__NR_mprotect),
    ALLOW(__NR_mremap),
    ALLOW(__NR_madvise),
    ALLOW(__NR_rt_sigreturn),
    ALLOW(__NR_getppid),
    ALLOW(__NR_arch_prctl),
    ALLOW(__NR_write),
    ALLOW(__NR_exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
#define COUNT       (sizeof(program) / sizeof(program[0]))
#define FIRST_ALLOW 4

static void jump_to_end(void)
{
    for (size_t i = FIRST_ALLOW; i < COUNT - 2; i++)
        program[i].jt = (uint8_t)(COUNT - 2 - i);
}

void tbd_stub_confine(void)
{
    struct sock_fprog filter = { .len = COUNT, .filter = program };

    /* write(2) goes to what is left: the standard error output, for messages. */
    tbd_sys_close(0);
    tbd_sys_close(1);
    tbd_sys_close(TBD_PLAN_FD);
    tbd_sys_close(TBD_PLAN_STREAM_FD);
    /* What tbdq itself was started with. */
    tbd_sys3(__NR_close_range, TBD_PLAN_STREAM_FD + 1, UINT32_MAX, 0);
    jump_to_end();
    if (!tbd_sys6(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0))
        tbd_sys6(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, tbd_sys_pointer(&filter), 0, 0,
                 0);
}
