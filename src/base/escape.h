// SPDX-License-Identifier: MIT
/* escape.h - text of strangers, such that it can be shown
 *
 * Names, paths, arguments, messages: whatever a recorded program, a file or another user chose can
 * hold bytes that a terminal obeys, or that make it show something else.  Those are written as
 * escapes: "\x1b" and "\xff" for a byte, "\n" for the usual ones, "\u202e" for a character.  Told apart
 * are control characters (C0, DEL, C1), bytes that are not UTF-8, characters that turn the direction of
 * what follows, separators of lines, and characters that cannot be seen.  Backslashes stay as they
 * are.
 *
 * Any thread, no memory is taken.  Engine and ordinary processes. */
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

/* Writes text[0, length) to `out`, escaped, and a NUL, as far as it fits into `room` bytes; nothing is cut inside an escape or a character.  Returns how many bytes all of it needs without the
 * NUL. */
size_t tbd_escape(enum tbd_escape_what what, const char *text, size_t length, char *out,
                  size_t room);
/* Would it be written as it is? */
bool tbd_escape_is_plain(enum tbd_escape_what what, const char *text, size_t length);
/* How many bytes at the end only mean something with what follows, a character that is cut or a
 * return: 0 to 3. */
size_t tbd_escape_unfinished(const char *text, size_t length);

#endif
