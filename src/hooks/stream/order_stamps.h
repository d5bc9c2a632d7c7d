// SPDX-License-Identifier: MIT
/* order_stamps.h - times by which the entries of two rings can be ordered (format/stream/crash.h)
 *
 * A thread's entries before a stamp that it took `before` something have happened, for all processors, before those that another thread
 * enters after a larger stamp that it took `after`.  Nothing is known of two stamps that are equal.
 *
 * Contexts: any thread, without the lock. */
#ifndef TBD_HOOKS_ORDER_STAMPS_H
#define TBD_HOOKS_ORDER_STAMPS_H

#include "format/stream/crash.h"

/* Stamps of this process are noted in `crash`; NULL: there are none any more. */
void tbd_stamps_start(struct tbd_crash *crash);

/* 0: the time is not known, as where the program has forbidden that its processor's counter be read. */
uint64_t tbd_stamp_before(void);
uint64_t tbd_stamp_after(void);
/* Both. */
uint64_t tbd_stamp_here(void);

#endif
