// SPDX-License-Identifier: MIT
/* escape.h - escapes text from untrusted sources, so that it can be shown
 *
 * Names, paths, arguments and messages from a recorded program, a file or another user can have
 * bytes that control a terminal, or that make it show something else.  These are written as
 * escapes: "\x1b" and "\xff" for a byte, "\n" for the usual ones, "\u202e" for a character.
 * Escaped are control characters (C0, DEL, C1), bytes that are not UTF-8, characters that change
 * the direction of text, line separators, and invisible characters.  Backslashes stay as they are.
 *
 * Any thread; no allocation.  Engine and ordinary processes. */
#ifndef TBD_BASE_ESCAPE_H
#define TBD_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

enum tbd_escape_what {
    TBD_ESCAPE_FIELD, /* all: a name in a line */
    TBD_ESCAPE_LINES, /* all but newlines, tabs, and returns before a newline: whole output */
    TBD_ESCAPE_UTF8,  /* only bytes that are not UTF-8: what JSON can hold */
};

#define TBD_ESCAPE_MAX 8u /* bytes of the longest escape: "\U0e007f" */

/* Writes text[0, length) to `out`, escaped, and a NUL, as far as it fits into `capacity` bytes; never
 * cuts inside an escape or a character.  Returns how many bytes the whole text needs without the
 * NUL. */
size_t tbd_escape(enum tbd_escape_what what, const char *text, size_t length, char *out,
                  size_t capacity);
/* How many bytes from the start on are printable ASCII or newlines, which stay as they are in whole output. */
size_t tbd_escape_plain_lines(const char *text, size_t length);
/* Does the text need no escapes? */
bool tbd_escape_is_plain(enum tbd_escape_what what, const char *text, size_t length);
/* How many bytes at the end depend on the text that follows, as a cut character or a return: 0 to
 * 3. */
size_t tbd_escape_unfinished(const char *text, size_t length);

#endif
