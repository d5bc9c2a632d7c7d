// SPDX-License-Identifier: MIT
/* past_others.h - memory of a dump that several threads wrote: what is inferred of it does not go past another thread's stores
 *
 * Rings say what each thread ran, but not in which order threads ran it.  A word that another thread has stored to may have had any value
 * between two moments of this one.  So the last instructions of each thread are simulated alone, and where they stored, as far as that is known,
 * is noted: words, and what lies between those of one instruction that are near each other, as it does in an array.
 *
 * What a thread stored before these instructions, or where that is not known, is not noted: values that are inferred across it rest on the
 * assumption that it is none. */
#ifndef TBD_QUERY_PAST_OTHERS_H
#define TBD_QUERY_PAST_OTHERS_H

#include "query/rings/dump_rings.h"
#include "query/session/session.h"

struct tbd_past_others;

/* Looks at all threads of the rings; NULL in *out: there is only one. */
TBD_MUST_CHECK enum tbd_status tbd_past_others_new(struct tbd_session *session,
                                                   struct tbd_rings *ring,
                                                   struct tbd_past_others **out);
void tbd_past_others_free(struct tbd_past_others *others);
/* Did a thread other than number `own` of the rings store to the 8 bytes at `address`, a multiple of 8?  `others` NULL: no. */
bool tbd_past_others_store(const struct tbd_past_others *others, uint32_t own, uint64_t address);

#endif
