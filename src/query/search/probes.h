// SPDX-License-Identifier: MIT
/* probes.h - what memory held at many places of one window, found in a single forward walk
 *
 * A trace keeps old values: what a byte holds now is the old value of the next store to it, else
 * what the page holds when the window ends.  A probe is a question "what is at [address,
 * address+size) here?"; the walker reports every store in order, and each answers the probes that
 * wait for its bytes. */
#ifndef TBD_QUERY_PROBES_H
#define TBD_QUERY_PROBES_H

#include "format/trace/trace.h"

struct tbd_probes;

TBD_MUST_CHECK enum tbd_status
tbd_probes_new(struct tbd_trace *trace, const struct tbd_window *window, struct tbd_probes **out);
void tbd_probes_free(struct tbd_probes *probes); /* NULL is fine */

/* Asks for `size` (1..8) bytes before the instruction the walker is at, which is `at`; `after`:
 * after its stores.  The answer's number; UINT32_MAX when out of memory. */
uint32_t tbd_probes_add(struct tbd_probes *probes, struct tbd_position at, uint64_t address,
                        uint32_t size, bool after);
/* A store (`old` NULL: old bytes are not known) of the instruction the walker is at. */
void tbd_probes_store(struct tbd_probes *probes, uint64_t address, uint64_t size,
                      const uint8_t *old);
/* Stores elsewhere answer nothing that waits now: [*out_start, *out_end), empty if
 * nothing waits. */
void tbd_probes_waiting(const struct tbd_probes *probes, uint64_t *out_start, uint64_t *out_end);
/* The walker goes on to another instruction. */
void tbd_probes_step(struct tbd_probes *probes);
/* The walk is over: what is still open is answered from the pages at the window's end. */
void tbd_probes_finish(struct tbd_probes *probes);
/* False if the memory is not mapped or not known. */
bool tbd_probes_answer(const struct tbd_probes *probes, uint32_t number, uint64_t *out);

#endif
