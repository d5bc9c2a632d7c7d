// SPDX-License-Identifier: MIT
/* expr_bind.c - binds names to addresses, and finds which tests a condition makes necessary
 *
 * Folding replaces a node whose operands are numbers by a number, so that the planner sees
 * `addr==&table+8` as a comparison with a constant.  It leaves divisions by zero for evaluation,
 * which counts them. */
#include "query/condition/expr.h"
#include "query/condition/expr_nodes.h"
#include "query/text/lexer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum tbd_status unknown_name(struct tbd_query_error *error, size_t at, size_t length,
                                    const char *what, const char *name)
{
    memset(error, 0, sizeof(*error));
    error->status = TBD_NAME;
    error->at = at;
    error->length = length;
    snprintf(error->message, sizeof(error->message), "there is no %s called '%.100s' in this trace",
             what, name);
    if (strchr(name, ':') != NULL && strcmp(what, "source line") == 0)
        snprintf(error->hint, sizeof(error->hint),
                 "not every line has code of its own; `list %.80s` shows the lines there", name);
    else
        snprintf(error->hint, sizeof(error->hint),
                 "patterns like \"*name*\" and module!name are possible; "
                 "`tbdq modules` lists the modules");
    return TBD_NAME;
}

static bool is_number(const struct tbd_expr *expr, int32_t index)
{
    return index < 0 || expr->nodes[index].op == TBD_EXPR_NUMBER;
}

static bool is_foldable(const struct tbd_expr *expr, const struct tbd_expr_node *node)
{
    if (node->op < TBD_EXPR_NOT || node->op > TBD_EXPR_SIGNED || node->left < 0 || node->is_typed)
        return false;
    return is_number(expr, node->left) && is_number(expr, node->right);
}

/* `node` becomes a number, of the type that C gives the result of its operator: ~0u is 0xffffffff. */
static void set_number(const struct tbd_expr *expr, struct tbd_expr_node *node, uint64_t value)
{
    const struct tbd_expr_node *left = &expr->nodes[node->left];
    bool is_arithmetic = node->op >= TBD_EXPR_ADD && node->op <= TBD_EXPR_BITNOT;
    bool is_shift = node->op == TBD_EXPR_SHL || node->op == TBD_EXPR_SHR;
    uint32_t literal = left->which;

    if (!is_shift && node->right >= 0 && expr->nodes[node->right].which > literal)
        literal = expr->nodes[node->right].which;
    node->op = TBD_EXPR_NUMBER;
    node->which = is_arithmetic ? literal : TBD_LITERAL_SIGNED;
    node->value = is_arithmetic && literal == TBD_LITERAL_UNSIGNED ? (uint32_t)value : value;
    if (node->value > UINT32_MAX && literal < TBD_LITERAL_LONG)
        node->which = TBD_LITERAL_SIGNED;
}

static void fold(struct tbd_expr *expr)
{
    struct tbd_expr_env env = { 0 };

    for (uint32_t i = 0; i < expr->node_count; i++) {
        struct tbd_expr_node *node = &expr->nodes[i];
        struct tbd_value value;

        if (!is_foldable(expr, node))
            continue;
        value = tbd_expr_eval(expr, (int32_t)i, &env);
        if (value.state == TBD_VALUE_OK) {
            set_number(expr, node, value.v);
        }
    }
}

enum tbd_status tbd_expr_bind_symbols(struct tbd_expr *expr, const struct tbd_expr_names *names,
                                      struct tbd_query_error *error)
{
    for (uint32_t i = 0; i < expr->node_count; i++) {
        struct tbd_expr_node *node = &expr->nodes[i];
        const char *text;

        if (node->op != TBD_EXPR_SYMBOL)
            continue;
        text = expr->symbols[node->which];
        if (!names->address(names->context, text, &node->value))
            return unknown_name(error, node->at, node->length, "symbol", text);
        node->op = TBD_EXPR_NUMBER;
        node->which = TBD_LITERAL_SIGNED;
    }
    fold(expr);
    return TBD_OK;
}

enum tbd_status tbd_expr_bind_names(struct tbd_expr *expr, const struct tbd_expr_names *names,
                                    bool must_exist, struct tbd_query_error *error)
{
    static const char *const kinds[] = { "function", "module", "source line", "function" };

    for (uint32_t i = 0; i < expr->name_count; i++) {
        struct tbd_expr_name *name = &expr->names[i];

        tbd_expr_forget_name(name);
        if (!names->ranges(names->context, name->text, name->kind, &name->ranges, &name->count))
            return TBD_NOMEM;
        if (name->kind == TBD_NAME_FRAME && names->copies != NULL &&
            !names->copies(names->context, name->text, &name->copies, &name->copy_count))
            return TBD_NOMEM;
        if (!must_exist || name->count != 0 || name->copy_count != 0)
            continue;
        (void)unknown_name(error, name->at, name->length, kinds[name->kind], name->text);
        if (name->kind == TBD_NAME_FUNCTION && names->explain != NULL)
            names->explain(names->context, name->text, error);
        return TBD_NAME;
    }
    return TBD_OK;
}

void tbd_expr_conjuncts(const struct tbd_expr *expr, int32_t index,
                        void (*each)(void *context, const struct tbd_expr *expr, int32_t node),
                        void *context)
{
    const struct tbd_expr_node *node = &expr->nodes[index];

    if (node->op != TBD_EXPR_AND) {
        each(context, expr, index);
        return;
    }
    tbd_expr_conjuncts(expr, node->left, each, context);
    tbd_expr_conjuncts(expr, node->right, each, context);
}

static bool is_field(const struct tbd_expr *expr, int32_t index, enum tbd_event_field field)
{
    const struct tbd_expr_node *node = &expr->nodes[index];

    if (node->op == TBD_EXPR_REGISTER)
        return field == TBD_FIELD_PC && node->which == TBD_REGISTER_RIP;
    return node->op == TBD_EXPR_FIELD && node->which == (uint32_t)field;
}

bool tbd_expr_is_field_equals(const struct tbd_expr *expr, int32_t index,
                              enum tbd_event_field field, uint64_t *out)
{
    const struct tbd_expr_node *node = &expr->nodes[index];
    int32_t left = node->left;
    int32_t right = node->right;

    if (node->op != TBD_EXPR_EQ)
        return false;
    if (is_number(expr, left)) {
        left = node->right;
        right = node->left;
    }
    if (!is_number(expr, right) || !is_field(expr, left, field))
        return false;
    *out = expr->nodes[right].value;
    return true;
}
