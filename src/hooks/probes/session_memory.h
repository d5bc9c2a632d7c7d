// SPDX-License-Identifier: MIT
/* session_memory.h - memory of a session: its code and uses, and what it shares with the consumer
 *
 * Context: keeper. */
#ifndef TBD_HOOKS_SESSION_MEMORY_H
#define TBD_HOOKS_SESSION_MEMORY_H

#include "format/probe/probe.h"

/* Makes the session that the request asks for; *out_fd is the shared memory's. */
enum tbd_probe_refusal tbd_session_memory_make(const struct tbd_probe_open *request, int *out_fd);

/* The session is no more, and no handler is inside. */
void tbd_session_memory_give_back(void);

#endif
