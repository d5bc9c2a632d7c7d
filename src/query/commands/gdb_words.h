// SPDX-License-Identifier: MIT
/* gdb_words.h - the words that users of gdb and rr type
 *
 *   p/x count -> print /x count      x/8gx $rsp -> mem rsp 64      info locals -> locals
 *
 * What has an equal here is that command; what has none gets a hint that says how it is asked. */
#ifndef TBD_QUERY_GDB_WORDS_H
#define TBD_QUERY_GDB_WORDS_H

#include <stdbool.h>
#include <stdio.h>

/* The line with the same meaning in our own words, the caller's to free; NULL: it has none, or
 * begins with a command of ours. */
char *tbd_gdb_translate(const char *line);
/* May a line that begins so have such a meaning? */
bool tbd_gdb_knows(const char *line);
/* How something that the line asks for is asked here; NULL: nothing is known of it. */
const char *tbd_gdb_hint(const char *line);
/* The text of `tbdq help gdb`. */
void tbd_gdb_help(FILE *out);

#endif
