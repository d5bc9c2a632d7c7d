// SPDX-License-Identifier: MIT
/* child_maps.h - mappings that a child of vfork makes, changes and takes away: it shares the parent's memory, and makes its
 * system calls natively
 *
 * The kernel's lists before and after are compared.  Each difference is a TBD_MSG_MAPPED at the call's message, whose writes
 * have the new contents.  Context: APP. */
#ifndef TBD_HOOKS_CHILD_MAPS_H
#define TBD_HOOKS_CHILD_MAPS_H

#include "hooks/calls/call_run.h"

/* Before the child is made. */
void tbd_child_maps_note(void);
/* When it is gone, before its writes are compared. */
void tbd_child_maps_compare(struct tbd_call *call);
/* After the call's message. */
void tbd_child_maps_finish(struct tbd_call *call);

#endif
