// SPDX-License-Identifier: MIT
/* kept_events.h - the events of one window, kept for the thread that hands them on
 *
 * Events point to bytes of their window and to values of the search: copies of these are kept, too.  Entries and returns of
 * a function (tbd_question.own_returns) have neither; they come by the hundred thousand, so only what such events have is
 * kept of them.  One thread at a time. */
#ifndef TBD_QUERY_KEPT_EVENTS_H
#define TBD_QUERY_KEPT_EVENTS_H

#include "query/session/event.h"

struct tbd_own_head;
struct tbd_own_entry;

/* The arrays but `bytes` lie in large buffers. */
struct tbd_kept_events {
    bool is_own;    /* of a question with own_returns */
    uint32_t keeps; /* values of each event */
    size_t count;
    struct tbd_event *events; /* owned */
    size_t capacity;
    uint8_t **bytes; /* owned: what events[i] points to; NULL if there is nothing */
    size_t bytes_capacity;
    struct tbd_own_head *heads; /* owned: instead of events */
    size_t head_capacity;
    struct tbd_own_entry *entries; /* owned: of the heads that are entries, in the same order */
    size_t entry_count, entry_capacity;
};

/* Adds one; false if there are too many, or there is no memory. */
bool tbd_kept_events_add(struct tbd_kept_events *kept, const struct tbd_event *event);
void tbd_kept_events_free(struct tbd_kept_events *kept);

/* From the first on; *out is borrowed until the next one, what it points to until they are freed. */
struct tbd_kept_walk {
    size_t next, next_entry;
    struct tbd_event event; /* made of a head */
};
const struct tbd_event *tbd_kept_events_next(const struct tbd_kept_events *kept,
                                             struct tbd_kept_walk *walk);

#endif
