// SPDX-License-Identifier: MIT
/* heap_vectors.h - loads of vectors that reach over the ends of a live block, which are no errors
 *
 * Code that searches a string reads whole vectors, and up to TBD_VECTORS_AHEAD of them at once.  They reach over the ends of the string's
 * block, but what lies there is not used:
 *
 *     any code                      aligned vectors of one stretch of TBD_VECTORS_AHEAD, so never in a page that may be missing
 *     string functions of libc      also vectors that are not aligned, near one that holds something of a live block, before it or after
 *
 * So a vector by itself does not tell; those that were loaded together with it do.  One that may be an error waits
 * until the next block shows that no other one belongs to it. */
#ifndef TBD_QUERY_HEAP_VECTORS_H
#define TBD_QUERY_HEAP_VECTORS_H

#include "query/session/event.h"
#include "query/session/session.h"

#define TBD_VECTORS_AHEAD   4u
#define TBD_VECTORS_WAITING 8u

/* A load of a vector in a freed block. */
struct tbd_waiting_vector {
    struct tbd_event event;
    uint32_t block; /* the freed one */
};

struct tbd_heap_vectors {
    struct tbd_session *session; /* borrowed */
    struct tbd_event last;       /* that holds something of a live block; size 0: none */
    struct tbd_waiting_vector waiting[TBD_VECTORS_WAITING];
    uint32_t count;
};

enum tbd_vector_answer {
    TBD_VECTOR_IS_NONE = 0, /* an access like any other */
    TBD_VECTOR_IS_OVER,     /* it reaches over a live block, or belongs to one that does */
    TBD_VECTOR_WAITS,       /* it is in `waiting` now, with the block */
};

/* The next load or store in order.  `is_live`: it touches a block that lives; `block`: the freed one that it is in,
 * UINT32_MAX: none. */
enum tbd_vector_answer tbd_heap_vectors_take(struct tbd_heap_vectors *vectors,
                                             const struct tbd_event *event, bool is_live,
                                             uint32_t block);
/* Before tbd_heap_vectors_take(): hands over those to which nothing belongs that comes at `next` (NULL: the end) or later. */
void tbd_heap_vectors_settle(struct tbd_heap_vectors *vectors, const struct tbd_position *next,
                             void (*each)(void *context, const struct tbd_waiting_vector *vector),
                             void *context);

#endif
