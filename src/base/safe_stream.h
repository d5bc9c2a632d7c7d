// SPDX-License-Identifier: MIT
/* safe_stream.h - streams that keep harmful text from a terminal, and escaped names
 *
 * For ordinary processes. */
#ifndef TBD_BASE_SAFE_STREAM_H
#define TBD_BASE_SAFE_STREAM_H

#include <stdio.h>

/* A stream that writes its text to `to`, with TBD_ESCAPE_LINES, after each line.  Closing it leaves
 * `to` open.  If writing to `to` fails, it has an error, too.  NULL without memory.  One thread at
 * a time, like any FILE. */
FILE *tbd_safe_stream(FILE *to);
/* Sends all messages of the process, also of libraries, through such a stream from now on.  Without
 * memory nothing changes. */
void tbd_safe_messages(void);
/* `text` with TBD_ESCAPE_FIELD, for printf: borrowed until this thread calls it TBD_SHOWN_AT_ONCE
 * more times.  Text that is longer than TBD_SHOWN_BYTES is cut. */
const char *tbd_shown(const char *text);

#define TBD_SHOWN_AT_ONCE 8u
#define TBD_SHOWN_BYTES   4352u

/* The same without a limit; the caller frees it.  NULL without memory. */
char *tbd_shown_copy(const char *text);

#endif
