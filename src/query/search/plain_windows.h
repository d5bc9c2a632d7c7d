// SPDX-License-Identifier: MIT
/* plain_windows.h - windows whose events follow from which block was entered after which
 *
 * In such a window blocks run to their end, in one thread, and the block before leads to the next one: no signals, no faults, no turns.  What
 * scan.c finds by following calls, jumps and messages is then found by looking at two blocks at a time. */
#ifndef TBD_QUERY_PLAIN_WINDOWS_H
#define TBD_QUERY_PLAIN_WINDOWS_H

#include "query/search/search_private.h"

/* What a block may lead to, and what it may be entered by. */
#define TBD_BY_CALL 1u
#define TBD_BY_STUB 2u /* a jump with operands, as an import stub's, waits like a call */
#define TBD_BY_JUMP 4u

/* Is it one?  Its log is there. */
bool tbd_is_plain_window(const struct tbd_window *window);
/* Is the question about all events of such a window, and of one event at a time: no frames, no returns beside entries? */
bool tbd_is_plain_question(const struct tbd_search_run *run);

/* By id, each of `count`: what the block leads to, and what it must be entered by to be wanted. */
struct tbd_leading {
    uint8_t *leads, *wants; /* owned */
};
/* False without memory; then, too, it is to be freed. */
TBD_MUST_CHECK bool tbd_leading_make(const struct tbd_search_run *run, uint32_t count,
                                     struct tbd_leading *out);
void tbd_leading_free(struct tbd_leading *leading);

/* Does the last block, which leads to what `lead` says, enter a function at the window's end registers? */
bool tbd_enters_at_end(const struct tbd_search_run *run, const struct tbd_window *window,
                       const struct tbd_block *last, uint8_t lead);

#endif
