// SPDX-License-Identifier: MIT
/* script.h - questions in a file: lines as at the prompt, with variables, assertions, conditions */
#ifndef TBD_QUERY_SCRIPT_H
#define TBD_QUERY_SCRIPT_H

#include "query/commands/command_line.h"

/* Carries out a script; `name` is for messages.  TBD_EXIT_NOT_FOUND at the first line that fails,
 * which is said on stderr; TBD_EXIT_FOUND if none does. */
enum tbd_exit tbd_script_run(struct tbd_session *session, const struct tbd_line_options *options,
                             FILE *script, const char *name);
void tbd_script_help(FILE *out);

#endif
