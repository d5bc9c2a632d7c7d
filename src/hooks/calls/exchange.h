// SPDX-License-Identifier: MIT
/* exchange.h - calls whose results the kernel writes to scratch memory, and not where the program said
 *
 * For calls that wait: what they wrote appears when the thread has its turn again (waiting.c).  And for
 * calls with large buffers: old bytes are taken of what was written, not of all that might have been.
 *
 * Context: APP. */
#ifndef TBD_HOOKS_EXCHANGE_H
#define TBD_HOOKS_EXCHANGE_H

#include "hooks/calls/call_run.h"
#include "hooks/threads/threads.h"

struct tbd_exchange {
    struct tbd_saved_context *saved;
    struct tbd_sys_call sys;   /* the call as the engine makes it */
    struct tbd_sys_range *may; /* places as ranges, for the table */
    struct tbd_sys_range *did;
    struct tbd_written_place *places;
    size_t count;
    uint8_t *at; /* next free scratch byte */
    uint8_t *end;
    bool is_uncertain; /* EXCHANGE-1 */
};

/* With the turn lock: makes the call to be made, in scratch memory of the thread that holds the lock.
 * False: there is no memory for it, or it is a call that has to be made as it is. */
bool tbd_exchange_prepare(const struct tbd_call *call, struct tbd_exchange *exchange);
/* Does the kernel write nothing in place, and will its result say what it wrote? */
bool tbd_exchange_is_whole(const struct tbd_exchange *exchange);
/* Fills the pages that the results will be copied to (userfault.h); without the turn lock. */
void tbd_exchange_fill(const struct tbd_exchange *exchange, const struct tbd_call *call);
/* With the turn lock again: copies back, and notes the call's effects. */
void tbd_exchange_complete(const struct tbd_exchange *exchange, struct tbd_call *call);
/* Copies without recording: the program was let go. */
void tbd_exchange_complete_natively(const struct tbd_exchange *exchange, struct tbd_call *call);

#endif
