// SPDX-License-Identifier: MIT
/* condition_bounds.h - what a condition says of an event's own values, one by one
 *
 * "newval > 10 and size == 8 and func == f" puts newval into [11, UINT64_MAX] and size into [8, 8]: numbers that are compared before an event is
 * made, and before anything is looked up for it. */
#ifndef TBD_QUERY_CONDITION_BOUNDS_H
#define TBD_QUERY_CONDITION_BOUNDS_H

#include "query/condition/expr.h"

struct tbd_bounds {
    uint64_t low, high; /* inclusive; low > high: never */
};

#define TBD_BOUNDED_FIELDS (TBD_FIELD_RETVAL + 1)
struct tbd_condition_bounds {
    struct tbd_bounds of[TBD_BOUNDED_FIELDS]; /* by enum tbd_event_field */
    bool is_all;                              /* the condition says nothing else */
};

/* `where` is bound; NULL: no condition, which everything meets. */
void tbd_condition_bounds_of(const struct tbd_expr *where, struct tbd_condition_bounds *out);

static inline bool tbd_is_within(const struct tbd_condition_bounds *bounds,
                                 enum tbd_event_field field, uint64_t value)
{
    return value >= bounds->of[field].low && value <= bounds->of[field].high;
}

#endif
