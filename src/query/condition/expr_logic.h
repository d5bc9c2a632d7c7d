// SPDX-License-Identifier: MIT
/* expr_logic.h - for expr_eval.c: `and` and `or` */
#ifndef TBD_QUERY_EXPR_LOGIC_H
#define TBD_QUERY_EXPR_LOGIC_H

#include "query/condition/expr.h"

/* The value of a node TBD_EXPR_AND or TBD_EXPR_OR. */
struct tbd_value tbd_logic_value(const struct tbd_expr *expr, const struct tbd_expr_node *node,
                                 struct tbd_expr_env *env);

#endif
