// SPDX-License-Identifier: MIT
/* expr_parse_stack.c - stack=<...>: patterns for the call stack */
#include "query/condition/expr_nodes.h"

#include "base/array.h"

#include <string.h>

#define NONE TBD_PARSER_NONE
#define FAIL TBD_PARSER_FAIL

static bool add_item(struct tbd_parser *p, struct tbd_expr_pattern *pattern, int32_t item)
{
    if (!tbd_array_double(&pattern->items, pattern->count, sizeof(*pattern->items))) {
        (void)tbd_parser_out_of_memory(p);
        return false;
    }
    pattern->items[pattern->count++] = item;
    return true;
}

/* One item of a pattern, read from the raw text: a name may hold any character but , > and blanks.
 */
static bool parse_item(struct tbd_parser *p, struct tbd_expr_pattern *pattern)
{
    struct tbd_lexer *lexer = &p->lexer;
    const char *s;
    size_t n = 0;
    int32_t index;

    while (lexer->source[lexer->at] == ' ')
        lexer->at++;
    s = lexer->source + lexer->at;
    lexer->token = (struct tbd_token){ .kind = TBD_TOKEN_STRING, .at = lexer->at, .text = s };
    if (*s == '"')
        n = strcspn(s + 1, "\"") + 1;
    n = *s == '"' ? n + (s[n] == '"') : strcspn(s, ",> \t");
    lexer->token.length = n;
    lexer->at += n;
    if (n == 0 || (*s == '"' && n < 3))
        return FAIL(p, TBD_SYNTAX, "for example stack=<**,main,*,strlen>; the innermost is last",
                    "expected a function name, * or **") != NONE;
    if (n == 1 && s[0] == '*')
        return add_item(p, pattern, TBD_PATTERN_ONE);
    if (n == 2 && s[0] == '*' && s[1] == '*')
        return add_item(p, pattern, TBD_PATTERN_RUN);
    index = tbd_parser_add_name(p, *s == '"' ? strndup(s + 1, n - 2) : strndup(s, n),
                                TBD_NAME_FRAME, &lexer->token);
    return index != NONE && add_item(p, pattern, index);
}

static bool parse_items(struct tbd_parser *p, struct tbd_expr_pattern *pattern)
{
    struct tbd_lexer *lexer = &p->lexer;

    for (;;) {
        if (!parse_item(p, pattern))
            return false;
        while (lexer->source[lexer->at] == ' ')
            lexer->at++;
        if (lexer->source[lexer->at] == '>')
            break;
        if (lexer->source[lexer->at] != ',') {
            lexer->token = (struct tbd_token){ .at = lexer->at, .length = 1 };
            return FAIL(p, TBD_SYNTAX, NULL, "expected ',' or '>' in the stack pattern") != NONE;
        }
        lexer->at++;
    }
    lexer->at++;
    tbd_parser_next(p);
    return true;
}

/* The current token is the word "stack"; what follows is raw text. */
int32_t tbd_parser_stack(struct tbd_parser *p)
{
    struct tbd_lexer *lexer = &p->lexer;
    struct tbd_expr *expr = p->expr;
    struct tbd_expr_node node = tbd_parser_leaf(&lexer->token, TBD_EXPR_STACK);
    const char *s = lexer->source + lexer->at;

    s += strspn(s, " ");
    s += strspn(s, "=");
    s += strspn(s, " ");
    lexer->at = (size_t)(s - lexer->source);
    if (*s != '<') {
        tbd_parser_next(p);
        return FAIL(p, TBD_SYNTAX, "for example stack=<**,main,parse>; the innermost is last",
                    "expected a pattern: stack=<...>");
    }
    lexer->at++;
    if (expr->pattern_count >= TBD_EXPR_MAX_PATTERNS)
        return FAIL(p, TBD_SYNTAX, NULL, "too many stack patterns");
    if (!tbd_array_double(&expr->patterns, expr->pattern_count, sizeof(*expr->patterns)))
        return tbd_parser_out_of_memory(p);
    expr->patterns[expr->pattern_count] = (struct tbd_expr_pattern){ 0 };
    node.which = expr->pattern_count++;
    node.is_boolean = 1;
    expr->uses |= TBD_USES_STACK;
    if (!parse_items(p, &expr->patterns[node.which]))
        return NONE;
    return tbd_parser_add(p, &node);
}
