// SPDX-License-Identifier: MIT
/* part_answer.h - answers a question about some windows of native play before the others are counted
 *
 * It is asked about the windows that it names, or the last one.  If it comes to others, what it has printed is dropped, and it is
 * asked again about more of them. */
#ifndef TBD_QUERY_PART_ANSWER_H
#define TBD_QUERY_PART_ANSWER_H

#include "query/session/session.h"

#include <stdio.h>

struct tbd_part_asking {
    const struct tbd_session *session; /* what options have set: the trace is not open */
    const char *at;                    /* --at, or NULL */
    size_t count;
    char *const *words; /* the question */
    FILE *out;
    int (*answer)(void *context, struct tbd_session *session, FILE *out);
    void *context;
};

/* True: *out_result is its exit status.  False: nothing was printed; all windows have to be counted. */
bool tbd_part_ask(const char *path, const struct tbd_part_asking *asking, int *out_result);

#endif
