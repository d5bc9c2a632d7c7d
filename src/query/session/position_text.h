// SPDX-License-Identifier: MIT
/* position_text.h - how positions are written: TIME+K, or @wWINDOW+BLOCKS+K
 *
 * The second form names a window and the block entries in it.  It is how a position is shown while the blocks of windows before it
 * are not counted (part_trace.h), and it can be read for as long as the window is there. */
#ifndef TBD_QUERY_POSITION_TEXT_H
#define TBD_QUERY_POSITION_TEXT_H

#include "query/session/session.h"

#define TBD_POSITION_TEXT 64u

struct tbd_position_text {
    char text[TBD_POSITION_TEXT];
};

/* Are times known, as all blocks before are counted? */
bool tbd_position_has_time(const struct tbd_session *session, uint64_t time);
struct tbd_position_text tbd_position_text(const struct tbd_session *session,
                                           struct tbd_position position);
/* The same, without +K. */
struct tbd_position_text tbd_time_text(const struct tbd_session *session, uint64_t time);

/* Does the text begin with a position in a window, "@wWINDOW"?  Returns its length, or 0. */
size_t tbd_position_in_window(const char *text);
/* TBD_NOTIME: there is no such position, session->why says why. */
TBD_MUST_CHECK enum tbd_status tbd_position_read(struct tbd_session *session, const char *text,
                                                 struct tbd_position *out);
/* Reads TIME+K, or a position in a window, with which the text begins.  Returns its length; 0: there is none, or the trace does not
 * have it. */
size_t tbd_position_take(struct tbd_session *session, const char *text, struct tbd_position *out);

#endif
