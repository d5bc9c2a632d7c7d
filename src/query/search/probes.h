// SPDX-License-Identifier: MIT
/* probes.h - finds the contents of memory at many moments of one window, in one forward walk
 *
 * A trace keeps old values: the value of a byte now is the old value of the next store to it, or
 * without such a store the byte of the page at the window's end. A probe asks "what does [address,
 * address+size) hold here?"; the walker reports every store in order, and each store answers the
 * probes that wait for its bytes. */
#ifndef TBD_QUERY_PROBES_H
#define TBD_QUERY_PROBES_H

#include "format/trace/trace.h"

struct tbd_probes;

TBD_MUST_CHECK enum tbd_status
tbd_probes_new(struct tbd_trace *trace, const struct tbd_window *window, struct tbd_probes **out);
void tbd_probes_free(struct tbd_probes *probes); /* NULL is fine */

/* Asks for `size` (1..8) bytes before the walker's current instruction, which is `at`; with
 * `after`, for the bytes after its stores. Returns the number of the answer; UINT32_MAX if there is
 * no memory. */
uint32_t tbd_probes_add(struct tbd_probes *probes, struct tbd_position at, uint64_t address,
                        uint32_t size, bool after);
/* Reports a store of the walker's current instruction, whose block was entered at `time` (`old` NULL: the old bytes are
 * not known). */
void tbd_probes_store(struct tbd_probes *probes, uint64_t time, uint64_t address, uint64_t size,
                      const uint8_t *old);
/* The probes that wait now wait for bytes in [*out_start, *out_end) only; empty if no probe
 * waits. */
void tbd_probes_waiting(const struct tbd_probes *probes, uint64_t *out_start, uint64_t *out_end);
/* The walker goes on to another instruction. */
void tbd_probes_step(struct tbd_probes *probes);
/* The walk is over: the pages at the window's end answer the open probes. */
void tbd_probes_finish(struct tbd_probes *probes);
/* False if the memory is not mapped or not known. */
bool tbd_probes_answer(const struct tbd_probes *probes, uint32_t number, uint64_t *out);

#endif
