// SPDX-License-Identifier: MIT
/* captured.h - one question inside this process, with what it prints: for servers whose clients ask in tbdq's language
 *
 * Messages, which commands print on stderr, are captured as well, so only one thread of the process may
 * print while a question runs. */
#ifndef TBD_QUERY_CAPTURED_H
#define TBD_QUERY_CAPTURED_H

#include "query/commands/commands.h"

struct tbd_captured {
    enum tbd_exit result;
    char *out; /* owned; answers, safe for a terminal */
    char *err; /* owned; messages, the same */
};

/* A stretch of code whose output and messages are captured. */
struct tbd_capture {
    FILE *out, *err; /* to print to; stderr is `err` meanwhile */
    FILE *before;    /* stderr */
    FILE *raw_out, *raw_err;
    size_t out_bytes, err_bytes;
    struct tbd_captured captured;
};

/* False: there is no memory, and nothing to end. */
TBD_MUST_CHECK bool tbd_capture_begin(struct tbd_capture *capture);
/* Moves what was captured to *out. */
void tbd_capture_end(struct tbd_capture *capture, struct tbd_captured *out);

/* A line of tbdq's language.  Free *out in any case. */
void tbd_captured_run(struct tbd_session *session, const char *line, struct tbd_captured *out);
void tbd_captured_free(struct tbd_captured *captured);
/* What a failed question says in one line: its first message, without "tbdq: "; the caller's buffer. */
char *tbd_captured_why(const struct tbd_captured *captured, char *out, size_t bytes);

#endif
