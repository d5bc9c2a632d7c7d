// SPDX-License-Identifier: MIT
/* changed_files.h - a program that changes a file of which it has private mappings
 *
 * Pages of such a mapping that the program has not written yet show what the file contains now
 * (mmap(2) leaves that unspecified; on Linux it is so): a call that writes, cuts or extends the file
 * changes memory, though the table says that it only changes a file.  From the first such call on, the
 * mapping is treated as memory that others may write (hooks/memory/shared.h).
 *
 * Programs and libraries, whose code is mapped beside, are left out.  So are changes by other processes,
 * and by stores to a shared mapping of the same file.  Context: APP. */
#ifndef TBD_HOOKS_CHANGED_FILES_H
#define TBD_HOOKS_CHANGED_FILES_H

#include "hooks/calls/call_run.h"

/* Before a call of the table is made that may change a file. */
void tbd_changed_files_note(const struct tbd_call *call);

#endif
