// SPDX-License-Identifier: MIT
/* own_memory.h - a program that writes its own memory through the file /proc/self/mem
 *
 * Debuggers try in this way whether the file can be written.  The table knows such calls as ones
 * that write a file.  Context: APP. */
#ifndef TBD_HOOKS_OWN_MEMORY_H
#define TBD_HOOKS_OWN_MEMORY_H

#include "hooks/calls/call_run.h"

/* Performs a write to that file, and knows its effects; lets the program go when it writes code.
 * False: it is another call. */
bool tbd_own_memory_write(struct tbd_call *call);
/* After a call by the table: was the file opened? */
void tbd_own_memory_note(const struct tbd_call *call);

#endif
