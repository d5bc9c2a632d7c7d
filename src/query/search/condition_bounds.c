// SPDX-License-Identifier: MIT
/* condition_bounds.c - see condition_bounds.h
 *
 * Nothing is bounded by a condition of which a part may be bad (a division by 0): such events are counted, whatever the rest says. */
#include "query/search/condition_bounds.h"

static bool may_be_bad(const struct tbd_expr *where)
{
    for (uint32_t i = 0; i < where->node_count; i++) {
        if (where->nodes[i].op == TBD_EXPR_DIV || where->nodes[i].op == TBD_EXPR_REM)
            return true;
    }
    return false;
}

static enum tbd_expr_op mirrored(enum tbd_expr_op op)
{
    switch (op) {
    case TBD_EXPR_LT: return TBD_EXPR_GT;
    case TBD_EXPR_LE: return TBD_EXPR_GE;
    case TBD_EXPR_GT: return TBD_EXPR_LT;
    case TBD_EXPR_GE: return TBD_EXPR_LE;
    default: return op;
    }
}

static struct tbd_bounds bounds_of(enum tbd_expr_op op, uint64_t number)
{
    const struct tbd_bounds never = { 1, 0 };

    switch (op) {
    case TBD_EXPR_EQ: return (struct tbd_bounds){ number, number };
    case TBD_EXPR_LT: return number == 0 ? never : (struct tbd_bounds){ 0, number - 1 };
    case TBD_EXPR_LE: return (struct tbd_bounds){ 0, number };
    case TBD_EXPR_GT:
        return number == UINT64_MAX ? never : (struct tbd_bounds){ number + 1, UINT64_MAX };
    default: return (struct tbd_bounds){ number, UINT64_MAX };
    }
}

static bool is_comparison(const struct tbd_expr_node *node)
{
    return (node->op == TBD_EXPR_EQ || (node->op >= TBD_EXPR_LT && node->op <= TBD_EXPR_GE)) &&
           !node->is_signed && !node->is_real && !node->is_typed;
}

static bool is_bounded_field(const struct tbd_expr_node *node)
{
    return node->op == TBD_EXPR_FIELD && node->which < TBD_BOUNDED_FIELDS &&
           node->which != TBD_FIELD_PC;
}

static void note_conjunct(void *context, const struct tbd_expr *expr, int32_t index)
{
    struct tbd_condition_bounds *out = context;
    const struct tbd_expr_node *node = &expr->nodes[index], *left, *right;
    enum tbd_expr_op op = (enum tbd_expr_op)node->op;
    struct tbd_bounds more, *of;

    if (!is_comparison(node)) {
        out->is_all = false;
        return;
    }
    left = &expr->nodes[node->left];
    right = &expr->nodes[node->right];
    if (left->op == TBD_EXPR_NUMBER) {
        const struct tbd_expr_node *number = left;

        left = right;
        right = number;
        op = mirrored(op);
    }
    if (!is_bounded_field(left) || right->op != TBD_EXPR_NUMBER || right->is_real) {
        out->is_all = false;
        return;
    }
    more = bounds_of(op, right->value);
    of = &out->of[left->which];
    of->low = more.low > of->low ? more.low : of->low;
    of->high = more.high < of->high ? more.high : of->high;
}

void tbd_condition_bounds_of(const struct tbd_expr *where, struct tbd_condition_bounds *out)
{
    *out = (struct tbd_condition_bounds){ .is_all = true };
    for (unsigned i = 0; i < TBD_BOUNDED_FIELDS; i++)
        out->of[i].high = UINT64_MAX;
    if (where == NULL)
        return;
    if (may_be_bad(where))
        out->is_all = false;
    else
        tbd_expr_conjuncts(where, where->root, note_conjunct, out);
}
