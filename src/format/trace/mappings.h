// SPDX-License-Identifier: MIT
/* mappings.h - the mappings at any moment of a trace */
#ifndef TBD_FORMAT_MAPPINGS_H
#define TBD_FORMAT_MAPPINGS_H

#include "format/files/disk.h"
#include "format/trace/trace.h"

/* A moment in the order of events, comparable over the whole trace. */
struct tbd_moment {
    uint32_t window;
    uint32_t order;
    uint64_t time; /* relative */
};

static inline int tbd_moment_compare(const struct tbd_moment *a, const struct tbd_moment *b)
{
    if (a->window != b->window)
        return a->window < b->window ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return 0;
}

struct tbd_mapping_event {
    struct tbd_disk_when when;
    bool unmap; /* an UNMAP event: only region.start and .end are valid */
    struct tbd_region region;
};
/* All mapping events, in order. */
const struct tbd_mapping_event *tbd_mapping_events(const struct tbd_trace *trace,
                                                   size_t *out_count);
/* How many events are not after the moment. */
size_t tbd_mapping_events_before(const struct tbd_trace *trace, const struct tbd_moment *moment);

/* A part of a region whose contents began at one moment. */
struct tbd_mapping_piece {
    struct tbd_region region;
    struct tbd_moment born;
    bool initial; /* mapped before take-over */
};

struct tbd_mapping_table {
    struct tbd_mapping_piece *pieces; /* sorted by start, no overlap */
    size_t count, capacity;
};

/* The state after the first `events`; borrowed until the lock is released, or another state is
 * asked for. */
TBD_MUST_CHECK enum tbd_status tbd_mappings_at_locked(struct tbd_trace *trace, size_t events,
                                                      const struct tbd_mapping_table **out);
/* The piece that holds `address` at the moment, borrowed in the same way; NULL: nothing is mapped
 * there. */
TBD_MUST_CHECK enum tbd_status tbd_mapping_at_locked(struct tbd_trace *trace,
                                                     const struct tbd_moment *at, uint64_t address,
                                                     const struct tbd_mapping_piece **out);
/* When the mapping that exists there at the moment ends; window UINT32_MAX: never. */
struct tbd_moment tbd_mapping_death(const struct tbd_trace *trace, const struct tbd_moment *at,
                                    uint64_t address);

#endif
