// SPDX-License-Identifier: MIT
/* thread_masks.h - may the program's threads meet traps?  The kernel would end it at one that blocks SIGTRAP
 *
 * A thread that is in the trap's own handler has it blocked, too.  It is known by its mask, which lacks one signal that
 * nobody handles (trap.h).
 *
 * Contexts: keeper. */
#ifndef TBD_HOOKS_THREAD_MASKS_H
#define TBD_HOOKS_THREAD_MASKS_H

#include "format/probe/probe.h"

/* Looks at all threads, which have to run meanwhile where that is needed to know it (some seconds if many want to).
 * detail: the thread. */
struct tbd_probe_reply tbd_thread_masks_refuse(uint32_t program);
/* The same without waiting for them, so that it may miss one, and again and again for a second while there is one: a
 * thread that blocks all signals does so for a short time in most programs. */
struct tbd_probe_reply tbd_thread_masks_refuse_still(uint32_t program);

/* There are no traps any more: returns when those who have met one before are in its handler, or after some seconds. */
void tbd_thread_masks_await_handlers(uint32_t program);

#endif
