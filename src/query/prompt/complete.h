// SPDX-License-Identifier: MIT
/* complete.h - what may come next in a question: for the prompt's Tab key and for shells */
#ifndef TBD_QUERY_COMPLETE_H
#define TBD_QUERY_COMPLETE_H

#include "query/commands/commands.h"

#define TBD_COMPLETIONS_MAX 400u

struct tbd_completions {
    char **words; /* owned; sorted, each once */
    size_t count, capacity;
    size_t from; /* offset in the line of the word that they replace */
};

/* Continuations of line[0, length).  `session` NULL: only what needs no trace.  Free the result in
 * any case. */
void tbd_complete(struct tbd_session *session, const char *line, size_t length,
                  struct tbd_completions *out);
void tbd_completions_free(struct tbd_completions *completions);

#endif
