// SPDX-License-Identifier: MIT
/* scan_jumps.h - functions that are entered by a jump (for scan.c)
 *
 * A tail call jumps to a function: its first block is entered, and no call's op announces it.  Such an entry is one only
 * if the jump comes from another function; its operands are in registers that a replay finds (search_operands.c).
 * Jumps that keep operands, as those of import stubs do, wait like calls in scan.c. */
#ifndef TBD_QUERY_SCAN_JUMPS_H
#define TBD_QUERY_SCAN_JUMPS_H

#include "query/search/scan.h"

/* Does the window begin with several threads?  Then it has the entries to which jumps of the window before lead. */
bool tbd_scan_starts_threads(const struct tbd_window *window);
/* May it lead to a function, other than by a call? */
bool tbd_scan_leads_on(const struct tbd_block *block);
/* Is `from` in the function that begins at `start`, or in a part of it that was moved away? */
bool tbd_scan_is_inside(struct tbd_symbols *symbols, uint32_t window, uint64_t from,
                        uint64_t start);
/* May a walk over the window meet an entry without operands?  `blocks` as in struct tbd_scan, below `count`. */
bool tbd_scan_may_meet(const struct tbd_window *window, const uint8_t *blocks, uint32_t count);
/* With makes_operands, at a block to which the waiting call leads. */
void tbd_scan_take_handed(struct tbd_scan *scan);
/* At a block, which no call leads to: delivers the entry of a function. */
void tbd_scan_meet_jump(struct tbd_scan *scan);
/* After that: the block may lead on. */
void tbd_scan_pass_block(struct tbd_scan *scan);
/* A signal comes before the next block; the thread goes on at `back`. */
void tbd_scan_hold_jump(struct tbd_scan *scan, uint64_t back);
/* At the end of a window with one thread: the entry at the window's end registers. */
void tbd_scan_meet_end(struct tbd_scan *scan);

#endif
