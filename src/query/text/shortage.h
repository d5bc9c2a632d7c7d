// SPDX-License-Identifier: MIT
/* shortage.h - memory ran out, and somebody may have gone on without
 *
 * Who finds that an allocation failed, and cannot say so to its caller, notes it.  This command, and those after it, which
 * use what was read then, fail at their end.  One for the process.  Contexts: any thread. */
#ifndef TBD_QUERY_SHORTAGE_H
#define TBD_QUERY_SHORTAGE_H

#include <stdbool.h>

void tbd_shortage_note(void);
bool tbd_shortage_seen(void);

#endif
