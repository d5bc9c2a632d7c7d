// SPDX-License-Identifier: MIT
/* safe_stream.h - streams through which nothing harmful reaches a terminal, and names for lines
 *
 * For ordinary processes. */
#ifndef TBD_BASE_SAFE_STREAM_H
#define TBD_BASE_SAFE_STREAM_H

#include <stdio.h>

/* A stream that writes to `to` what is written to it, with TBD_ESCAPE_LINES, after each line.  Closing
 * it leaves `to` open.  When `to` takes no more, it has an error too.  NULL without memory.  One
 * thread at a time, as any FILE. */
FILE *tbd_safe_stream(FILE *to);
/* Messages of the whole process, libraries' too, go through such a stream from here on.  Without
 * memory they go on as they were. */
void tbd_safe_messages(void);
/* `text` with TBD_ESCAPE_FIELD, for printf: borrowed until this thread asks for TBD_SHOWN_AT_ONCE others.
 * Text that is longer than TBD_SHOWN_BYTES is cut. */
const char *tbd_shown(const char *text);

#define TBD_SHOWN_AT_ONCE 8u
#define TBD_SHOWN_BYTES   4352u

/* All of it; the caller's, NULL without memory. */
char *tbd_shown_copy(const char *text);

#endif
