// SPDX-License-Identifier: MIT
/* command_line.h - carries out one question as it is typed: for the shell, the prompt, scripts */
#ifndef TBD_QUERY_COMMAND_LINE_H
#define TBD_QUERY_COMMAND_LINE_H

#include "query/commands/commands.h"

#define TBD_LINE_MAX_WORDS 512

struct tbd_line_options {
    FILE *out;
    bool quiet;   /* no progress line */
    bool explain; /* say how a search went */
    bool numbers; /* printed values have numbers: "$1 = 5" */
    bool reads;   /* commands that write are refused */
};

/* Carries out `words` (the first is the command) in an open session.  Errors are printed on
 * stderr. */
enum tbd_exit tbd_words_run(struct tbd_session *session, const struct tbd_line_options *options,
                            size_t count, char *const *words);
/* The same for a line; an empty one does nothing. */
enum tbd_exit tbd_line_run(struct tbd_session *session, const struct tbd_line_options *options,
                           const char *line);
/* Cuts a line into words, in place; returns their number. */
size_t tbd_line_split(char *line, char **out, size_t max);
/* The text of `help`, `help COMMAND`; `name` NULL: the list of commands. */
enum tbd_exit tbd_line_help(const char *name, FILE *out);
void tbd_line_list(FILE *out);
/* Is it a command of tbdq, or of another debugger? */
bool tbd_line_is_known(const char *line);
/* "there is no command 'gto'", with the nearest one as a hint. */
enum tbd_exit tbd_line_unknown(const char *name);

#endif
