// SPDX-License-Identifier: MIT
/* context_learn.h - the stacks of calls that a recording or a dump has, for the dictionary of its program */
#ifndef TBD_QUERY_CONTEXT_LEARN_H
#define TBD_QUERY_CONTEXT_LEARN_H

#include "query/contexts/context_dictionary.h"
#include "query/session/session.h"

/* Adds all of them.  TBD_NOMEM, or what went wrong with the trace (session->why). */
TBD_MUST_CHECK enum tbd_status tbd_contexts_learn(struct tbd_session *session,
                                                  struct tbd_context_dictionary *dictionary);

/* Adds those that the threads of a crash dump have at its end, as far as they are calls of files.  TBD_NOMEM. */
TBD_MUST_CHECK enum tbd_status tbd_contexts_learn_dump(struct tbd_session *session,
                                                       struct tbd_context_dictionary *dictionary);

#endif
