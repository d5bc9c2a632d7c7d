// SPDX-License-Identifier: MIT
/* expr_logic.c - `and` and `or`, where a side may have no value
 *
 * A value that is not known yet (UNKNOWN) may become any, or none; that there is none (BAD) is
 * final. A side that decides alone (false in `and`, true in `or`) does so whatever the other is.
 * Else, a side that is not known yet leaves the result open; and without such a side, one that has
 * no value leaves the result none. So what is decided stays as it is when more is known. */
#include "query/condition/expr_logic.h"

typedef struct tbd_value eval_fn(const struct tbd_expr *expr, int32_t index,
                                 struct tbd_expr_env *env);

static bool is_truth(struct tbd_value value, bool truth)
{
    return value.state == TBD_VALUE_OK && (value.v != 0) == truth;
}

/* The left side has not decided. */
static struct tbd_value joined(struct tbd_value left, struct tbd_value right, bool decides)
{
    if (is_truth(right, decides))
        return (struct tbd_value){ .v = decides, .state = TBD_VALUE_OK };
    if (left.state == TBD_VALUE_UNKNOWN || right.state == TBD_VALUE_UNKNOWN)
        return (struct tbd_value){ .state = TBD_VALUE_UNKNOWN };
    if (left.state == TBD_VALUE_BAD || right.state == TBD_VALUE_BAD)
        return (struct tbd_value){ .state = TBD_VALUE_BAD };
    return (struct tbd_value){ .v = !decides, .state = TBD_VALUE_OK };
}

/* An event without a value counts once, and only if the result has none. */
static struct tbd_value value_by(const struct tbd_expr *expr, const struct tbd_expr_node *node,
                                 struct tbd_expr_env *env, eval_fn *eval)
{
    bool decides = node->op == TBD_EXPR_OR;
    struct tbd_bad_events before = env->bad, counted;
    struct tbd_value left = eval(expr, node->left, env);
    struct tbd_value all;

    if (is_truth(left, decides))
        return (struct tbd_value){ .v = decides, .state = TBD_VALUE_OK };
    if (eval == tbd_expr_holds && !decides && left.state == TBD_VALUE_BAD)
        return left;
    counted = env->bad;
    all = joined(left, eval(expr, node->right, env), decides);
    if (all.state != TBD_VALUE_BAD)
        env->bad = before;
    else if (left.state == TBD_VALUE_BAD)
        env->bad = counted;
    return all;
}

struct tbd_value tbd_logic_value(const struct tbd_expr *expr, const struct tbd_expr_node *node,
                                 struct tbd_expr_env *env)
{
    return value_by(expr, node, env, tbd_expr_eval);
}

struct tbd_value tbd_expr_holds(const struct tbd_expr *expr, int32_t index,
                                struct tbd_expr_env *env)
{
    const struct tbd_expr_node *node = &expr->nodes[index];

    if (node->op != TBD_EXPR_AND && node->op != TBD_EXPR_OR)
        return tbd_expr_eval(expr, index, env);
    return value_by(expr, node, env, tbd_expr_holds);
}
