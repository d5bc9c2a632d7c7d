// SPDX-License-Identifier: MIT
/* c_parse_types.c - words of C, and the types that they make: "unsigned long", "struct node *",
 * "std::map<int, int>"
 *
 * A word is a type if tbd_c_types says so, or C does. */
#include "query/values/c_parse_private.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdio.h>
#include <string.h>

/* ---- words ---- */

char tbd_c_peek(struct tbd_c_reader *r)
{
    while (r->at < r->end && isspace((unsigned char)r->text[r->at]))
        r->at++;
    return r->at < r->end ? r->text[r->at] : '\0';
}

bool tbd_c_accept(struct tbd_c_reader *r, const char *sign)
{
    size_t length = strlen(sign);

    (void)tbd_c_peek(r);
    if (r->end - r->at < length || strncmp(r->text + r->at, sign, length) != 0)
        return false;
    r->at += length;
    return true;
}

bool tbd_c_is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$';
}

static size_t plain_word(const char *s, size_t left)
{
    size_t length = 0;

    if (left == 0 || !tbd_c_is_name_start(*s))
        return 0;
    while (length < left &&
           (isalnum((unsigned char)s[length]) || s[length] == '_' || s[length] == '$'))
        length++;
    return length;
}

size_t tbd_c_name_here(struct tbd_c_reader *r)
{
    const char *s;
    size_t left, length = 0, word;

    (void)tbd_c_peek(r);
    s = r->text + r->at;
    left = r->end - r->at;
    if (left > 2 && s[0] == ':' && s[1] == ':')
        length = 2;
    word = plain_word(s + length, left - length);
    if (word == 0)
        return 0;
    length += word;
    while (left - length > 2 && s[length] == ':' && s[length + 1] == ':' &&
           (word = plain_word(s + length + 2, left - length - 2)) != 0)
        length += 2 + word;
    return length < TBD_C_NAME_BYTES ? length : 0;
}

/* The word here, "" if there is none. */
static size_t word_at(struct tbd_c_reader *r, char *out)
{
    size_t length = tbd_c_name_here(r);

    memcpy(out, r->text + r->at, length);
    out[length] = '\0';
    return length;
}

bool tbd_c_accept_word(struct tbd_c_reader *r, const char *word)
{
    char name[TBD_C_NAME_BYTES];
    size_t length = word_at(r, name);

    if (length == 0 || strcmp(name, word) != 0)
        return false;
    r->at += length;
    return true;
}

bool tbd_c_constant(const char *word, size_t length, struct tbd_type *type, uint64_t *out)
{
    static const struct {
        const char *word;
        uint64_t value;
        bool is_pointer;
    } constants[] = { { "true", 1, false }, { "false", 0, false }, { "nullptr", 0, true } };
    struct tbd_type nothing = tbd_type_made(0, 0);

    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (strlen(constants[i].word) != length || memcmp(constants[i].word, word, length) != 0)
            continue;
        *out = constants[i].value;
        *type = constants[i].is_pointer ? tbd_type_pointer_to(&nothing)
                                        : tbd_type_made(DW_ATE_boolean, 1);
        return true;
    }
    return false;
}

/* ---- types ---- */

static bool is_type_word(const char *word)
{
    static const char *const words[] = { "unsigned", "signed", "long", "short", "char", "int" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], word) == 0)
            return true;
    }
    return false;
}

/* "unsigned long int" -> "unsigned long" and the like. */
static bool read_basic(struct tbd_c_reader *r, struct tbd_type *out)
{
    char name[TBD_C_NAME_BYTES], word[TBD_C_NAME_BYTES];
    unsigned longs = 0, shorts = 0;
    bool is_unsigned = false, is_char = false, any = false;
    size_t length;

    while ((length = word_at(r, word)) != 0 && (is_type_word(word) || strcmp(word, "const") == 0)) {
        r->at += length;
        longs += strcmp(word, "long") == 0;
        shorts += strcmp(word, "short") == 0;
        is_unsigned |= strcmp(word, "unsigned") == 0;
        is_char |= strcmp(word, "char") == 0;
        any |= is_type_word(word);
    }
    if (!any)
        return false;
    snprintf(name, sizeof(name), "%s%s", is_unsigned ? "unsigned " : "",
             is_char       ? "char"
             : longs != 0  ? "long"
             : shorts != 0 ? "short"
                           : "int");
    return tbd_type_made_find(name, out);
}

static bool find_type(struct tbd_c_reader *r, const char *name, struct tbd_type *out)
{
    if (r->types != NULL && r->types->find != NULL && r->types->find(r->types->context, name, out))
        return true;
    return tbd_type_made_find(name, out);
}

/* `name<...>` up to the bracket that closes; 0 if there is none. */
static size_t template_here(const struct tbd_c_reader *r, size_t length)
{
    size_t depth = 0;

    for (size_t i = length; r->at + i < r->end; i++) {
        char c = r->text[r->at + i];

        depth += c == '<';
        if (c == '>' && --depth == 0)
            return i + 1;
        if (depth == 0)
            return 0;
    }
    return 0;
}

/* A struct, a typedef, an instance of a template, ... */
static bool read_named(struct tbd_c_reader *r, struct tbd_type *out)
{
    char word[TBD_C_NAME_BYTES], name[2 * TBD_C_NAME_BYTES + 2], second[TBD_C_NAME_BYTES];
    size_t length = word_at(r, word), whole;

    if (length == 0)
        return false;
    snprintf(name, sizeof(name), "%s", word);
    whole = template_here(r, length);
    if (whole != 0 && whole < sizeof(name)) {
        memcpy(name, r->text + r->at, whole);
        name[whole] = '\0';
        if (find_type(r, name, out)) {
            r->at += whole;
            return true;
        }
        snprintf(name, sizeof(name), "%s", word);
    }
    r->at += length;
    if (strcmp(word, "struct") == 0 || strcmp(word, "union") == 0 || strcmp(word, "enum") == 0 ||
        strcmp(word, "class") == 0) {
        r->at += word_at(r, second);
        snprintf(name, sizeof(name), "%s %s", word, second);
    }
    return find_type(r, name, out);
}

/* "[3]" after a type; nothing is read if it is not there. */
static bool read_length(struct tbd_c_reader *r, struct tbd_type *out)
{
    size_t start = r->at;
    uint64_t count = 0;

    if (out->made_count == 0 && tbd_c_accept(r, "[")) {
        for (; isdigit((unsigned char)tbd_c_peek(r)) && count < UINT32_MAX / 16; r->at++)
            count = count * 10 + (uint64_t)(r->text[r->at] - '0');
        if (count != 0 && tbd_c_accept(r, "]")) {
            *out = tbd_type_array_of(out, (uint32_t)count);
            return true;
        }
    }
    r->at = start;
    return false;
}

/* "(*)[3]" after a type: a pointer to an array. */
static void read_array_pointer(struct tbd_c_reader *r, struct tbd_type *out)
{
    struct tbd_type array = *out;
    size_t start = r->at;
    unsigned pointers = 0;

    if (tbd_c_accept(r, "(")) {
        while (tbd_c_accept(r, "*"))
            pointers++;
        if (pointers != 0 && tbd_c_accept(r, ")") && read_length(r, &array)) {
            for (; pointers > 0; pointers--)
                array = tbd_type_pointer_to(&array);
            *out = array;
            return;
        }
    }
    r->at = start;
}

bool tbd_c_read_type(struct tbd_c_reader *r, struct tbd_type *out)
{
    size_t start = r->at;

    while (tbd_c_accept_word(r, "const") || tbd_c_accept_word(r, "volatile"))
        ;
    if (!read_basic(r, out) && !read_named(r, out)) {
        r->at = start;
        return false;
    }
    while (tbd_c_accept_word(r, "const") || tbd_c_accept_word(r, "volatile") ||
           tbd_c_accept(r, "*")) {
        if (r->text[r->at - 1] == '*')
            *out = tbd_type_pointer_to(out);
    }
    read_array_pointer(r, out);
    if (out->die.addr ==
        NULL) /* the name of another type may be a variable's, too: an element of it */
        (void)read_length(r, out);
    return true;
}

enum tbd_status tbd_c_parse_type(const struct tbd_c_types *types, const char *text,
                                 struct tbd_type *out)
{
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_c_reader r = { .types = types, .text = text, .end = strlen(text), .error = &error };

    return tbd_c_read_type(&r, out) && tbd_c_peek(&r) == '\0' ? TBD_OK : TBD_NAME;
}
