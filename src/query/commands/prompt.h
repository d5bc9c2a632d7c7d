// SPDX-License-Identifier: MIT
/* prompt.h - questions one after the other, from a person at a terminal */
#ifndef TBD_QUERY_PROMPT_H
#define TBD_QUERY_PROMPT_H

#include "query/commands/command_line.h"

/* Reads lines until `quit` or end of file; the result of the last one.  History is kept in
 * $XDG_STATE_HOME/tbd/history (~/.local/state/tbd/history). */
enum tbd_exit tbd_prompt(struct tbd_session *session, const struct tbd_line_options *options);

#endif
