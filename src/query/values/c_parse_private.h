// SPDX-License-Identifier: MIT
/* c_parse_private.h - a text of C being read, for c_parse.c (expressions) and c_parse_types.c
 * (words, types) */
#ifndef TBD_QUERY_C_PARSE_PRIVATE_H
#define TBD_QUERY_C_PARSE_PRIVATE_H

#include "query/values/c_parse.h"

struct tbd_c_reader {
    const struct tbd_c_types *types;
    const char *text;
    size_t at, end;
    int depth;
    struct tbd_c_tree *tree;
    struct tbd_query_error *error;
};

/* The next character that is no blank, '\0' at the end; blanks are passed. */
char tbd_c_peek(struct tbd_c_reader *r);
/* Passes the sign, or the word, if it stands here. */
bool tbd_c_accept(struct tbd_c_reader *r, const char *sign);
bool tbd_c_accept_word(struct tbd_c_reader *r, const char *word);
bool tbd_c_is_name_start(char c);
/* The length of the name here, also of A::B and ::B; 0 if there is none. */
size_t tbd_c_name_here(struct tbd_c_reader *r);
/* A type name with pointers; leaves r->at alone if there is none. */
bool tbd_c_read_type(struct tbd_c_reader *r, struct tbd_type *out);

#endif
