// SPDX-License-Identifier: MIT
/* part_answer.h - answers a question about some windows of native play before the others are counted
 *
 * It is asked about the windows that it names, or the last one.  If it comes to others, what it has printed is dropped, and it is
 * asked again about more of them. */
#ifndef TBD_QUERY_PART_ANSWER_H
#define TBD_QUERY_PART_ANSWER_H

#include "query/prompt/command_line.h"
#include "query/session/part_trace.h"

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

/* For several questions: opens the session, with few windows, which the caller closes, and then *part.  False: all windows have to be
 * counted, or it is no recording of native play. */
bool tbd_part_start(struct tbd_session *session, struct tbd_counted_part *part, const char *path,
                    const char *at);
/* tbd_line_run() for such a session, and for others: it goes on with more windows when a question needs them. */
enum tbd_exit tbd_part_line(struct tbd_session *session, const struct tbd_line_options *options,
                            const char *text);

#endif
