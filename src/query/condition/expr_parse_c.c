// SPDX-License-Identifier: MIT
/* expr_parse_c.c - the program's own variables in conditions, as C writes them
 *
 *   variable := name { "." name | "->" name | "[" or "]" }     cast   := "(" type ")" unary
 *   place    := "*" unary | "&" unary                           sizeof := "sizeof" "(" type ")" | ...
 *
 * A word may hold dots ("list.head"), because symbols may: it is cut here. The language's own names
 * come first; var(NAME) is always a variable. The meaning of the names depends on the place;
 * expr_lower.c finds it. */
#include "query/condition/expr_nodes.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define NONE TBD_PARSER_NONE
#define FAIL TBD_PARSER_FAIL

#define REGEX_MAX 256u

/* ---- nodes ---- */

/* A node with its own text. */
static int32_t add_named(struct tbd_parser *p, const struct tbd_token *token, enum tbd_expr_op op,
                         int32_t left, const char *text, size_t bytes)
{
    struct tbd_expr_node node = tbd_parser_leaf(token, op);
    int32_t slot = tbd_parser_add_symbol(p, strndup(text, bytes));

    if (slot == NONE)
        return NONE;
    node.left = left;
    node.which = (uint32_t)slot;
    node.is_typed = 1;
    p->expr->uses |= TBD_USES_TYPES;
    return tbd_parser_add(p, &node);
}

static int32_t add_typed(struct tbd_parser *p, const struct tbd_token *token, enum tbd_expr_op op,
                         int32_t left, int32_t right)
{
    struct tbd_expr_node node = tbd_parser_leaf(token, op);

    if (left == NONE || (right == NONE && op == TBD_EXPR_INDEX))
        return NONE;
    node.left = left;
    node.right = right;
    node.is_typed = 1;
    p->expr->uses |= TBD_USES_TYPES;
    return tbd_parser_add(p, &node);
}

/* The value at a constant address, cast to its type. */
int32_t tbd_parser_stand_in(struct tbd_parser *p, const struct tbd_expr_stand_in *value)
{
    struct tbd_token word = p->lexer.token;
    struct tbd_expr_node node =
        tbd_parser_leaf(&word, value->is_number ? TBD_EXPR_NUMBER : TBD_EXPR_MEMORY);
    int32_t index;

    node.is_real = value->is_real;
    if (value->is_number) {
        node.value = value->number;
        index = tbd_parser_add(p, &node);
    } else {
        node.left = tbd_parser_number(p, &word, value->address);
        if (node.left == NONE)
            return NONE;
        node.value = value->bytes;
        node.is_after = value->is_after;
        index = tbd_parser_add_memory(p, &node);
    }
    if (index != NONE && value->type[0] != '\0')
        index = add_named(p, &word, TBD_EXPR_CAST, index, value->type, strlen(value->type));
    tbd_parser_next(p);
    return index;
}

/* ---- members ---- */

/* ".a.b" or "a.b" of the current word as members of `value`; the first one by -> if `arrow`. */
static int32_t add_members(struct tbd_parser *p, int32_t value, const char *text, size_t bytes,
                           bool arrow)
{
    struct tbd_token token = p->lexer.token;

    while (bytes != 0 && value != NONE) {
        size_t length;

        if (*text == '.') {
            text++;
            bytes--;
        }
        length = bytes == 0 ? 0 : strcspn(text, ".");
        length = length > bytes ? bytes : length;
        token.at = (size_t)(text - p->lexer.source);
        token.length = length;
        if (length == 0) {
            p->lexer.token = token;
            return FAIL(p, TBD_SYNTAX, NULL, "expected the name of a member");
        }
        value = add_named(p, &token, TBD_EXPR_MEMBER, value, text, length);
        if (value != NONE)
            p->expr->nodes[value].value = arrow;
        arrow = false;
        text += length;
        bytes -= length;
    }
    return value;
}

static int32_t parse_arrow(struct tbd_parser *p, int32_t value)
{
    const struct tbd_token *token = &p->lexer.token;

    tbd_parser_next(p);
    if (token->kind != TBD_TOKEN_WORD || token->text[0] == '.')
        return FAIL(p, TBD_SYNTAX, NULL, "expected the name of a member after '->'");
    value = add_members(p, value, token->text, token->length, true);
    tbd_parser_next(p);
    return value;
}

static int32_t parse_index(struct tbd_parser *p, int32_t value)
{
    struct tbd_token token = p->lexer.token;
    int32_t index;

    tbd_parser_next(p);
    index = tbd_parser_or(p);
    if (index == NONE || !tbd_parser_expect(p, ']', "after the index"))
        return NONE;
    return add_typed(p, &token, TBD_EXPR_INDEX, value, index);
}

int32_t tbd_parser_postfix(struct tbd_parser *p, int32_t value)
{
    const struct tbd_token *token = &p->lexer.token;

    while (value != NONE) {
        if (tbd_token_is_sign(token, TBD_SIGN('-', '>'))) {
            value = parse_arrow(p, value);
        } else if (tbd_token_is_sign(token, '[')) {
            value = parse_index(p, value);
        } else if (token->kind == TBD_TOKEN_WORD && token->text[0] == '.') {
            value = add_members(p, value, token->text, token->length, false);
            tbd_parser_next(p);
        } else {
            break;
        }
    }
    return value;
}

/* ---- variables ---- */

static int32_t word_variable(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;
    size_t name = strcspn(token.text + 1, ".") + 1;
    int32_t value;

    if (name > token.length)
        name = token.length;
    if (token.text[0] == '.' || token.text[0] == '@')
        return FAIL(p, TBD_SYNTAX, NULL, "expected a value, found '%.*s'", (int)token.length,
                    token.text);
    if (memchr(token.text, '!', token.length) != NULL)
        return FAIL(p, TBD_SYNTAX, "the address of a module's symbol is written &module!NAME",
                    "a variable is named without its module");
    token.length = name;
    value = add_named(p, &token, TBD_EXPR_VARIABLE, NONE, token.text, name);
    if (value != NONE && p->lexer.token.length > name)
        value = add_members(p, value, token.text + name, p->lexer.token.length - name, false);
    tbd_parser_next(p);
    return value;
}

int32_t tbd_parser_variable(struct tbd_parser *p)
{
    const struct tbd_token *token = &p->lexer.token;
    const char *s = p->lexer.source + p->lexer.at;
    int32_t value;

    if (tbd_token_is_word(token, "and") || tbd_token_is_word(token, "or"))
        return FAIL(p, TBD_SYNTAX, NULL, "a value is missing before '%.*s'", (int)token->length,
                    token->text);
    if (tbd_token_is_word(token, "not"))
        return FAIL(p, TBD_SYNTAX, "'not' stands before a whole comparison, or use !",
                    "'not' is not expected here");
    if (!tbd_token_is_word(token, "var") || s[strspn(s, " ")] != '(') {
        value = word_variable(p);
    } else {
        tbd_parser_next(p);
        tbd_parser_next(p);
        if (token->kind != TBD_TOKEN_WORD)
            return FAIL(p, TBD_SYNTAX, NULL, "var(NAME) takes the name of a variable");
        value = word_variable(p);
        if (value == NONE || !tbd_parser_expect(p, ')', "after var(NAME"))
            return NONE;
    }
    return tbd_parser_postfix(p, value);
}

bool tbd_parser_is_place(const struct tbd_parser *p)
{
    const struct tbd_token *word = &p->lexer.token;
    const char *dot = memchr(word->text, '.', word->length);
    const char *next = p->lexer.source + p->lexer.at;

    if (dot != NULL && dot != word->text && dot + 1 < word->text + word->length)
        return !(dot[1] >= '0' && dot[1] <= '9'); /* counter.0 is a symbol */
    next += strspn(next, " \t");
    return *next == '[' || (next[0] == '-' && next[1] == '>');
}

int32_t tbd_parser_address(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;

    if (token.kind != TBD_TOKEN_WORD && !tbd_token_is_sign(&token, '('))
        return FAIL(p, TBD_SYNTAX, "for example &counter or &libc!stdout",
                    "expected a symbol after '&'");
    return add_typed(p, &token, TBD_EXPR_ADDRESS, tbd_parser_unary(p), NONE);
}

int32_t tbd_parser_deref(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;

    tbd_parser_next(p);
    return add_typed(p, &token, TBD_EXPR_DEREF, tbd_parser_unary(p), NONE);
}

/* ---- types ---- */

static bool is_type_word(const struct tbd_token *token)
{
    static const char *const words[] = {
        "unsigned", "signed", "long", "short", "char",  "int",   "float", "double",
        "struct",   "union",  "enum", "class", "const", "_Bool", "bool",  "void",
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (tbd_token_is_word(token, words[i]))
            return true;
    }
    return false;
}

static bool starts_value(const struct tbd_token *token)
{
    if (token->kind == TBD_TOKEN_WORD)
        return !tbd_token_is_word(token, "and") && !tbd_token_is_word(token, "or") &&
               token->text[0] != '.';
    return token->kind == TBD_TOKEN_NUMBER || token->kind == TBD_TOKEN_REAL ||
           tbd_token_is_sign(token, '(');
}

/* The lexer is at '('. Takes "(TYPE)" and stops after it; `out` is the text of the type. A single
 * unknown word is a type if a value follows it, or a '*' and ')'. */
static bool take_type(struct tbd_lexer *lexer, bool needs_value, struct tbd_token *out)
{
    bool is_sure, has_star = false;
    unsigned words = 0;

    tbd_lexer_next(lexer);
    *out = lexer->token;
    is_sure = is_type_word(&lexer->token);
    while (lexer->token.kind == TBD_TOKEN_WORD && !has_star) {
        if (words++ != 0 && !is_sure)
            return false;
        tbd_lexer_next(lexer);
    }
    while (words != 0 &&
           (tbd_token_is_sign(&lexer->token, '*') || tbd_token_is_word(&lexer->token, "const"))) {
        has_star = true;
        tbd_lexer_next(lexer);
    }
    if (words == 0 || !tbd_token_is_sign(&lexer->token, ')'))
        return false;
    out->length = lexer->token.at - out->at;
    tbd_lexer_next(lexer);
    return is_sure || has_star || !needs_value || starts_value(&lexer->token);
}

/* take_type(), but restores the lexer if it is no type. */
static bool try_type(struct tbd_parser *p, bool needs_value, struct tbd_token *out)
{
    struct tbd_query_error unused = { 0 };
    struct tbd_lexer ahead = p->lexer;

    ahead.error = &unused;
    if (!take_type(&ahead, needs_value, out))
        return false;
    ahead.error = p->lexer.error;
    p->lexer = ahead;
    if (unused.status != TBD_OK)
        *p->lexer.error = unused;
    return true;
}

int32_t tbd_parser_cast(struct tbd_parser *p, bool *is_cast)
{
    struct tbd_token type;
    int32_t value;

    *is_cast = try_type(p, true, &type);
    if (!*is_cast)
        return NONE;
    value = tbd_parser_unary(p);
    return value == NONE
               ? NONE
               : add_named(p, &type, TBD_EXPR_CAST, value, p->lexer.source + type.at, type.length);
}

int32_t tbd_parser_sizeof(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;
    struct tbd_token type;

    tbd_parser_next(p);
    if (tbd_token_is_sign(&p->lexer.token, '(')) {
        struct tbd_lexer ahead = p->lexer;
        struct tbd_query_error unused = { 0 };

        ahead.error = &unused;
        tbd_lexer_next(&ahead);
        if (is_type_word(&ahead.token) && try_type(p, false, &type))
            return add_named(p, &type, TBD_EXPR_SIZEOF, NONE, p->lexer.source + type.at,
                             type.length);
    }
    return add_typed(p, &token, TBD_EXPR_SIZEOF, tbd_parser_unary(p), NONE);
}

/* ---- strings ---- */

/* Without quotes and with escapes resolved. */
static char *unescape(const char *text, size_t bytes)
{
    static const char from[] = "ntr\\\"", to[] = "\n\t\r\\\"";
    char *out = calloc(bytes + 1, 1);
    size_t used = 0;

    for (size_t i = 0; out != NULL && i < bytes; i++) {
        const char *found = text[i] == '\\' && i + 1 < bytes ? strchr(from, text[i + 1]) : NULL;

        out[used++] = found == NULL ? text[i] : to[found - from];
        i += found != NULL;
    }
    return out;
}

int32_t tbd_parser_string(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;
    char *text = unescape(token.text, token.length - 2);
    int32_t value = NONE;

    if (text == NULL)
        return tbd_parser_out_of_memory(p);
    value = add_named(p, &token, TBD_EXPR_STRING, NONE, text, strlen(text));
    free(text);
    tbd_parser_next(p);
    return value;
}

int32_t tbd_parser_like(struct tbd_parser *p, const struct tbd_token *sign, int32_t left)
{
    struct tbd_expr *expr = p->expr;
    struct tbd_token token = p->lexer.token;
    struct tbd_expr_node node = tbd_parser_leaf(sign, TBD_EXPR_LIKE);
    char *text;
    int wrong;

    if (token.kind != TBD_TOKEN_STRING)
        return FAIL(p, TBD_TYPE, "for example name =~ \"^tmp\"",
                    "expected a regular expression in quotes");
    /* bounds the text: a{99}{99}{99} would take all memory */
    if (token.length > REGEX_MAX ||
        memchr(token.text, '{', token.length - 2) != memrchr(token.text, '{', token.length - 2))
        return FAIL(p, TBD_SYNTAX, NULL, "the regular expression is too long or repeats too much");
    text = strndup(token.text, token.length - 2);
    if (text == NULL ||
        !tbd_array_double(&expr->regexes, expr->regex_count, sizeof(*expr->regexes))) {
        free(text);
        return tbd_parser_out_of_memory(p);
    }
    wrong = regcomp(&expr->regexes[expr->regex_count].compiled, text, REG_EXTENDED | REG_NOSUB);
    if (wrong != 0) {
        free(text);
        return FAIL(p, TBD_SYNTAX, "extended regular expressions, as in grep -E",
                    "this is not a regular expression");
    }
    expr->regexes[expr->regex_count].text = text;
    node.which = expr->regex_count++;
    node.left = left;
    node.is_typed = 1;
    node.is_boolean = 1;
    expr->uses |= TBD_USES_TYPES;
    tbd_parser_next(p);
    return tbd_parser_add(p, &node);
}

/* ---- source lines ---- */

int32_t tbd_parser_src(struct tbd_parser *p)
{
    struct tbd_lexer *lexer = &p->lexer;
    struct tbd_expr_node node = tbd_parser_leaf(&lexer->token, TBD_EXPR_FUNCTION);
    const char *s = lexer->source + lexer->at;
    size_t file, line;
    char *name;
    int32_t index;

    s += strspn(s, " =");
    file = *s == '<' ? strcspn(s + 1, ",> ") : 0;
    line = file == 0 ? 0 : strspn(s + 1 + file, ", ");
    line = line == 0 ? 0 : strspn(s + 1 + file + line, "0123456789");
    lexer->token.length = (size_t)(s - lexer->source) - lexer->token.at + 1;
    if (file == 0 || strchr(s, '>') == NULL || file > 200 || line > 9)
        return FAIL(p, TBD_SYNTAX, "for example src=<list.c,12> or src=<list.c>",
                    "expected a file and a line: src=<FILE,LINE>");
    name = calloc(file + line + 2, 1);
    if (name == NULL)
        return tbd_parser_out_of_memory(p);
    strncat(name, s + 1, file);
    if (line != 0) {
        strcat(name, ":");
        strncat(name, s + 1 + file + strspn(s + 1 + file, ", "), line);
    }
    file += line == 0 ? strspn(s + 1 + file, ", ") : strspn(s + 1 + file, ", ") + line;
    file += strspn(s + 1 + file, " ");
    lexer->token = (struct tbd_token){
        .kind = TBD_TOKEN_STRING, .text = s, .at = (size_t)(s - lexer->source), .length = file + 2
    };
    index = tbd_parser_add_name(p, name, TBD_NAME_SOURCE, &lexer->token);
    if (index == NONE)
        return NONE;
    if (s[1 + file] != '>')
        return FAIL(p, TBD_SYNTAX, "for example src=<list.c,12>", "'>' is missing");
    node.which = (uint32_t)index;
    node.is_boolean = 1;
    lexer->at = (size_t)(s - lexer->source) + file + 2;
    tbd_parser_next(p);
    return tbd_parser_add(p, &node);
}
