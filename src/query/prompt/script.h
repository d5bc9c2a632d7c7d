// SPDX-License-Identifier: MIT
/* script.h - questions in a file: lines as at the prompt, with variables, assertions, conditions */
#ifndef TBD_QUERY_SCRIPT_H
#define TBD_QUERY_SCRIPT_H

#include "query/prompt/command_line.h"

/* Carries out a script; `name` is for messages.  It ends at the first line that fails, with a
 * message and TBD_EXIT_NOT_FOUND; TBD_EXIT_FOUND if none fails. */
enum tbd_exit tbd_script_run(struct tbd_session *session, const struct tbd_line_options *options,
                             FILE *script, const char *name);
void tbd_script_help(FILE *out);

#endif
