// SPDX-License-Identifier: MIT
/* row_condition.h - a condition on rows that are made of several events, decided row by row
 *
 * What the row itself does not hold is read from the trace, as of the row's position. */
#ifndef TBD_QUERY_ROW_CONDITION_H
#define TBD_QUERY_ROW_CONDITION_H

#include "query/condition/expr.h"
#include "query/session/session.h"

struct tbd_row_condition;

/* Takes `expr`, also on failure; NULL: every row matches. */
TBD_MUST_CHECK enum tbd_status tbd_row_condition_new(struct tbd_session *session,
                                                     struct tbd_expr *expr,
                                                     struct tbd_row_condition **out,
                                                     struct tbd_query_error *error);
void tbd_row_condition_free(struct tbd_row_condition *condition); /* NULL is fine */
bool tbd_row_condition_holds(struct tbd_row_condition *condition, const struct tbd_event *row);
/* Had its variables no meaning in any row? Then *problem says why. */
bool tbd_row_condition_is_empty(const struct tbd_row_condition *condition,
                                struct tbd_query_error *problem);

#endif
