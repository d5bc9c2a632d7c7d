// SPDX-License-Identifier: MIT
/* gdb_words.h - the words that users of gdb and rr type
 *
 *   p/x count -> print /x count      x/8gx $rsp -> mem rsp 64      info locals -> locals
 *
 * A word that has an equivalent is replaced by it; for other words a hint says how to ask. */
#ifndef TBD_QUERY_GDB_WORDS_H
#define TBD_QUERY_GDB_WORDS_H

#include <stdbool.h>
#include <stdio.h>

/* The line translated to a command of tbdq, which the caller frees; NULL: it has no translation, or
 * begins with a command of tbdq. */
char *tbd_gdb_translate(const char *line);
/* May a line that begins with this word have a translation? */
bool tbd_gdb_knows(const char *line);
/* A hint how to ask tbdq for what the line wants; NULL: there is none. */
const char *tbd_gdb_hint(const char *line);
/* The text of `tbdq help gdb`. */
void tbd_gdb_help(FILE *out);

#endif
