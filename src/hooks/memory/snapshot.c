// SPDX-License-Identifier: MIT
/* snapshot.c - see snapshot.h
 *
 * The frozen process is no child that the program could see: it has no exit signal, shares the
 * descriptor table (so that nothing is kept open by it alone), takes no signals, and dies with its
 * parent.  It is gone again before the program goes on. */
#include "hooks/memory/snapshot.h"

#include "base/sys.h"
#include "hooks/memory/userfault.h"
#include "hooks/boot/runtime.h"

enum {
    SYS_PAUSE = 34,
    SYS_CLONE = 56,
    SYS_WAIT4 = 61,
    SYS_KILL = 62,
    SYS_PRCTL = 157,
    SYS_RT_SIGPROCMASK = 14,
    SYS_PROCESS_VM_READV = 310,
    PR_SET_PDEATHSIG_ = 1,
    SIGKILL_ = 9,
    SIG_SETMASK_ = 2,
    CLONE_FS_FILES = 0x600,
    CLONE_UNTRACED_ = 0x800000,
    WALL = 0x40000000,
};

_Noreturn static void freeze(void)
{
    uint64_t all = ~0ull;

    tbd_sys4(SYS_RT_SIGPROCMASK, SIG_SETMASK_, tbd_sys_pointer(&all), 0, 8);
    tbd_sys3(SYS_PRCTL, PR_SET_PDEATHSIG_, SIGKILL_, 0);
    for (;;)
        tbd_sys3(SYS_PAUSE, 0, 0, 0);
}

bool tbd_snapshot_read(const struct tbd_snapshot *snapshot, uint64_t address, void *out,
                       size_t bytes)
{
    uint64_t to[2] = { tbd_sys_pointer(out), bytes };
    uint64_t from[2] = { address, bytes };

    return tbd_sys6(SYS_PROCESS_VM_READV, (uint64_t)snapshot->pid, tbd_sys_pointer(to), 1,
                    tbd_sys_pointer(from), 1, 0) == (long)bytes;
}

bool tbd_snapshot_take(struct tbd_snapshot *snapshot)
{
    uint64_t mask;
    long pid;
    uint32_t probe;

    if (tbd_lazy_follows_forks()) /* somebody would be told of it, and waited for */
        return false;
    mask = tbd_signals_block_all();
    pid = tbd_sys6(SYS_CLONE, CLONE_FS_FILES | CLONE_UNTRACED_, 0, 0, 0, 0, 0);
    if (pid == 0)
        freeze();
    /* What came while everything was blocked waits in the kernel; a queued signal keeps it so. */
    if (!__atomic_load_n(&tbd_runtime.signals->pending, __ATOMIC_ACQUIRE))
        tbd_signals_set_kernel_mask(mask);
    snapshot->pid = tbd_sys_failed(pid) ? 0 : (int32_t)pid;
    if (!snapshot->pid)
        return false;
    if (tbd_snapshot_read(snapshot, tbd_sys_pointer(&tbd_runtime.pid), &probe, sizeof(probe)) &&
        probe == tbd_runtime.pid)
        return true;
    tbd_snapshot_drop(snapshot);
    return false;
}

void tbd_snapshot_drop(struct tbd_snapshot *snapshot)
{
    if (!snapshot->pid)
        return;
    tbd_sys3(SYS_KILL, (uint64_t)snapshot->pid, SIGKILL_, 0);
    tbd_sys4(SYS_WAIT4, (uint64_t)snapshot->pid, 0, WALL, 0);
    snapshot->pid = 0;
}
