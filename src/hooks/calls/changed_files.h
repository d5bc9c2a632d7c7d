// SPDX-License-Identifier: MIT
/* changed_files.h - private mappings of files that change
 *
 * Pages of such a mapping that the program has not written yet show what the file contains now
 * (mmap(2) leaves that unspecified; on Linux it is so): who writes, cuts or extends the file changes
 * memory. So the mapping is treated as memory that others may write (hooks/memory/shared.h)
 *   - from the first call of the program on that changes the file, opens it to write to it, or maps it
 *     shared and writable;
 *   - from the beginning, if the file is likely to change: it was written since the recording began, its
 *     descriptor can write to it, or it did one of the above before.
 * That is slow for memory that is used much, so an older file that only another process changes is not
 * noticed: then a window may not replay.
 *
 * Programs and libraries, whose code is mapped beside, are left out.  Context: APP, FORK_CHILD. */
#ifndef TBD_HOOKS_CHANGED_FILES_H
#define TBD_HOOKS_CHANGED_FILES_H

#include "hooks/calls/call_run.h"

/* Before a call of the table is made that may change a file. */
void tbd_changed_files_note(const struct tbd_call *call);

/* Before the file of a descriptor is mapped privately, without PROT_EXEC: is it likely to change? */
bool tbd_changed_files_is_likely(uint64_t descriptor);
/* Before the file of a descriptor is mapped shared and writable. */
void tbd_changed_files_map_writable(uint64_t descriptor);
/* In a forked child, whose mappings were read anew. */
void tbd_changed_files_child(void);

#endif
