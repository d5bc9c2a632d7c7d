// SPDX-License-Identifier: MIT
/* kept_events.h - the events of one window, kept for the thread that hands them on
 *
 * Events point to bytes of their window and to values of the search: copies of these are kept, too.  Where they come by the
 * hundred thousand, only what is listed of them is kept (tbd_search.gather).  One thread at a time. */
#ifndef TBD_QUERY_KEPT_EVENTS_H
#define TBD_QUERY_KEPT_EVENTS_H

#include "query/session/event.h"

struct tbd_kept_events {
    uint32_t keeps; /* values of each event */
    size_t count;
    struct tbd_event *events; /* owned, in a large buffer */
    size_t capacity;
    uint8_t **bytes; /* owned: what events[i] points to; NULL if there is nothing */
    size_t bytes_capacity;
};

/* Adds one; false if there are too many, or there is no memory. */
bool tbd_kept_events_add(struct tbd_kept_events *kept, const struct tbd_event *event);
void tbd_kept_events_free(struct tbd_kept_events *kept);

#endif
