// SPDX-License-Identifier: MIT
/* c_parse.c - recursive descent over C expressions
 *
 * C_PARSE-1  Depth is bounded by DEPTH_MAX, nodes by TBD_C_NODES_MAX; every step consumes text.
 * C_PARSE-2  A node's operands have smaller indices than itself: trees have no cycles. */
#include "query/values/c_parse_private.h"

#include "base/assert.h"
#include "query/values/cxx_cast.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64

static bool read_choice(struct tbd_c_reader *r, int32_t *out);
static bool read_unary(struct tbd_c_reader *r, int32_t *out);

static bool wrong(struct tbd_c_reader *r, size_t at, size_t length, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static bool wrong(struct tbd_c_reader *r, size_t at, size_t length, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)tbd_query_wrong_list(r->error, TBD_SYNTAX, at, length, format, args);
    va_end(args);
    return false;
}

static bool expect(struct tbd_c_reader *r, const char *sign)
{
    return tbd_c_accept(r, sign) || wrong(r, r->at, 1, "expected '%s' here", sign);
}

/* ---- nodes ---- */

static bool add(struct tbd_c_reader *r, struct tbd_c_node node, int32_t *out)
{
    struct tbd_c_tree *tree = r->tree;

    if (tree->count >= TBD_C_NODES_MAX)
        return wrong(r, node.at, node.length, "the expression is too long");
    TBD_INVARIANT("C_PARSE-2", node.left < (int32_t)tree->count &&
                                   node.right < (int32_t)tree->count &&
                                   node.third < (int32_t)tree->count);
    tree->nodes[tree->count] = node;
    *out = (int32_t)tree->count++;
    return true;
}

static struct tbd_c_node node_of(enum tbd_c_op op, int32_t left, int32_t right, size_t at,
                                 size_t length)
{
    return (struct tbd_c_node){
        .op = op, .left = left, .right = right, .third = -1, .at = at, .length = length
    };
}

static bool add_number(struct tbd_c_reader *r, size_t at, uint64_t value,
                       const struct tbd_type *type, int32_t *out)
{
    struct tbd_c_node node = node_of(TBD_C_NUMBER, -1, -1, at, r->at - at);

    node.number = value;
    node.type = *type;
    return add(r, node, out);
}

/* ---- primary expressions ---- */

/* The type that C gives a number with this suffix. */
static struct tbd_type literal_type(uint64_t value, bool has_base, const char *suffix)
{
    size_t letters = strspn(suffix, "uUlL"), us = strcspn(suffix, "uU"), ls = strcspn(suffix, "lL");
    bool is_unsigned = us < letters, is_long = ls < letters || value > UINT32_MAX;

    if (!is_long && !is_unsigned && value > INT32_MAX) { /* 0x80000000 is an unsigned int */
        is_unsigned = has_base;
        is_long = !has_base;
    }
    return tbd_type_made(is_unsigned || value > INT64_MAX ? DW_ATE_unsigned : DW_ATE_signed,
                         is_long ? 8 : 4);
}

static bool read_number(struct tbd_c_reader *r, int32_t *out)
{
    const char *s = r->text + r->at;
    size_t start = r->at;
    char *rest;
    unsigned long long value = strtoull(s, &rest, 0);
    struct tbd_c_node node = node_of(TBD_C_REAL, -1, -1, start, 1);
    struct tbd_type type;

    if (*rest == '.' || ((*rest == 'e' || *rest == 'E') && s[1] != 'x' && s[1] != 'X')) {
        node.real = strtod(s, &rest);
        if (*rest == 'f' || *rest == 'F') {
            node.real = (float)node.real;
            node.number = 1; /* a float of 4 bytes */
            rest++;
        }
        r->at = (size_t)(rest - r->text);
        return r->at <= r->end ? add(r, node, out) : wrong(r, start, 1, "not a number");
    }
    type = literal_type(value, s[0] == '0', rest);
    rest += strspn(rest, "uUlL");
    if (tbd_c_is_name_start(*rest) && (size_t)(rest - r->text) < r->end)
        return wrong(r, start, (size_t)(rest - s) + 1, "not a number");
    r->at = (size_t)(rest - r->text);
    if (r->at > r->end)
        return wrong(r, start, 1, "not a number");
    return add_number(r, start, value, &type, out);
}

static const char escapes_from[] = "ntr0\\'\"abfv", escapes_to[] = "\n\t\r\0\\'\"\a\b\f\v";

static bool read_character(struct tbd_c_reader *r, int32_t *out)
{
    struct tbd_type type = tbd_type_made(DW_ATE_signed_char, 1);
    const char *s = r->text + r->at;
    size_t start = r->at, left = r->end - r->at;
    const char *found;

    if (left >= 3 && s[1] != '\\' && s[2] == '\'') {
        r->at += 3;
        return add_number(r, start, (uint64_t)(int64_t)(signed char)s[1], &type, out);
    }
    if (left >= 4 && s[1] == '\\' && s[3] == '\'' && s[2] != '\0' &&
        (found = strchr(escapes_from, s[2])) != NULL) {
        r->at += 4;
        return add_number(r, start, (uint64_t)(unsigned char)escapes_to[found - escapes_from],
                          &type, out);
    }
    return wrong(r, r->at, 1, "not a character");
}

static bool read_string(struct tbd_c_reader *r, int32_t *out)
{
    size_t start = ++r->at;
    struct tbd_c_node node;

    while (r->at < r->end && r->text[r->at] != '"')
        r->at += r->text[r->at] == '\\' && r->at + 1 < r->end ? 2 : 1;
    if (r->at >= r->end)
        return wrong(r, start - 1, 1, "the string does not end");
    node = node_of(TBD_C_STRING, -1, -1, start, r->at - start);
    r->at++;
    return add(r, node, out);
}

size_t tbd_c_unescape(const char *text, size_t length, char *out, size_t bytes)
{
    size_t used = 0;

    for (size_t i = 0; i < length && used < bytes; i++) {
        const char *found = NULL;

        if (text[i] == '\\' && i + 1 < length && text[i + 1] != '\0')
            found = strchr(escapes_from, text[++i]);
        out[used++] = found != NULL ? escapes_to[found - escapes_from] : text[i];
    }
    return used;
}

/* The length of a type's name after `struct` and the like, 0 if none stands here: the reader of a
 * value has looked for a type before. */
static size_t unknown_type(const struct tbd_c_reader *r, size_t length)
{
    static const char *const tags[] = { "struct", "union", "class", "enum" };
    struct tbd_c_reader rest = *r;

    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        if (strlen(tags[i]) != length || strncmp(r->text + r->at, tags[i], length) != 0)
            continue;
        rest.at += length;
        (void)tbd_c_peek(&rest);
        length = tbd_c_name_here(&rest);
        return length == 0 ? 0 : rest.at + length - r->at;
    }
    return 0;
}

static bool read_name(struct tbd_c_reader *r, int32_t *out)
{
    size_t length = tbd_c_name_here(r), start = r->at, type = unknown_type(r, length);

    if (type != 0)
        return wrong(r, start, type, "there is no type '%.*s' here", (int)(type < 100 ? type : 100),
                     r->text + start);

    if (length == 0)
        return wrong(r, r->at, 1,
                     r->at >= r->end ? "the expression ends too early" : "expected a value");
    r->at += length;
    return add(r,
               node_of(r->text[start] == '$' ? TBD_C_REGISTER : TBD_C_NAME, -1, -1, start, length),
               out);
}

static bool read_primary(struct tbd_c_reader *r, int32_t *out)
{
    char c = tbd_c_peek(r);

    if (tbd_c_accept(r, "("))
        return read_choice(r, out) && expect(r, ")");
    if (isdigit((unsigned char)c))
        return read_number(r, out);
    if (c == '"')
        return read_string(r, out);
    return c == '\'' ? read_character(r, out) : read_name(r, out);
}

/* ---- postfix and unary operators ---- */

static bool read_member(struct tbd_c_reader *r, enum tbd_c_op op, size_t sign, int32_t *out)
{
    size_t length = tbd_c_name_here(r);
    struct tbd_c_node node = node_of(op, *out, -1, r->at, length);

    if (length == 0)
        return wrong(r, r->at, 1, "expected the name of a member");
    node.number = sign;
    r->at += length;
    return add(r, node, out);
}

static bool read_index(struct tbd_c_reader *r, size_t at, int32_t *out)
{
    int32_t index;

    return read_choice(r, &index) && expect(r, "]") &&
           add(r, node_of(TBD_C_INDEX, *out, index, at, 1), out);
}

/* "x.size()", "x->at(3)": the evaluation decides which functions may be called. */
static bool read_call(struct tbd_c_reader *r, size_t at, int32_t *out)
{
    enum tbd_c_op op = r->tree->nodes[*out].op;
    int32_t argument = -1;

    if (op != TBD_C_MEMBER && op != TBD_C_ARROW)
        return wrong(r, at, 1, "functions of the program are not called");
    return (tbd_c_accept(r, ")") || (read_choice(r, &argument) && expect(r, ")"))) &&
           add(r, node_of(TBD_C_CALL, *out, argument, at, 1), out);
}

static bool read_postfix(struct tbd_c_reader *r, int32_t *out)
{
    bool good = true;

    while (good) {
        char c = tbd_c_peek(r);
        size_t at = r->at;

        if (tbd_c_accept(r, "->"))
            good = read_member(r, TBD_C_ARROW, at, out);
        else if (tbd_c_accept(r, "["))
            good = read_index(r, at, out);
        else if (tbd_c_accept(r, "("))
            good = read_call(r, at, out);
        else if (c == '.' && tbd_c_accept(r, "."))
            good = read_member(r, TBD_C_MEMBER, at, out);
        else
            break;
    }
    return good;
}

static bool read_sizeof(struct tbd_c_reader *r, size_t at, int32_t *out)
{
    struct tbd_type result = tbd_type_made(DW_ATE_unsigned, 8), type;
    size_t start = r->at;
    int32_t of;

    if (tbd_c_accept(r, "(") && tbd_c_read_type(r, &type) && tbd_c_accept(r, ")"))
        return add_number(r, at, tbd_type_look(&type).bytes, &result, out);
    r->at = start;
    return read_unary(r, &of) && add(r, node_of(TBD_C_SIZEOF, of, -1, at, 6), out);
}

/* Can the text here only follow a value?  A variable may have the name of a type: "(tally).sum". */
static bool continues_value(struct tbd_c_reader *r)
{
    char c = tbd_c_peek(r);

    return c == '.' || c == '[' || (c == '-' && r->end - r->at > 1 && r->text[r->at + 1] == '>');
}

/* "(TYPE) value"; *is_cast false: the text here is no cast. */
static bool read_cast(struct tbd_c_reader *r, int32_t *out, bool *is_cast)
{
    size_t start = r->at;
    struct tbd_c_node node;
    struct tbd_type type;
    int32_t of;

    *is_cast = tbd_c_accept(r, "(") && tbd_c_read_type(r, &type) && tbd_c_accept(r, ")") &&
               !continues_value(r);
    if (!*is_cast) {
        r->at = start;
        return true;
    }
    if (!read_unary(r, &of))
        return false;
    node = node_of(TBD_C_CAST, of, -1, start, 1);
    node.type = type;
    return add(r, node, out);
}

/* "static_cast<TYPE>(value)" and its kin, the word read. */
static bool read_word_cast(struct tbd_c_reader *r, size_t at, enum tbd_cast_kind kind, int32_t *out)
{
    struct tbd_c_node node;
    struct tbd_type type;
    int32_t of;

    if (!expect(r, "<"))
        return false;
    if (!tbd_c_read_type(r, &type))
        return wrong(r, r->at, 1, "there is no such type");
    if (!expect(r, ">") || !expect(r, "(") || !read_choice(r, &of) || !expect(r, ")"))
        return false;
    node = node_of(TBD_C_CAST, of, -1, at, 1);
    node.type = type;
    node.number = kind;
    return add(r, node, out) && read_postfix(r, out);
}

static const struct {
    const char *word;
    enum tbd_cast_kind kind;
} word_casts[] = {
    { "static_cast", TBD_CAST_C },
    { "const_cast", TBD_CAST_C },
    { "reinterpret_cast", TBD_CAST_REINTERPRET },
    { "dynamic_cast", TBD_CAST_DYNAMIC },
};

static enum tbd_c_op prefix_of(char c)
{
    switch (c) {
    case '*': return TBD_C_DEREF;
    case '&': return TBD_C_ADDRESS;
    case '-': return TBD_C_MINUS_SIGN;
    case '+': return TBD_C_PLUS_SIGN;
    case '!': return TBD_C_NOT;
    default: return TBD_C_COMPLEMENT;
    }
}

static bool read_prefix(struct tbd_c_reader *r, int32_t *out)
{
    bool is_cast;
    char c = tbd_c_peek(r);
    size_t at = r->at;

    if (c != '\0' && strchr("*&-+!~", c) != NULL) {
        int32_t of;

        r->at++;
        return read_unary(r, &of) && add(r, node_of(prefix_of(c), of, -1, at, 1), out);
    }
    if (tbd_c_accept_word(r, "sizeof"))
        return read_sizeof(r, at, out);
    for (size_t i = 0; i < sizeof(word_casts) / sizeof(word_casts[0]); i++) {
        if (tbd_c_accept_word(r, word_casts[i].word))
            return read_word_cast(r, at, word_casts[i].kind, out);
    }
    if (!read_cast(r, out, &is_cast))
        return false;
    return is_cast || (read_primary(r, out) && read_postfix(r, out));
}

static bool read_unary(struct tbd_c_reader *r, int32_t *out)
{
    bool good;

    if (r->depth >= DEPTH_MAX)
        return wrong(r, r->at, 1, "the expression is nested too deeply");
    r->depth++;
    good = read_prefix(r, out);
    TBD_INVARIANT("C_PARSE-1", r->depth <= DEPTH_MAX && r->tree->count <= TBD_C_NODES_MAX);
    r->depth--;
    return good;
}

/* ---- binary operators ---- */

static const struct {
    const char *sign;
    enum tbd_c_op op;
    unsigned level;
} operators[] = {
    { "||", TBD_C_OR_ELSE, 0 },    { "&&", TBD_C_AND_THEN, 1 }, { "==", TBD_C_EQUAL, 5 },
    { "!=", TBD_C_UNEQUAL, 5 },    { "<<", TBD_C_LEFT, 7 },     { ">>", TBD_C_RIGHT, 7 },
    { "<=", TBD_C_LESS_EQUAL, 6 }, { "<", TBD_C_LESS, 6 },      { ">=", TBD_C_GREATER_EQUAL, 6 },
    { ">", TBD_C_GREATER, 6 },     { "|", TBD_C_BIT_OR, 2 },    { "^", TBD_C_BIT_XOR, 3 },
    { "&", TBD_C_BIT_AND, 4 },     { "+", TBD_C_PLUS, 8 },      { "-", TBD_C_MINUS, 8 },
    { "*", TBD_C_TIMES, 9 },       { "/", TBD_C_DIVIDED, 9 },   { "%", TBD_C_MODULO, 9 },
};
#define OPERATORS   (sizeof(operators) / sizeof(operators[0]))
#define LEVEL_UNARY 10u

/* The operator here, -1 if there is none; longer signs come first in the table. */
static int operator_here(struct tbd_c_reader *r)
{
    (void)tbd_c_peek(r);
    for (size_t i = 0; i < OPERATORS; i++) {
        size_t length = strlen(operators[i].sign);

        if (r->end - r->at >= length && strncmp(r->text + r->at, operators[i].sign, length) == 0)
            return (int)i;
    }
    return -1;
}

static bool read_binary(struct tbd_c_reader *r, unsigned level, int32_t *out)
{
    int32_t right;
    int found;

    if (level == LEVEL_UNARY)
        return read_unary(r, out);
    if (!read_binary(r, level + 1, out))
        return false;
    while ((found = operator_here(r)) >= 0 && operators[found].level == level) {
        size_t at = r->at, length = strlen(operators[found].sign);

        r->at += length;
        if (!read_binary(r, level + 1, &right) ||
            !add(r, node_of(operators[found].op, *out, right, at, length), out))
            return false;
    }
    return true;
}

/* Depth counts here too: `a ? b : c ? d : e` recurs without brackets. */
static bool read_choice(struct tbd_c_reader *r, int32_t *out)
{
    struct tbd_c_node node;
    size_t at;

    if (r->depth >= DEPTH_MAX)
        return wrong(r, r->at, 1, "the expression is nested too deeply");
    if (!read_binary(r, 0, out))
        return false;
    (void)tbd_c_peek(r);
    at = r->at;
    if (!tbd_c_accept(r, "?"))
        return true;
    node = node_of(TBD_C_CHOICE, *out, -1, at, 1);
    r->depth++;
    if (!read_choice(r, &node.right) || !expect(r, ":") || !read_choice(r, &node.third))
        return false;
    r->depth--;
    return add(r, node, out);
}

enum tbd_status tbd_c_parse(const struct tbd_c_types *types, const char *text, size_t from,
                            size_t to, struct tbd_c_tree *out, struct tbd_query_error *error)
{
    struct tbd_c_reader r = {
        .types = types, .text = text, .at = from, .end = to, .tree = out, .error = error
    };

    *error = (struct tbd_query_error){ .status = TBD_OK };
    *out = (struct tbd_c_tree){ .nodes = calloc(TBD_C_NODES_MAX, sizeof(*out->nodes)), .root = -1 };
    if (out->nodes == NULL) {
        error->status = TBD_NOMEM;
        return TBD_NOMEM;
    }
    if (read_choice(&r, &out->root) && tbd_c_peek(&r) != '\0')
        (void)wrong(&r, r.at, 1, "'%c' is not expected here", text[r.at]);
    if (error->status != TBD_OK)
        tbd_c_tree_free(out);
    return error->status;
}

void tbd_c_tree_free(struct tbd_c_tree *tree)
{
    free(tree->nodes);
    *tree = (struct tbd_c_tree){ .root = -1 };
}
