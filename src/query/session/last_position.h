// SPDX-License-Identifier: MIT
/* last_position.h - where a recording ends, without its events */
#ifndef TBD_QUERY_LAST_POSITION_H
#define TBD_QUERY_LAST_POSITION_H

#include "query/session/session.h"

/* The instruction of the last block at which the recording ends, or before which a signal ended it, from the summaries of `window`, whose last
 * block it is.  False: only its events tell. */
bool tbd_last_insn(const struct tbd_session *session, const struct tbd_window *window,
                   uint32_t *out);

#endif
