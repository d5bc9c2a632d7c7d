// SPDX-License-Identifier: MIT
/* ring_order.h - what all threads of a dump ran, in one order as far as it is known (`path merged`)
 *
 * Stamps beside the rings (format/stream/crash.h, CRASH-3) cut a thread's entries into stretches: each ran between two moments.  A stretch that
 * ended before another one began is the older one.  Of two that overlap nobody knows.
 *
 *     thread 7    |-- a --|       |---- c ----|           a before b before d; a before c;
 *     thread 8               |- b -|    |- d -|           nothing is known of b and c, c and d
 *
 * A group is stretches that overlap, directly or by others: all of one group ran before all of the next one. */
#ifndef TBD_QUERY_RING_ORDER_H
#define TBD_QUERY_RING_ORDER_H

#include "query/rings/dump_rings.h"

struct tbd_rings_stretch {
    uint32_t thread;             /* index */
    uint64_t first, end;         /* of the thread's newest entries: at least one */
    uint64_t began_ns, ended_ns; /* 0, UINT64_MAX: not known */
    uint64_t group;              /* from 1 */
    size_t beside_first,
        beside_end; /* all stretches of which some may overlap this one are among these */
};

/* All stretches of all threads, in an order that contradicts nothing that is known; the caller frees *out.  TBD_NOMEM. */
TBD_MUST_CHECK enum tbd_status tbd_rings_order(const struct tbd_rings *ring,
                                               struct tbd_rings_stretch **out, size_t *out_count);
/* Is it unknown which of the two ran first? */
bool tbd_rings_overlap(const struct tbd_rings_stretch *one, const struct tbd_rings_stretch *other);

#endif
