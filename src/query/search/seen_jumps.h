// SPDX-License-Identifier: MIT
/* seen_jumps.h - where a function, and those that return for it, were seen to jump by addresses that only registers
 * or memory knew
 *
 * One for a question with own_returns.  Its workers add what they see in their windows; a window that was searched before
 * the last place was seen has to be searched again. */
#ifndef TBD_QUERY_SEEN_JUMPS_H
#define TBD_QUERY_SEEN_JUMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_SEEN_MOST 128u

struct tbd_seen_jumps;

/* NULL without memory. */
struct tbd_seen_jumps *tbd_seen_jumps_new(uint32_t windows);
void tbd_seen_jumps_free(struct tbd_seen_jumps *jumps); /* NULL is fine */

/* Any thread may call these. */

/* The places so far, in the order in which they were seen; none is ever taken away.  `jumps` may be NULL: none. */
size_t tbd_seen_jumps_count(struct tbd_seen_jumps *jumps);
size_t tbd_seen_jumps_get(struct tbd_seen_jumps *jumps, uint64_t out[TBD_SEEN_MOST]);
/* False: there are too many. */
bool tbd_seen_jumps_add(struct tbd_seen_jumps *jumps, uint64_t pc);
/* A window, or a part of it, is searched with the first `count` places. */
void tbd_seen_jumps_mark(struct tbd_seen_jumps *jumps, uint32_t window, size_t count);
/* Sets stale[i] for windows that must be searched again, and forgets that they were searched; are there any? */
bool tbd_seen_jumps_take_stale(struct tbd_seen_jumps *jumps, uint8_t *stale);

#endif
