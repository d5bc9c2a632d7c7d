// SPDX-License-Identifier: MIT
/* organizer_children.h - organizers among the program's children
 *
 * An organizer becomes an orphan at once, so that it is not visible as a child of the program.  But
 * orphans become children of process 1 of their namespace, or of an ancestor that has asked for
 * them (PR_SET_CHILD_SUBREAPER).  If the program is that process, its own organizer and those of
 * its descendants are hidden: they are reaped here before the program can see them, their SIGCHLD
 * is kept from it, and a wait without any other child gets ECHILD.  Context: APP; _sigsafe SIG. */
#ifndef TBD_HOOKS_ORGANIZER_CHILDREN_H
#define TBD_HOOKS_ORGANIZER_CHILDREN_H

#include "hooks/calls/call_families.h"

/* `path`: the organizer's, borrowed; "": the organizer in the folder of libtbd.so.  Context:
 * BOOT. */
void tbd_organizer_children_init(const char *path);
/* Do orphans become children of this process? */
bool tbd_organizer_children_come(void);
/* A SIGCHLD with this siginfo has come.  True: it reports only the end of an organizer.  False:
 * `info` now names another child. */
bool tbd_organizer_children_sent_sigsafe(uint8_t *info);

#endif
