// SPDX-License-Identifier: MIT
/* complete_names.h - what a word may become: one completion being made, and names of the program for it */
#ifndef TBD_QUERY_COMPLETE_NAMES_H
#define TBD_QUERY_COMPLETE_NAMES_H

#include "query/prompt/complete.h"
#include "query/commands/commands.h"

#define TBD_COMPLETER_WORD 256

struct tbd_completer {
    struct tbd_session *session;
    const char *line;
    size_t length;
    char word[TBD_COMPLETER_WORD]; /* the part that is typed */
    struct tbd_completions *out;
};

/* Adds a word if it begins as the typed one does. */
void tbd_completer_add(struct tbd_completer *c, const char *word);
/* Functions and variables of all modules. */
void tbd_completer_symbols(struct tbd_completer *c);
/* Variables in scope, or the members of what stands before the word. */
void tbd_completer_source_names(struct tbd_completer *c);
/* The end of the expression before "." or "->"; 0 if no member is wanted. */
size_t tbd_completer_member_of(const struct tbd_completer *c);
/* Source files. */
void tbd_completer_files(struct tbd_completer *c);

#endif
