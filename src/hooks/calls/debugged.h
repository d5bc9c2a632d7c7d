// SPDX-License-Identifier: MIT
/* debugged.h - programs that another recorded program debugs (ptrace)
 *
 * The registers and the code of a recorded program are those of translated code: a debugger sees
 * other values than natively.  If the debugger itself is recorded, its results must not change, so
 * the program that it debugs runs natively.  (Whoever debugs a recorded program from outside wants
 * to see the translated code.) */
#ifndef TBD_HOOKS_DEBUGGED_H
#define TBD_HOOKS_DEBUGGED_H

#include <stdbool.h>
#include <stdint.h>

/* Context: BOOT. */
bool tbd_debugged_by_recorded(void);
/* APP: the program is about to debug this thread of another process.  If it is recorded it is asked
 * to go on natively, and has done so when the function returns (or does not, for two seconds). */
void tbd_debugged_release(uint32_t tid);

#endif
