// SPDX-License-Identifier: MIT
/* answers.h - what a question about the whole run printed is kept, and printed again when it
 * is asked again
 *
 * Kept below the trace's cache/ (window_cache.h), when the trace is finished and whole, and
 * nothing had to be said beside the answer.  What an answer depends on is part of the question:
 * the trace, options, the position where it matters, tbdq itself, and where separate debug files
 * are looked for. */
#ifndef TBD_QUERY_ANSWERS_H
#define TBD_QUERY_ANSWERS_H

#include "query/commands/commands.h"

/* Carries out the command of a run, or repeats what it printed. */
enum tbd_exit tbd_answers_run(struct tbd_command_run *run, const struct tbd_command *command);

#endif
