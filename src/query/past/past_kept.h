// SPDX-License-Identifier: MIT
/* past_kept.h - a dump's rings and simulations, kept from one question of a session to the next
 *
 * A prompt's or a page's questions are mostly about places near each other.  A session keeps what it needed last until it is closed. */
#ifndef TBD_QUERY_PAST_PAST_KEPT_H
#define TBD_QUERY_PAST_PAST_KEPT_H

#include "query/past/past.h"

/* The rings of the session's dump; borrowed until the session is closed. */
TBD_MUST_CHECK enum tbd_status tbd_past_rings(struct tbd_session *session, struct tbd_rings **out);

/* What each thread is known to have stored to, kept with them; NULL in *out: there is only one. */
struct tbd_past_others;
TBD_MUST_CHECK enum tbd_status tbd_past_others(struct tbd_session *session,
                                               const struct tbd_past_others **out);

/* Like tbd_past_new() with these rings, for values from `before` instructions before ring step `step` up to step `until`, but perhaps more is
 * simulated: how much depends on these alone, not on what was asked before.  *out is the caller's until tbd_past_give_back(). */
TBD_MUST_CHECK enum tbd_status tbd_past_take(struct tbd_session *session,
                                             struct tbd_rings_thread *thread, uint64_t step,
                                             uint64_t before, uint64_t until,
                                             struct tbd_past **out);
/* NULL: nothing. */
void tbd_past_give_back(struct tbd_past *past);

#endif
