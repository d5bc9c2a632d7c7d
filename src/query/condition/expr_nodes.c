// SPDX-License-Identifier: MIT
/* expr_nodes.c - the tree that a condition's parser builds
 *
 * EXPR_NODES-1  A node's operands have smaller indices than the node.
 * EXPR_NODES-2  The number of nodes is bounded by MAX_NODES. */
#include "query/condition/expr_nodes.h"
#include "query/condition/expr_needs.h"

#include "base/assert.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NODES 4096u
#define NONE      TBD_PARSER_NONE
#define FAIL      TBD_PARSER_FAIL

int32_t tbd_parser_out_of_memory(struct tbd_parser *p)
{
    return FAIL(p, TBD_NOMEM, NULL, "out of memory");
}

/* ---- without a text ---- */

int32_t tbd_expr_add(struct tbd_expr *expr, const struct tbd_expr_node *node)
{
    TBD_INVARIANT("EXPR_NODES-1", node->left < (int32_t)expr->node_count &&
                                      node->right < (int32_t)expr->node_count);
    if (!tbd_array_double(&expr->nodes, expr->node_count, sizeof(*node)))
        return NONE;
    expr->nodes[expr->node_count] = *node;
    tbd_expr_note_level(expr, &expr->nodes[expr->node_count]);
    return (int32_t)expr->node_count++;
}

static bool op_is_boolean(enum tbd_expr_op op)
{
    return (op >= TBD_EXPR_TOUCHES && op <= TBD_EXPR_GE) && op != TBD_EXPR_NUMBER;
}

static bool op_is_unary(enum tbd_expr_op op)
{
    return op == TBD_EXPR_NOT || op == TBD_EXPR_NEG || op == TBD_EXPR_BITNOT ||
           op == TBD_EXPR_SIGNED;
}

/* The properties that a node takes from its operands. */
static bool take_operands(const struct tbd_expr *expr, struct tbd_expr_node *node)
{
    enum tbd_expr_op op = (enum tbd_expr_op)node->op;
    const struct tbd_expr_node *left = node->left == NONE ? NULL : &expr->nodes[node->left];
    const struct tbd_expr_node *right = node->right == NONE ? NULL : &expr->nodes[node->right];

    if (left == NULL || (right == NULL && !op_is_unary(op)))
        return false;
    node->is_typed = left->is_typed || (right != NULL && right->is_typed);
    node->is_signed =
        left->is_signed || (right != NULL && right->is_signed) || op == TBD_EXPR_SIGNED;
    node->is_boolean = op_is_boolean(op);
    return true;
}

int32_t tbd_expr_add_operator(struct tbd_expr *expr, const struct tbd_expr_node *node)
{
    struct tbd_expr_node full = *node;

    return take_operands(expr, &full) ? tbd_expr_add(expr, &full) : NONE;
}

void tbd_expr_forget_name(struct tbd_expr_name *name)
{
    free(name->ranges);
    free(name->copies);
    name->ranges = NULL;
    name->copies = NULL;
    name->count = name->copy_count = 0;
}

int32_t tbd_expr_add_name(struct tbd_expr *expr, const struct tbd_expr_name *name)
{
    if (name->text == NULL ||
        !tbd_array_double(&expr->names, expr->name_count, sizeof(*expr->names))) {
        free(name->text);
        return NONE;
    }
    expr->names[expr->name_count] = *name;
    expr->uses |= TBD_USES_NAMES;
    return (int32_t)expr->name_count++;
}

void tbd_expr_note_field(struct tbd_expr *expr, enum tbd_event_type type,
                         enum tbd_event_field field)
{
    if (field == TBD_FIELD_NEWVAL || (field == TBD_FIELD_OLDVAL && type == TBD_EVENT_LOAD))
        expr->uses |= TBD_USES_VALUE;
    if (field == TBD_FIELD_SP && !tbd_event_is_of_function(type))
        tbd_expr_note_register(expr, TBD_RSP);
    if (field == TBD_FIELD_SP || (field >= TBD_FIELD_ARG0 && field <= TBD_FIELD_ARG5))
        expr->uses |= type == TBD_EVENT_FUNC_ENTER ? TBD_USES_OPERANDS : 0u;
    if (field == TBD_FIELD_FRAME)
        expr->uses |= TBD_USES_FRAME;
    if (tbd_field_is_typed(type, field))
        expr->uses |= TBD_USES_TYPES;
}

/* ---- nodes with a place in the text ---- */

int32_t tbd_parser_add(struct tbd_parser *p, const struct tbd_expr_node *node)
{
    int32_t index;

    if (p->expr->node_count >= MAX_NODES)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition is too long");
    index = tbd_expr_add(p->expr, node);
    if (index == NONE)
        return tbd_parser_out_of_memory(p);
    TBD_INVARIANT("EXPR_NODES-2", p->expr->node_count <= MAX_NODES);
    if (p->expr->levels > TBD_EXPR_MAX_LEVELS)
        return FAIL(p, TBD_SYNTAX, NULL, "too many reads of memory inside each other");
    return index;
}

struct tbd_expr_node tbd_parser_leaf(const struct tbd_token *token, enum tbd_expr_op op)
{
    return (struct tbd_expr_node){ .op = (uint8_t)op,
                                   .left = NONE,
                                   .right = NONE,
                                   .at = (uint32_t)token->at,
                                   .length = (uint32_t)token->length };
}

int32_t tbd_parser_number(struct tbd_parser *p, const struct tbd_token *token, uint64_t value)
{
    struct tbd_expr_node node = tbd_parser_leaf(token, TBD_EXPR_NUMBER);

    node.value = value;
    return tbd_parser_add(p, &node);
}

int32_t tbd_parser_literal(struct tbd_parser *p, const struct tbd_token *token)
{
    struct tbd_expr_node node = tbd_parser_leaf(token, TBD_EXPR_NUMBER);

    node.value = token->number;
    node.which = token->literal;
    return tbd_parser_add(p, &node);
}

int32_t tbd_parser_add_binary(struct tbd_parser *p, const struct tbd_token *token,
                              enum tbd_expr_op op, int32_t left, int32_t right)
{
    struct tbd_expr_node node = tbd_parser_leaf(token, op);

    node.left = left;
    node.right = right;
    return take_operands(p->expr, &node) ? tbd_parser_add(p, &node) : NONE;
}

int32_t tbd_parser_add_memory(struct tbd_parser *p, const struct tbd_expr_node *node)
{
    struct tbd_expr_node full = *node;

    full.which = p->expr->memory_count++;
    full.is_typed = node->is_real || p->expr->nodes[node->left].is_typed;
    p->expr->uses |= TBD_USES_MEMORY | (node->is_real ? TBD_USES_TYPES : 0u);
    return tbd_parser_add(p, &full);
}

/* A quoted or bare name: text without quotes. */
char *tbd_parser_token_name(const struct tbd_token *token)
{
    if (token->kind == TBD_TOKEN_STRING)
        return strndup(token->text, token->length - 2);
    return strndup(token->text, token->length);
}

bool tbd_expr_add_word(struct tbd_expr *expr, const char *text, size_t bytes)
{
    char *own = strndup(text, bytes);

    if (own == NULL || !tbd_array_double(&expr->words, expr->word_count, sizeof(*expr->words))) {
        free(own);
        return false;
    }
    expr->words[expr->word_count++] = own;
    return true;
}

int32_t tbd_parser_add_symbol(struct tbd_parser *p, char *text)
{
    struct tbd_expr *expr = p->expr;

    if (text == NULL ||
        !tbd_array_double(&expr->symbols, expr->symbol_count, sizeof(*expr->symbols)) ||
        !tbd_array_double(&expr->symbol_found, expr->symbol_count, sizeof(*expr->symbol_found))) {
        free(text);
        return tbd_parser_out_of_memory(p);
    }
    expr->symbols[expr->symbol_count] = text;
    expr->symbol_found[expr->symbol_count] = 0;
    return (int32_t)expr->symbol_count++;
}

/* Index of a new name; takes `text`. */
int32_t tbd_parser_add_name(struct tbd_parser *p, char *text, enum tbd_name_kind kind,
                            const struct tbd_token *token)
{
    struct tbd_expr_name name = {
        .text = text, .kind = kind, .at = (uint32_t)token->at, .length = (uint32_t)token->length
    };
    int32_t index = tbd_expr_add_name(p->expr, &name);

    return index == NONE ? tbd_parser_out_of_memory(p) : index;
}

bool tbd_parser_expect(struct tbd_parser *p, char sign, const char *where)
{
    if (tbd_token_is_sign(&p->lexer.token, (unsigned char)sign)) {
        tbd_parser_next(p);
        return true;
    }
    (void)FAIL(p, TBD_SYNTAX, NULL, "expected '%c' %s", sign, where);
    return false;
}

/* Frees the parts that lowered expressions borrow. */
static void free_borrowed(struct tbd_expr *expr)
{
    for (uint32_t i = 0; i < expr->name_count; i++) {
        free(expr->names[i].text);
        tbd_expr_forget_name(&expr->names[i]);
    }
    for (uint32_t i = 0; i < expr->pattern_count; i++)
        free(expr->patterns[i].items);
    for (uint32_t i = 0; i < expr->symbol_count; i++)
        free(expr->symbols[i]);
    for (uint32_t i = 0; i < expr->regex_count; i++) {
        regfree(&expr->regexes[i].compiled);
        free(expr->regexes[i].text);
    }
    free(expr->names);
    free(expr->patterns);
    free(expr->symbols);
    free(expr->symbol_found);
    for (uint32_t i = 0; i < expr->word_count; i++)
        free(expr->words[i]);
    free(expr->words);
    free(expr->regexes);
}

void tbd_expr_free(struct tbd_expr *expr)
{
    if (expr == NULL)
        return;
    if (expr->from == NULL)
        free_borrowed(expr);
    free(expr->nodes);
    free(expr);
}
