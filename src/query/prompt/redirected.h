// SPDX-License-Identifier: MIT
/* redirected.h - answers that go to a command or a file: "bt | grep main", "calls f > calls.txt"
 *
 * Also gdb's `pipe COMMAND | SHELL COMMAND` and `| COMMAND | SHELL COMMAND`.
 *
 * In an expression | and > are operators, whose operands may have names that mean something only
 * elsewhere.  So after a question with an expression only what cannot be an operand is taken: a
 * program of $PATH with arguments, or a well-known filter; a file that begins with ./ ../ / or ~/. */
#ifndef TBD_QUERY_REDIRECTED_H
#define TBD_QUERY_REDIRECTED_H

#include "query/commands/commands.h"

enum tbd_redirect_kind {
    TBD_REDIRECT_NONE = 0,
    TBD_REDIRECT_PIPE,
    TBD_REDIRECT_FILE,
    TBD_REDIRECT_ADD
};

struct tbd_redirect {
    enum tbd_redirect_kind kind;
    char *line;   /* owned: the question */
    char *target; /* owned: the shell command, or the file */
};

/* False: there is no memory.  Free it in any case. */
bool tbd_redirect_read(struct tbd_session *session, const char *line, struct tbd_redirect *out);
void tbd_redirect_free(struct tbd_redirect *redirect);
/* NULL after a message. */
FILE *tbd_redirect_open(const struct tbd_redirect *redirect);
void tbd_redirect_close(const struct tbd_redirect *redirect, FILE *file);

#endif
