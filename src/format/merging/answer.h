// SPDX-License-Identifier: MIT
/* answer.h - files with the printed answers of questions about a whole run
 *
 * The file is only a cache: asking again prints the same; the file saves the search. */
#ifndef TBD_FORMAT_ANSWER_H
#define TBD_FORMAT_ANSWER_H

#include "format/files/trace_dir.h"
#include "format/trace/trace.h"
#include "format/files/codec.h"

/* An answer is longer than this only in a forged file. */
#define TBD_ANSWER_MAX (16ull << 20)

struct tbd_answer {
    const char *question; /* everything that the answer depends on; the file is named by its hash */
    const char *text;     /* `bytes` long */
    size_t bytes;
    uint32_t result; /* exit status */
};

void tbd_answer_name(const char *question, char *out, size_t bytes);
/* Appends the file. */
void tbd_answer_put(const struct tbd_trace *trace, const struct tbd_answer *answer,
                    struct tbd_buffer *out);
/* The answer to answer->question; answer->text is the caller's to free.  TBD_NOTRACE: there is no
 * file.  TBD_NOTFOUND: the file belongs to another question. */
TBD_MUST_CHECK enum tbd_status tbd_answer_load(const struct tbd_trace *trace, struct tbd_dir folder,
                                               struct tbd_answer *answer, struct tbd_error *why);

#endif
