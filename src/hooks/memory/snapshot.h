// SPDX-License-Identifier: MIT
/* snapshot.h - keeps the contents of all private memory without copying it: a frozen fork of the
 * process
 *
 * For calls after which any page may have changed (a child that shares memory, calls that the table
 * does not describe).  The fork shares every page until somebody writes; the kernel's page map says
 * which pages are no longer shared, and the fork still has their old contents.  Context: APP. */
#ifndef TBD_HOOKS_SNAPSHOT_H
#define TBD_HOOKS_SNAPSHOT_H

#include "hooks/memory/pagemap.h"

struct tbd_snapshot {
    int32_t pid; /* of the frozen process; 0 = none */
};

/* False if it cannot be made, or its memory cannot be read (ptrace restrictions): the caller must
 * copy. */
bool tbd_snapshot_take(struct tbd_snapshot *snapshot);
/* Ends the frozen process. */
void tbd_snapshot_drop(struct tbd_snapshot *snapshot);
/* Reads bytes as they were; false if they were not mapped. */
bool tbd_snapshot_read(const struct tbd_snapshot *snapshot, uint64_t address, void *out,
                       size_t bytes);

#endif
