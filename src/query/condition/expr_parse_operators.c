// SPDX-License-Identifier: MIT
/* expr_parse_operators.c - operators of a condition, from `or` down to the prefix operators
 *
 * EXPR_PARSE_OPERATORS-1  Depth of recursion is bounded by MAX_DEPTH. */
#include "query/condition/expr_nodes.h"

#include "base/assert.h"

#define MAX_DEPTH 200
#define NONE      TBD_PARSER_NONE
#define FAIL      TBD_PARSER_FAIL

/* - ~ ! + *: operators in front of a value; -1 if there is none. */
static int prefix_at(const struct tbd_token *token)
{
    static const struct {
        char sign;
        uint8_t op;
    } prefixes[] = { { '-', TBD_EXPR_NEG },
                     { '~', TBD_EXPR_BITNOT },
                     { '!', TBD_EXPR_NOT },
                     { '+', TBD_EXPR_ADD },
                     { '*', TBD_EXPR_DEREF } };

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (tbd_token_is_sign(token, (unsigned char)prefixes[i].sign))
            return prefixes[i].op;
    }
    return -1;
}

int32_t tbd_parser_unary(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;
    int op = prefix_at(&token);
    int32_t inner;

    if (p->depth >= MAX_DEPTH)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition is nested too deeply");
    p->depth++;
    TBD_INVARIANT("EXPR_PARSE_OPERATORS-1", p->depth > 0 && p->depth <= MAX_DEPTH);
    if (op < 0)
        inner = tbd_parser_primary(p);
    else if (op == TBD_EXPR_DEREF)
        inner = tbd_parser_deref(p);
    else {
        tbd_parser_next(p);
        inner = tbd_parser_unary(p);
        if (inner != NONE && op != TBD_EXPR_ADD) /* +x is x */
            inner = tbd_parser_add_binary(p, &token, (enum tbd_expr_op)op, inner, NONE);
    }
    p->depth--;
    return inner;
}

/* ---- binary operators: one table; a higher level binds tighter ---- */

// clang-format off
static const struct {
    unsigned sign;
    uint8_t op;
    uint8_t level;
// clang-format off
} operators[] = {
    { TBD_SIGN('=', '='), TBD_EXPR_EQ, 0 },  { TBD_SIGN('!', '='), TBD_EXPR_NE, 0 },
    { '<', TBD_EXPR_LT, 0 },                 { TBD_SIGN('<', '='), TBD_EXPR_LE, 0 },
    { '>', TBD_EXPR_GT, 0 },                 { TBD_SIGN('>', '='), TBD_EXPR_GE, 0 },
    { '|', TBD_EXPR_BITOR, 1 },              { '^', TBD_EXPR_BITXOR, 2 },
    { '&', TBD_EXPR_BITAND, 3 },             { TBD_SIGN('<', '<'), TBD_EXPR_SHL, 4 },
    { TBD_SIGN('>', '>'), TBD_EXPR_SHR, 4 }, { '+', TBD_EXPR_ADD, 5 },
    { '-', TBD_EXPR_SUB, 5 },                { '*', TBD_EXPR_MUL, 6 },
    { '/', TBD_EXPR_DIV, 6 },                { '%', TBD_EXPR_REM, 6 },
};
// clang-format on
// clang-format on
#define LEVEL_COMPARE 0u
#define LEVEL_UNARY   7u

static int operator_at(const struct tbd_token *token, unsigned level)
{
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (operators[i].level == level && tbd_token_is_sign(token, operators[i].sign))
            return operators[i].op;
    }
    return -1;
}

static bool is_name_node(const struct tbd_expr_node *node)
{
    return node->op == TBD_EXPR_FUNCTION || node->op == TBD_EXPR_MODULE ||
           node->op == TBD_EXPR_STACK;
}

/* Values are unsigned, so x < 0 is never true: the user meant a signed value. */
static int32_t check_compare(struct tbd_parser *p, int32_t index)
{
    const struct tbd_expr_node *node;
    const struct tbd_expr_node *right;

    if (index == NONE)
        return NONE;
    node = &p->expr->nodes[index];
    right = &p->expr->nodes[node->right];
    if (node->op != TBD_EXPR_LT || node->is_signed || node->is_typed ||
        right->op != TBD_EXPR_NUMBER || right->value != 0)
        return index;
    p->lexer.token.at = node->at;
    p->lexer.token.length = node->length;
    return FAIL(p, TBD_TYPE, "values are unsigned: write signed(retval) < 0",
                "nothing is less than 0 here");
}

static int32_t parse_binary(struct tbd_parser *p, unsigned level)
{
    int32_t left = level == LEVEL_UNARY ? tbd_parser_unary(p) : parse_binary(p, level + 1);
    int op;

    if (left != NONE && level == LEVEL_COMPARE &&
        tbd_token_is_sign(&p->lexer.token, TBD_SIGN('=', '~'))) {
        struct tbd_token token = p->lexer.token;

        tbd_parser_next(p);
        return tbd_parser_like(p, &token, left);
    }

    while (left != NONE && level < LEVEL_UNARY && (op = operator_at(&p->lexer.token, level)) >= 0) {
        struct tbd_token token = p->lexer.token;

        if (is_name_node(&p->expr->nodes[left]))
            return FAIL(p, TBD_TYPE, NULL, "a condition on a name cannot be calculated with");
        if (level == LEVEL_COMPARE && left != p->closed && p->expr->nodes[left].is_boolean &&
            p->expr->nodes[left].op >= TBD_EXPR_EQ)
            return FAIL(p, TBD_SYNTAX, "write a<b and b<c, or use ( )",
                        "comparisons cannot be chained");
        tbd_parser_next(p);
        left = tbd_parser_add_binary(p, &token, (enum tbd_expr_op)op, left,
                                     parse_binary(p, level + 1));
        if (level == LEVEL_COMPARE)
            left = check_compare(p, left);
    }
    return left;
}

static int32_t parse_not(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;
    int32_t inner;

    if (p->depth >= MAX_DEPTH)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition is nested too deeply");
    p->depth++;
    if (tbd_token_is_word(&token, "not")) {
        tbd_parser_next(p);
        inner = parse_not(p);
        inner = inner == NONE ? NONE : tbd_parser_add_binary(p, &token, TBD_EXPR_NOT, inner, NONE);
    } else {
        inner = parse_binary(p, LEVEL_COMPARE);
    }
    p->depth--;
    return inner;
}

static int32_t parse_and(struct tbd_parser *p)
{
    int32_t left = parse_not(p);

    while (left != NONE && (tbd_token_is_word(&p->lexer.token, "and") ||
                            tbd_token_is_sign(&p->lexer.token, TBD_SIGN('&', '&')))) {
        struct tbd_token token = p->lexer.token;

        tbd_parser_next(p);
        left = tbd_parser_add_binary(p, &token, TBD_EXPR_AND, left, parse_not(p));
    }
    return left;
}

static int32_t parse_or(struct tbd_parser *p)
{
    int32_t left = parse_and(p);

    while (left != NONE && (tbd_token_is_word(&p->lexer.token, "or") ||
                            tbd_token_is_sign(&p->lexer.token, TBD_SIGN('|', '|')))) {
        struct tbd_token token = p->lexer.token;

        tbd_parser_next(p);
        left = tbd_parser_add_binary(p, &token, TBD_EXPR_OR, left, parse_and(p));
    }
    return left;
}

/* The two sides, after the sign '?'. */
static int32_t parse_choice(struct tbd_parser *p, const struct tbd_token *sign, int32_t truth)
{
    int32_t left, right;

    if (p->depth >= MAX_DEPTH)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition is nested too deeply");
    p->depth++;
    tbd_parser_next(p);
    left = tbd_parser_or(p);
    right = left != NONE && tbd_parser_expect(p, ':', "between the two values of '?'")
                ? tbd_parser_or(p)
                : NONE;
    p->depth--;
    return tbd_parser_add_binary(p, sign, TBD_EXPR_CHOICE, truth,
                                 tbd_parser_add_binary(p, sign, TBD_EXPR_SIDES, left, right));
}

int32_t tbd_parser_or(struct tbd_parser *p)
{
    struct tbd_token token;
    int32_t value = parse_or(p);

    token = p->lexer.token;
    return value != NONE && tbd_token_is_sign(&token, '?') ? parse_choice(p, &token, value) : value;
}
