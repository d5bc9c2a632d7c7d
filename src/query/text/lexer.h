// SPDX-License-Identifier: MIT
/* lexer.h - words, numbers and signs of a question, each with its place in the text */
#ifndef TBD_QUERY_LEXER_H
#define TBD_QUERY_LEXER_H

#include "query/text/query_error.h"

enum tbd_token_kind {
    TBD_TOKEN_END,
    TBD_TOKEN_NUMBER,
    TBD_TOKEN_REAL,   /* `number` holds the bits of a double */
    TBD_TOKEN_WORD,   /* names and keywords; may contain . @ $ and module!name */
    TBD_TOKEN_STRING, /* "..." without the quotes; backslashes as written */
    TBD_TOKEN_SIGN,   /* one or two characters, in `sign` */
    TBD_TOKEN_BAD,    /* *error of the lexer is filled */
};

/* The type that C gives a number. */
enum tbd_literal {
    TBD_LITERAL_SIGNED = 0, /* int, or long if its value needs that */
    TBD_LITERAL_BITS,       /* 0x80000000 to 0xffffffff: unsigned int */
    TBD_LITERAL_UNSIGNED,   /* 1u: unsigned int */
    TBD_LITERAL_LONG,
    TBD_LITERAL_UNSIGNED_LONG,
    TBD_LITERAL_FLOAT, /* 1.5f */
};

#define TBD_SIGN(a, b) ((unsigned)(a) | (unsigned)(b) << 8)

struct tbd_token {
    enum tbd_token_kind kind;
    unsigned sign; /* TBD_SIGN('<', '<') or a single character */
    uint64_t number;
    enum tbd_literal literal;
    const char *text; /* borrowed from the source */
    size_t at,
        length; /* STRING: at and length include the quotes; `text` points past the first quote */
};

struct tbd_lexer {
    const char *source;
    size_t at;
    struct tbd_token token; /* the current one */
    struct tbd_query_error *error;
};

void tbd_lexer_start(struct tbd_lexer *lexer, const char *source, size_t from,
                     struct tbd_query_error *error);
void tbd_lexer_next(struct tbd_lexer *lexer);
bool tbd_token_is_word(const struct tbd_token *token, const char *word);
bool tbd_token_is_sign(const struct tbd_token *token, unsigned sign);
/* Fills *error for the current token, unless it is filled already; returns `status`. */
enum tbd_status tbd_lexer_fail(struct tbd_lexer *lexer, enum tbd_status status, const char *hint,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
