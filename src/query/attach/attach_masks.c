// SPDX-License-Identifier: MIT
/* attach_masks.c - see attach_masks.h */
#include "query/attach/attach_masks.h"

#include "query/attach/attach_check.h"
#include "query/attach/remote_thread.h"

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TRAP_BIT (1ull << (SIGTRAP - 1))
#define PAUSE_NS 10000000L

static bool blocks_trap(pid_t pid, pid_t tid)
{
    struct tbd_attach_thread thread;

    tbd_attach_read_thread(pid, tid, &thread);
    return thread.blocked & TRAP_BIT;
}

static void find_threads(pid_t pid, struct tbd_unblocked *out)
{
    struct dirent *entry;
    char path[64];
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    while (tasks && out->count < TBD_UNBLOCKED_MOST && (entry = readdir(tasks)) != NULL) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (tid > 0 && blocks_trap(pid, tid))
            out->tids[out->count++] = tid;
    }
    if (tasks)
        closedir(tasks);
}

/* False: it has ended, it does not block it any more, or ptrace is not allowed. */
static bool unblock(pid_t pid, pid_t tid, uint64_t *out_mask)
{
    struct tbd_query_error ignored = { 0 };
    struct tbd_remote remote;

    if (!tbd_remote_borrow(&remote, pid, tid, &ignored))
        return false;
    *out_mask = remote.mask;
    remote.mask &= ~TRAP_BIT;
    tbd_remote_let_go(&remote);
    return *out_mask & TRAP_BIT;
}

static void block_again(pid_t pid, pid_t tid, uint64_t mask)
{
    struct tbd_query_error ignored = { 0 };
    struct tbd_remote remote;

    if (!tbd_remote_borrow(&remote, pid, tid, &ignored))
        return;
    if (remote.mask == (mask & ~TRAP_BIT))
        remote.mask = mask;
    tbd_remote_let_go(&remote);
}

void tbd_attach_unblock(pid_t pid, struct tbd_unblocked *out)
{
    const struct timespec moment = { 0, PAUSE_NS };
    struct tbd_unblocked found = { .pid = pid };

    *out = (struct tbd_unblocked){ .pid = pid };
    find_threads(pid, &found);
    if (found.count)
        nanosleep(&moment, NULL);
    for (unsigned i = 0; i < found.count; i++)
        if (blocks_trap(pid, found.tids[i]) && unblock(pid, found.tids[i], &out->masks[out->count]))
            out->tids[out->count++] = found.tids[i];
}

void tbd_attach_block_again(const struct tbd_unblocked *threads)
{
    for (unsigned i = 0; i < threads->count; i++)
        block_again(threads->pid, threads->tids[i], threads->masks[i]);
}
