// SPDX-License-Identifier: MIT
/* snapshot.c - see snapshot.h
 *
 * The program cannot see the frozen process as a child: it has no exit signal, shares the
 * descriptor table (so that it keeps no file open), takes no signals, and dies with its parent.  It
 * ends before the program continues. */
#include "hooks/memory/snapshot.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/recording.h"

enum {
    CLONE_FS_FILES = CLONE_FS | CLONE_FILES,
};

_Noreturn static void freeze(void)
{
    uint64_t all = ~0ull;

    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&all), 0, 8);
    tbd_sys3(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
    for (;;)
        tbd_sys3(__NR_pause, 0, 0, 0);
}

bool tbd_snapshot_read(const struct tbd_snapshot *snapshot, uint64_t address, void *out,
                       size_t bytes)
{
    uint64_t to[2] = { tbd_sys_pointer(out), bytes };
    uint64_t from[2] = { address, bytes };

    return tbd_sys6(__NR_process_vm_readv, (uint64_t)snapshot->pid, tbd_sys_pointer(to), 1,
                    tbd_sys_pointer(from), 1, 0) == (long)bytes;
}

bool tbd_snapshot_take(struct tbd_snapshot *snapshot)
{
    uint64_t all = ~0ull;
    uint64_t mask = 0;
    long pid;
    uint32_t probe;

    if (tbd_userfault_follows_forks()) /* the fork would wait until somebody has read the event */
        return false;
    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&all), tbd_sys_pointer(&mask), 8);
    pid = tbd_sys6(__NR_clone, CLONE_FS_FILES | CLONE_UNTRACED, 0, 0, 0, 0, 0);
    if (pid == 0)
        freeze();
    /* signals sent meanwhile are pending in the kernel; if the engine has queued one, the old mask
     * blocks them */
    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&mask), 0, 8);
    snapshot->pid = tbd_sys_failed(pid) ? 0 : (int32_t)pid;
    if (!snapshot->pid)
        return false;
    if (tbd_snapshot_read(snapshot, tbd_sys_pointer(&tbd_recording.pid), &probe, sizeof(probe)) &&
        probe == tbd_recording.pid)
        return true;
    tbd_snapshot_drop(snapshot);
    return false;
}

void tbd_snapshot_drop(struct tbd_snapshot *snapshot)
{
    if (!snapshot->pid)
        return;
    tbd_sys3(__NR_kill, (uint64_t)snapshot->pid, SIGKILL, 0);
    tbd_sys4(__NR_wait4, (uint64_t)snapshot->pid, 0, __WALL, 0);
    snapshot->pid = 0;
}
