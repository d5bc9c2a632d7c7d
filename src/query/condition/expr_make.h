// SPDX-License-Identifier: MIT
/* expr_make.h - conditions made from values, and from other conditions
 *
 * For commands, which know what they ask for: only what a user wrote is parsed.  Each function
 * returns a condition that the caller owns, or NULL without memory.  Conditions that are passed in
 * are taken over, also on failure, and may be NULL: calls can be nested, and the result checked
 * once. */
#ifndef TBD_QUERY_EXPR_MAKE_H
#define TBD_QUERY_EXPR_MAKE_H

#include "query/condition/expr.h"

/* "thread == 5": an event's own value compared (TBD_EXPR_EQ to TBD_EXPR_GE) with a number.  Events of
 * this type must have the value. */
struct tbd_expr *tbd_expr_compare(enum tbd_event_type type, enum tbd_event_field field,
                                  enum tbd_expr_op op, uint64_t value);
/* "touches[address, bytes]", of stores and loads */
struct tbd_expr *tbd_expr_touches(uint64_t address, uint64_t bytes);
/* "func == NAME", "module == NAME", "src=<FILE:LINE>": the event is there.  A copy of `name` is kept,
 * without its place if nobody wrote it. */
struct tbd_expr *tbd_expr_is_in(const struct tbd_expr_name *name);
/* `op` is TBD_EXPR_AND or TBD_EXPR_OR. */
struct tbd_expr *tbd_expr_join(enum tbd_expr_op op, struct tbd_expr *left, struct tbd_expr *right);
struct tbd_expr *tbd_expr_not(struct tbd_expr *expr);
/* With names that are not bound. */
struct tbd_expr *tbd_expr_copy(const struct tbd_expr *expr);

#endif
