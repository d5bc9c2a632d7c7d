// SPDX-License-Identifier: MIT
/* past_values.h - what was recorded beside a thread's ring, for the simulation (format/stream/crash_values.h) */
#ifndef TBD_QUERY_PAST_VALUES_H
#define TBD_QUERY_PAST_VALUES_H

#include "query/past/past.h"

/* The last ring step, not after `step`, before which registers of the thread, number `thread` of the rings, were recorded; UINT64_MAX:
 * there is none. */
uint64_t tbd_past_registers_before(const struct tbd_rings *ring, uint32_t thread, uint64_t step);

/* The simulation has come to ring step `step`, and its instructions will be added next: registers and stack there. */
TBD_MUST_CHECK enum tbd_status tbd_past_know_registers(struct tbd_past *past, uint64_t step);
/* All instructions of ring step `step` were added, and ran: what the system call at its end did. */
TBD_MUST_CHECK enum tbd_status tbd_past_know_call(struct tbd_past *past, uint64_t step);

#endif
