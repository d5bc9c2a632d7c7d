// SPDX-License-Identifier: MIT
/* passing_values.h - the values that stores wrote, found while a window passes
 *
 * A store's record has what was there before it.  What it wrote is what the next store to the same bytes has there, or the window's end.  So
 * stores wait, one for each word of memory at most but for those that overlap it in part, and memory is bounded by what the window writes. */
#ifndef TBD_QUERY_PASSING_VALUES_H
#define TBD_QUERY_PASSING_VALUES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A store that waits for its value: of its first `bytes` bytes. */
struct tbd_waiting_store {
    uint64_t address;
    uint64_t old;   /* of these bytes */
    uint32_t time;  /* as the caller counts it */
    uint32_t block; /* id */
    uint16_t op;
    uint8_t bytes; /* 1 to 8 */
};

struct tbd_passing_values;
/* `found` is told the value of each store, not in order; `is_known` false: nobody knows it.  False ends it all.  NULL without memory. */
struct tbd_passing_values *
tbd_passing_values_new(bool (*found)(void *context, const struct tbd_waiting_store *store,
                                     uint64_t value, bool is_known),
                       void *context);
void tbd_passing_values_free(struct tbd_passing_values *values); /* NULL is fine */

/* A store to these bytes, where `old` was before; NULL: nobody knows.  False: no memory, or `found` has ended it. */
TBD_MUST_CHECK bool tbd_passing_values_store(struct tbd_passing_values *values, uint64_t address,
                                             uint64_t bytes, const uint8_t *old);
/* The store waits, once its instruction's stores have been told.  False: no memory. */
TBD_MUST_CHECK bool tbd_passing_values_wait(struct tbd_passing_values *values,
                                            const struct tbd_waiting_store *store);
/* The window is over: `read` knows what its memory holds, by pages; NULL: nobody does. */
TBD_MUST_CHECK bool tbd_passing_values_end(struct tbd_passing_values *values,
                                           const uint8_t *(*read)(void *context, uint64_t page),
                                           void *context);

#endif
