// SPDX-License-Identifier: MIT
/* growth.h - mappings that the kernel extends downward when the program accesses memory below them: the
 * main stack, and mappings with MAP_GROWSDOWN
 *
 * The table of regions has all that may be accessed, so the start of such a region is not where the kernel's
 * mapping starts now, but the lowest address that it can grow to: by the limit of stacks, and by the
 * mapping below.  Both can change while the program runs.  Then the trace gets TBD_MSG_MAPPED, because
 * no argument of a call tells the new start. */
#ifndef TBD_HOOKS_GROWTH_H
#define TBD_HOOKS_GROWTH_H

#include "patcher/thread.h"

/* The table was filled from the kernel's list, at boot or in a forked child: marks what grows, and sets its
 * start.  Contexts: BOOT, FORK_CHILD. */
void tbd_growth_begin(void);
/* After a call that may have changed mappings, with its message sent; costs nothing unless it changed them
 * close to such a mapping.  Context: APP. */
void tbd_growth_update(struct tbd_thread *thread);
/* The limit of stacks may have changed, or there is a new such mapping. */
void tbd_growth_changed(void);

#endif
