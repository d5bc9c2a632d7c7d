// SPDX-License-Identifier: MIT
/* page_request.h - what a browser sends: who may ask, and what is asked
 *
 * All of it is hostile: any page that the user has open can make the browser send something here. */
#ifndef TBD_QUERY_PAGE_REQUEST_H
#define TBD_QUERY_PAGE_REQUEST_H

#include "format/window/window.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_PAGE_TOKEN_BYTES 33u /* 32 hexadecimal digits and NUL */
#define TBD_PAGE_BODY_BYTES  65536u
#define TBD_PAGE_LINES       16u
#define TBD_PAGE_LINE_BYTES  4096u
#define TBD_PAGE_ID_BYTES    64u
#define TBD_PAGE_ROWS        5000u /* at most, of one answer */
#define TBD_PAGE_PIXELS      4096u

/* Is this the `Host` of a request to this machine by one of its own names?  Another one is a name that
 * somebody else made lead here.  Any port: it may have been forwarded. */
bool tbd_page_is_host(const char *host);
/* Is the `Origin` that of a page from `host`?  NULL, none, is: a browser sends it where it matters. */
bool tbd_page_is_origin(const char *origin, const char *host);
/* The path below "/TOKEN/", or NULL without the token.  The time that it takes does not tell how much of the
 * token was right. */
const char *tbd_page_path(const char *url, const char *token);

/* Where the user is. */
struct tbd_page_place {
    struct tbd_position at;
    uint64_t
        back; /* not 0, of a crash dump: instruction at.offset of the `back`-th block before the thread's end */
    uint32_t thread; /* id; 0: the one that has control */
    size_t frame;
};

enum tbd_page_asks {
    TBD_PAGE_ASKS = 0, /* `lines`, as typed */
    TBD_PAGE_BEGINS,   /* what the trace is, and where to begin */
    TBD_PAGE_COMPLETES,
    TBD_PAGE_SUMS /* events along the time line, for each pixel */
};

struct tbd_page_question {
    enum tbd_page_asks kind;
    char id[TBD_PAGE_ID_BYTES];  /* chosen by the page, to cancel it */
    char *lines[TBD_PAGE_LINES]; /* owned; COMPLETES: the first is the text */
    size_t line_count;
    bool has_at, has_span; /* without has_at: where the page begins */
    bool is_text;          /* answers as people read them; else JSON */
    struct tbd_page_place place;
    uint32_t pixels;
    uint64_t since, until; /* of the span; SUMS: of the time line */
    size_t rows;           /* how many are wanted */
};

/* Reads a body, JSON; false: it is none of the above, and *why says so.  Free it after true. */
bool tbd_page_question_read(const char *body, size_t bytes, struct tbd_page_question *out,
                            const char **why);
void tbd_page_question_free(struct tbd_page_question *question);

/* Reads {"record": N}. */
bool tbd_page_dial_read(const char *body, size_t bytes, uint32_t *out);

#endif
