// SPDX-License-Identifier: MIT
/* patience.h - waiting for the organizer, which may be stopped, or hang
 *
 * The program waits for it when all chunks are full, and at the end.  It is not left behind without
 * need, as the rest of the trace would be lost; but who waits with it is told why.  Any context. */
#ifndef TBD_HOOKS_PATIENCE_H
#define TBD_HOOKS_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct tbd_patience {
    uint32_t waits;  /* in vain, one after the other; 0 as soon as it is seen to work */
    uint64_t worked; /* processor time that it had used when it was last looked at */
    bool has_said;
};

/* Waits a moment for `word` to change from `value`.  After some seconds in which nothing changes
 * and the organizer (the process with this robust futex word; 0: a replay's driver) does nothing,
 * says so, once. */
void tbd_patience_wait(struct tbd_patience *patience, uint32_t *word, uint32_t value,
                       uint32_t organizer);

#endif
