// SPDX-License-Identifier: MIT
/* dump_state.h - registers and calling contexts in a crash dump (TBD_START_DUMP) */
#ifndef TBD_QUERY_DUMP_STATE_H
#define TBD_QUERY_DUMP_STATE_H

#include "query/session/session.h"

/* Those of session->thread at the dump's one position.  TBD_NOREPLAY, and session->why says so, if the dump
 * does not have them. */
TBD_MUST_CHECK enum tbd_status tbd_dump_regs(struct tbd_session *session, uint32_t window,
                                             struct tbd_position position,
                                             struct tbd_reg_state *out);

/* The thread's calling context there.  TBD_NOTFOUND: the program ran without. */
TBD_MUST_CHECK enum tbd_status tbd_dump_calling(struct tbd_session *session, uint32_t window,
                                                uint32_t tid, struct tbd_msg_calling *out);

#endif
