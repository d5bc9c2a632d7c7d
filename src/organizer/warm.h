// SPDX-License-Identifier: MIT
/* warm.h - memory for the ring, before the program needs it
 *
 * A program that gets ahead of the organizer fills slots of the ring that were never used.  Each
 * page would take a page fault in the program, 320 a slot, as the kernel makes no large pages of
 * shared memory by itself.  A thread that lives for some milliseconds puts large pages there: a
 * quarter of the work, in parallel to the program, which then has one fault for 16 pages
 * (hooks/stream/ring.c).
 *
 * Contents do not change, and others may use the memory meanwhile.  Where there are no large pages
 * (Linux before 6.1, fragmented memory), nothing is lost. */
#ifndef TBD_ORGANIZER_WARM_H
#define TBD_ORGANIZER_WARM_H

#include <stdbool.h>
#include <stdint.h>

#define TBD_LARGE_PAGE ((uint64_t)2 << 20)

struct tbd_warmer;

/* For [start, end) of a mapping of shared memory, aligned to large pages as its file is.  NULL:
 * nothing to do, or no memory. */
struct tbd_warmer *tbd_warmer_start(uint8_t *start, uint8_t *end);
bool tbd_warmer_is_done(const struct tbd_warmer *warmer);
/* Waits for its current call, a few milliseconds at most.  The mapping must exist until then.  NULL
 * is fine. */
void tbd_warmer_free(struct tbd_warmer *warmer);

#endif
