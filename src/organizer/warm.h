// SPDX-License-Identifier: MIT
/* warm.h - memory for the ring, before the program needs it
 *
 * A program that gets ahead of the organizer fills slots of the ring that were never used.  Each of their pages would be
 * found and cleared in a page fault of its own, 320 a slot, in the program's time; the ring's memory is shared, of which
 * the kernel makes no large pages by itself.  A thread that lives for some milliseconds puts large pages there: a quarter
 * of the work, done beside the program, which then has a fault for 16 pages (hooks/stream/ring.c).
 *
 * Contents stay as they are, whoever uses the memory meanwhile.  Where there are no large pages (Linux before 6.1,
 * fragmented memory), nothing is lost. */
#ifndef TBD_ORGANIZER_WARM_H
#define TBD_ORGANIZER_WARM_H

#include <stdbool.h>
#include <stdint.h>

#define TBD_LARGE_PAGE ((uint64_t)2 << 20)

struct tbd_warmer;

/* For [start, end) of a mapping of shared memory; where large pages may lie is the same in it and in its file.  NULL: there is
 * nothing to do, or no memory to do it. */
struct tbd_warmer *tbd_warmer_start(uint8_t *start, uint8_t *end);
bool tbd_warmer_is_done(const struct tbd_warmer *warmer);
/* Waits for what it is at: a few milliseconds at most.  The mapping must be there until then.  NULL is fine. */
void tbd_warmer_free(struct tbd_warmer *warmer);

#endif
