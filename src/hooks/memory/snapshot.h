// SPDX-License-Identifier: MIT
/* snapshot.h - all private memory as it was, without copying it: a frozen fork of the process
 *
 * For calls after which any page may have changed (a child that shares memory, calls that the table
 * does not describe).  The fork shares every page until somebody writes; the kernel's page map says
 * which pages are not shared any more, and the fork still has what they held.  Context: APP. */
#ifndef TBD_HOOKS_SNAPSHOT_H
#define TBD_HOOKS_SNAPSHOT_H

#include "hooks/memory/pagemap.h"

struct tbd_snapshot {
    int32_t pid; /* of the frozen process; 0 = none */
};

/* False when it cannot be made, or its memory cannot be read (ptrace restrictions):
 * copy instead. */
bool tbd_snapshot_take(struct tbd_snapshot *snapshot);
/* Ends the frozen process. */
void tbd_snapshot_drop(struct tbd_snapshot *snapshot);
/* Bytes as they were; false if nothing was there. */
bool tbd_snapshot_read(const struct tbd_snapshot *snapshot, uint64_t address, void *out,
                       size_t bytes);

#endif
