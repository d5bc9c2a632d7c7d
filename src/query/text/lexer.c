// SPDX-License-Identifier: MIT
/* lexer.c - splits a question into tokens
 *
 * Numbers are decimal, 0x..., 0o... or 0..., 0b..., and 'c' with the usual escapes.  The first
 * error wins: later calls keep it, so that the message names the first wrong word. */
#include "query/text/lexer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tbd_lexer_start(struct tbd_lexer *lexer, const char *source, size_t from,
                     struct tbd_query_error *error)
{
    memset(error, 0, sizeof(*error));
    *lexer = (struct tbd_lexer){ .source = source, .at = from, .error = error };
    tbd_lexer_next(lexer);
}

bool tbd_token_is_word(const struct tbd_token *token, const char *word)
{
    return token->kind == TBD_TOKEN_WORD && token->length == strlen(word) &&
           memcmp(token->text, word, token->length) == 0;
}

bool tbd_token_is_sign(const struct tbd_token *token, unsigned sign)
{
    return token->kind == TBD_TOKEN_SIGN && token->sign == sign;
}

enum tbd_status tbd_lexer_fail(struct tbd_lexer *lexer, enum tbd_status status, const char *hint,
                               const char *format, ...)
{
    struct tbd_query_error *error = lexer->error;
    size_t length = lexer->token.length != 0 ? lexer->token.length : 1;
    va_list list;

    if (error->status != TBD_OK)
        return error->status;
    va_start(list, format);
    (void)tbd_query_wrong_list(error, status, lexer->token.at, length, format, list);
    va_end(list);
    snprintf(error->hint, sizeof(error->hint), "%s", hint == NULL ? "" : hint);
    return status;
}

static void bad(struct tbd_lexer *lexer, size_t length, const char *hint, const char *what)
{
    lexer->token.kind = TBD_TOKEN_BAD;
    lexer->token.length = length;
    lexer->at += length;
    (void)tbd_lexer_fail(lexer, TBD_SYNTAX, hint, "%s", what);
}

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '@';
}

static bool is_name_char(char c)
{
    return is_name_start(c) || isdigit((unsigned char)c) || c == '@';
}

/* C++: "::" between names. */
static bool is_scope(const char *s)
{
    return s[0] == ':' && s[1] == ':' && is_name_start(s[2]);
}

static void lex_word(struct tbd_lexer *lexer)
{
    const char *s = lexer->source + lexer->at;
    size_t n = 1;

    while (is_name_char(s[n]) || (s[n] == '!' && is_name_start(s[n + 1])) || is_scope(s + n))
        n += is_scope(s + n) ? 2 : 1;
    lexer->token.kind = TBD_TOKEN_WORD;
    lexer->token.length = n;
    lexer->at += n;
}

static unsigned number_base(const char *s, size_t *prefix)
{
    *prefix = 2;
    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
        return 16;
    if (s[0] == '0' && (s[1] == 'b' || s[1] == 'B'))
        return 2;
    if (s[0] == '0' && (s[1] == 'o' || s[1] == 'O'))
        return 8;
    *prefix = s[0] == '0' && isdigit((unsigned char)s[1]) ? 1 : 0;
    return *prefix == 1 ? 8 : 10;
}

static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 99;
}

/* 1.5, 2e-3, 1.1f: the value is the bits of a double. */
static bool lex_real(struct tbd_lexer *lexer)
{
    const char *s = lexer->source + lexer->at;
    size_t digits = strspn(s, "0123456789");
    char *end;
    double value;

    if (!(s[digits] == '.' && isdigit((unsigned char)s[digits + 1])) &&
        !(s[digits] == 'e' &&
          (isdigit((unsigned char)s[digits + 1]) || s[digits + 1] == '-' || s[digits + 1] == '+')))
        return false;
    value = strtod(s, &end);
    if (*end == 'f' || *end == 'F') {
        value = (float)value;
        end++;
    }
    if (is_name_char(*end))
        return false;
    lexer->token.kind = TBD_TOKEN_REAL;
    memcpy(&lexer->token.number, &value, sizeof(value));
    lexer->token.length = (size_t)(end - s);
    lexer->at += lexer->token.length;
    return true;
}

/* u, l, ul and the like after a number; returns how many characters they are. */
static size_t number_suffix(const char *s, bool *is_unsigned, bool *is_long)
{
    size_t n = strspn(s, "uUlL");

    *is_unsigned = *is_long = false;
    if (n > 3 || is_name_char(s[n]))
        return 0;
    for (size_t i = 0; i < n; i++) {
        *is_unsigned |= s[i] == 'u' || s[i] == 'U';
        *is_long |= s[i] == 'l' || s[i] == 'L';
    }
    return n;
}

static enum tbd_literal literal_of(uint64_t value, unsigned base, bool is_unsigned, bool is_long)
{
    if (value > INT64_MAX)
        return TBD_LITERAL_UNSIGNED_LONG;
    if (is_long || value > UINT32_MAX)
        return is_unsigned ? TBD_LITERAL_UNSIGNED_LONG : TBD_LITERAL_LONG;
    if (is_unsigned)
        return TBD_LITERAL_UNSIGNED;
    return base != 10 && value > INT32_MAX ? TBD_LITERAL_BITS : TBD_LITERAL_SIGNED;
}

static void lex_number(struct tbd_lexer *lexer)
{
    const char *s = lexer->source + lexer->at;
    size_t n;
    unsigned base = number_base(s, &n);
    size_t digits = 0;
    uint64_t value = 0;
    bool overflow = false, is_unsigned = false, is_long = false;

    for (; digit_value(s[n]) < base; n++, digits++) {
        overflow |= __builtin_mul_overflow(value, (uint64_t)base, &value);
        overflow |= __builtin_add_overflow(value, (uint64_t)digit_value(s[n]), &value);
    }
    n += digits == 0 ? 0 : number_suffix(s + n, &is_unsigned, &is_long);
    if (is_name_char(s[n]) || (digits == 0 && n == 2)) {
        while (is_name_char(s[n]))
            n++;
        bad(lexer, n, "numbers: 12, 0x1f, 0o17 (or 017), 0b101, 1u, 1ul, 'c'", "not a number");
    } else if (overflow) {
        bad(lexer, n, NULL, "the number does not fit into 64 bits");
    } else {
        lexer->token.kind = TBD_TOKEN_NUMBER;
        lexer->token.number = value;
        lexer->token.literal = literal_of(value, base, is_unsigned, is_long);
        lexer->token.length = n;
        lexer->at += n;
    }
}

static bool escape_value(char c, uint64_t *out)
{
    static const char from[] = "ntr0abfv\\'\"";
    static const char to[] = "\n\t\r\0\a\b\f\v\\'\"";
    const char *p = c == '\0' ? NULL : strchr(from, c);

    if (p == NULL)
        return false;
    *out = (unsigned char)to[p - from];
    return true;
}

static void lex_character(struct tbd_lexer *lexer)
{
    const char *s = lexer->source + lexer->at;
    uint64_t value = (unsigned char)s[1];
    size_t n = 2;

    if (s[1] == '\\') {
        n = 3;
        if (!escape_value(s[2], &value))
            n = 0;
    }
    if (n == 0 || s[1] == '\0' || s[1] == '\'' || s[n] != '\'') {
        bad(lexer, 1, "one character between quotes: 'a', '\\n'; names are written \"...\"",
            "not a character");
        return;
    }
    lexer->token.kind = TBD_TOKEN_NUMBER;
    lexer->token.number = value;
    lexer->token.length = n + 1;
    lexer->at += n + 1;
}

static void lex_string(struct tbd_lexer *lexer)
{
    const char *s = lexer->source + lexer->at;
    const char *end = s + 1;

    while (*end != '\0' && *end != '"')
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    if (*end == '\0') {
        bad(lexer, strlen(s), NULL, "the string has no closing quote");
        return;
    }
    lexer->token.kind = TBD_TOKEN_STRING;
    lexer->token.text = s + 1;
    lexer->token.length = (size_t)(end - s) + 1;
    lexer->at += lexer->token.length;
}

static void lex_sign(struct tbd_lexer *lexer)
{
    static const char pairs[] = "== != <= >= << >> && || -> =~";
    const char *s = lexer->source + lexer->at;
    char two[3] = { s[0], s[1], '\0' };

    lexer->token.kind = TBD_TOKEN_SIGN;
    if (s[1] != '\0' && s[1] != ' ' && strstr(pairs, two) != NULL) {
        lexer->token.sign = TBD_SIGN(s[0], s[1]);
        lexer->token.length = 2;
        lexer->at += 2;
    } else if (strchr("<>=+-*/%&|^~()[],!?:", s[0]) != NULL) {
        lexer->token.sign = (unsigned char)s[0];
        lexer->token.length = 1;
        lexer->at++;
    } else {
        bad(lexer, 1, NULL, "this character has no meaning here");
    }
}

void tbd_lexer_next(struct tbd_lexer *lexer)
{
    const char *s;

    while (isspace((unsigned char)lexer->source[lexer->at]))
        lexer->at++;
    s = lexer->source + lexer->at;
    lexer->token = (struct tbd_token){ .kind = TBD_TOKEN_END, .text = s, .at = lexer->at };
    if (*s == '\0')
        return;
    if (is_name_start(*s)) {
        lex_word(lexer);
    } else if (isdigit((unsigned char)*s)) {
        if (!lex_real(lexer))
            lex_number(lexer);
    } else if (*s == '\'') {
        lex_character(lexer);
    } else if (*s == '"') {
        lex_string(lexer);
    } else {
        lex_sign(lexer);
    }
}
