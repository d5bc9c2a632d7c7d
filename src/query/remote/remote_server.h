// SPDX-License-Identifier: MIT
/* remote_server.h - serves one trace to one client by gdb's remote serial protocol, until it goes
 *
 * The recording cannot be changed: packets that write registers or memory are refused.  A stop for a
 * signal is at its handler's first instruction, or, if the signal ended the program, at the instruction
 * that it hit. */
#ifndef TBD_QUERY_REMOTE_SERVER_H
#define TBD_QUERY_REMOTE_SERVER_H

#include "query/session/session.h"

/* `in` and `out` are the client's descriptors.  TBD_OK when it has gone; its last position is remembered in the
 * trace. */
TBD_MUST_CHECK enum tbd_status tbd_remote_serve(struct tbd_session *session, int in, int out);

#endif
