// SPDX-License-Identifier: MIT
/* bad_events.h - events at which a condition has no value, by cause */
#ifndef TBD_QUERY_BAD_EVENTS_H
#define TBD_QUERY_BAD_EVENTS_H

#include <stdint.h>

struct tbd_bad_events {
    uint64_t divisions; /* by zero */
    uint64_t unmapped;  /* memory is not mapped, or not known */
    uint64_t optimized; /* a variable was optimized out */
};

static inline void tbd_bad_events_add(struct tbd_bad_events *all, const struct tbd_bad_events *more)
{
    all->divisions += more->divisions;
    all->unmapped += more->unmapped;
    all->optimized += more->optimized;
}

#endif
