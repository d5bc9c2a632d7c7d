// SPDX-License-Identifier: MIT
/* search_ends.h - in which windows the frame of a call may end, from the index over windows
 *
 * The entry is one of a question with keeps_frames.  A window that is not named here has no event of
 * func_exit that ends the frame.  */
#ifndef TBD_QUERY_SEARCH_ENDS_H
#define TBD_QUERY_SEARCH_ENDS_H

#include "query/session/event.h"
#include "query/session/session.h"

struct tbd_ends;

TBD_MUST_CHECK enum tbd_status tbd_ends_new(struct tbd_session *session, struct tbd_ends **out);
void tbd_ends_free(struct tbd_ends *ends); /* NULL is fine */
/* Windows from .. to; known[i] is 1 if window i was searched. */
struct tbd_ends_span {
    uint32_t from, to;
    const uint8_t *known;
};
/* The first such window that was not searched; UINT32_MAX: there is none.  *out_is_over: in a later
 * window, which was searched, something else was stored to the frame's slot: it is gone. */
uint32_t tbd_ends_next(struct tbd_ends *ends, const struct tbd_event *enter,
                       const struct tbd_ends_span *span, bool *out_is_over);
/* Is the frame, whose end no return shows, gone at the recording's end? */
bool tbd_ends_is_gone(struct tbd_ends *ends, const struct tbd_event *enter);

#endif
