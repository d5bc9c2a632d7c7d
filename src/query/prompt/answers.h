// SPDX-License-Identifier: MIT
/* answers.h - the printed answer to a question about the whole run is kept, and printed again when
 * the question is asked again
 *
 * Answers are kept below the trace's cache/ (window_cache.h), when the trace is finished and whole,
 * and there was no note beside the answer.  The key of an answer holds all that it depends on: the
 * question, the trace, options, the position where it matters, tbdq itself, and the places where
 * separate debug files are looked for. */
#ifndef TBD_QUERY_ANSWERS_H
#define TBD_QUERY_ANSWERS_H

#include "query/commands/commands.h"

/* Carries out the command of a run, or prints its kept answer again. */
enum tbd_exit tbd_answers_run(struct tbd_command_run *run, const struct tbd_command *command);

#endif
