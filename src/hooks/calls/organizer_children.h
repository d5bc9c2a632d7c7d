// SPDX-License-Identifier: MIT
/* organizer_children.h - organizers among the program's children
 *
 * An organizer is nobody's child that could be seen: it becomes an orphan at once.  But orphans
 * come to process 1 of their namespace, or to an ancestor that has asked for them
 * (PR_SET_CHILD_SUBREAPER).  Where that is the program, its own organizer and those of its
 * descendants are hidden: they are reaped here before the program could see them, their SIGCHLD is
 * kept from it, and who waits with no other child there is told so.  Context: APP; _sigsafe SIG. */
#ifndef TBD_HOOKS_ORGANIZER_CHILDREN_H
#define TBD_HOOKS_ORGANIZER_CHILDREN_H

#include "hooks/calls/call_families.h"

/* `path`: of the organizer, borrowed; "": the one beside libtbd.so.  Context: BOOT. */
void tbd_organizer_children_init(const char *path);
/* Do orphans come to this process? */
bool tbd_organizer_children_come(void);
/* SIGCHLD with this siginfo: is there nothing behind it but an organizer's end?  If there is,
 * `info` becomes the other child's. */
bool tbd_organizer_children_sent_sigsafe(uint8_t *info);

#endif
