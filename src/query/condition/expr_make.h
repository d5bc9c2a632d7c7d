// SPDX-License-Identifier: MIT
/* expr_make.h - conditions made from values, and from other conditions
 *
 * Commands make their conditions with these functions; only a user's text is parsed. Each function
 * returns a condition that the caller owns, or NULL if there is no memory. It takes over the
 * conditions passed in, also on failure, and accepts NULL: so calls can be nested, and only the
 * last result is checked. */
#ifndef TBD_QUERY_EXPR_MAKE_H
#define TBD_QUERY_EXPR_MAKE_H

#include "query/condition/expr.h"

/* "thread == 5": an event's own value compared (TBD_EXPR_EQ to TBD_EXPR_GE) with a number.  Events of
 * this type must have the value. */
struct tbd_expr *tbd_expr_compare(enum tbd_event_type type, enum tbd_event_field field,
                                  enum tbd_expr_op op, uint64_t value);
/* "touches[address, bytes]", of stores and loads */
struct tbd_expr *tbd_expr_touches(uint64_t address, uint64_t bytes);
/* Stores that have changed some of the bits `mask`, which is not 0, of the 8 bytes at `address`.  Stores of more than
 * 8 bytes, of which an event has the first 8 only, are among them if they touch these bytes. */
struct tbd_expr *tbd_expr_changes(uint64_t address, uint64_t mask);
/* "func == NAME", "module == NAME", "src=<FILE:LINE>": the event is there. The condition keeps a
 * copy of `name`, without a place in a text. */
struct tbd_expr *tbd_expr_is_in(const struct tbd_expr_name *name);
/* `op` is TBD_EXPR_AND or TBD_EXPR_OR. */
struct tbd_expr *tbd_expr_join(enum tbd_expr_op op, struct tbd_expr *left, struct tbd_expr *right);
struct tbd_expr *tbd_expr_not(struct tbd_expr *expr);
/* Splits the condition of `calls`: *early is what can be decided at the entry, *late needs the call's
 * end; each is NULL if nothing of it is there.  False without memory. */
bool tbd_expr_split(struct tbd_expr *expr, struct tbd_expr **early, struct tbd_expr **late);
/* A copy whose names are not bound. */
struct tbd_expr *tbd_expr_copy(const struct tbd_expr *expr);

#endif
