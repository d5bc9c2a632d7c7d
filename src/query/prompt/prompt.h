// SPDX-License-Identifier: MIT
/* prompt.h - reads questions from a person at a terminal */
#ifndef TBD_QUERY_PROMPT_H
#define TBD_QUERY_PROMPT_H

#include "query/prompt/command_line.h"

/* Reads and carries out lines until `quit` or end of file; returns the result of the last one.
 * History is kept in $XDG_STATE_HOME/tbd/history (~/.local/state/tbd/history). */
enum tbd_exit tbd_prompt(struct tbd_session *session, const struct tbd_line_options *options);

#endif
