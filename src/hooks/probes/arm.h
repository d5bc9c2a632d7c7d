// SPDX-License-Identifier: MIT
/* arm.h - mode=armed: the program runs natively, until its user wants to know something
 *
 * At start a process is left beside the program, its keeper (keeper.h), and nothing else: no handler, no
 * translated code.  Context: BOOT. */
#ifndef TBD_HOOKS_ARM_H
#define TBD_HOOKS_ARM_H

#include <stdbool.h>

/* `waits`: the program goes on when its first session has started, or ended.  False: there is no keeper,
 * and a line on stderr says why. */
bool tbd_arm(bool waits, char **envp);

#endif
