// SPDX-License-Identifier: MIT
/* own_memory.h - a program that writes its own memory through the file /proc/self/mem
 *
 * Debuggers test in this way whether the file can be written.  For the table such calls only write
 * a file. Context: APP. */
#ifndef TBD_HOOKS_OWN_MEMORY_H
#define TBD_HOOKS_OWN_MEMORY_H

#include "hooks/calls/call_run.h"

/* Performs a write to that file and records its effects; lets the program go if it writes code.
 * False: it is another call. */
bool tbd_own_memory_write(struct tbd_call *call);
/* After a call made by the table: notes if the call opened the file. */
void tbd_own_memory_note(const struct tbd_call *call);

#endif
