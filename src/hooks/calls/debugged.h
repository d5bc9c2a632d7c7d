// SPDX-License-Identifier: MIT
/* debugged.h - programs that another recorded program watches (ptrace)
 *
 * Registers and code of a recorded program are those of translated code: to a debugger it shows
 * things that the debugger does not show natively.  When the debugger is recorded, its results are
 * the ones that must not change, so what it watches runs natively.  (Whoever debugs a recorded
 * program from outside wants to see just this.) */
#ifndef TBD_HOOKS_DEBUGGED_H
#define TBD_HOOKS_DEBUGGED_H

#include <stdbool.h>

/* Context: BOOT. */
bool tbd_debugged_by_recorded(void);

#endif
