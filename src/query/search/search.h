// SPDX-License-Identifier: MIT
/* search.h - finding the n-th event of a question, or all of them */
#ifndef TBD_QUERY_SEARCH_H
#define TBD_QUERY_SEARCH_H

#include "query/condition/question.h"
#include "query/session/session.h"

#include <stdio.h>

/* Called while a search takes long; may be NULL. */
typedef void (*tbd_search_progress)(void *context, uint32_t windows_done, uint32_t windows,
                                    uint64_t found);

struct tbd_search {
    struct tbd_session *session;
    struct tbd_question *question;
    struct tbd_query_error *error; /* filled with TBD_NAME when a name is not known */
    tbd_search_progress progress;
    void *progress_context;
    /* Set to get all events: called in the order of the search; false stops it. */
    bool (*each)(void *context, const struct tbd_event *event);
    void *each_context;
    /* May be set with `each`, of the same context, where all that it makes of an event is bytes.  Workers `write` them
     * at the same time, each with a session of its own, instead of keeping events; false: no memory.  The
     * search's own thread gets them in order, those of many events at once, and `take`s them; false stops it. */
    bool (*write)(void *context, struct tbd_session *session, const struct tbd_event *event,
                  FILE *out);
    bool (*take)(void *context, const char *bytes, size_t size, uint64_t events);
    /* May be set with `each`, where all that it makes of an event is an element of a list.  Workers `gather` the events of a
     * window in a batch, which begins as NULL, each with a session of its own; false: no memory, or too many, and `each` gets this window's.  The
     * search's own thread gets the batches in order, and `merge`s them, which leaves what is to be dropped; false stops
     * it. */
    bool (*gather)(void *context, struct tbd_session *session, void **batch,
                   const struct tbd_event *event, uint64_t count);
    bool (*merge)(void *context, void *batch);
    void (*drop)(void *batch);
    /* May be set with all of these, where nothing matters of an event but its type, thread and instruction, and no order: then many events that are
     * equal in these may come as one, with their number, to `each_many`, or to `gather` (search_tally.c). */
    bool (*each_many)(void *context, const struct tbd_event *event, uint64_t count);
    bool
        many_by_value; /* ... but its type and its value (the first argument of an entry, what an exit returns) */
};

/* Finds the n-th event (question->count): TBD_OK and *out, or TBD_NOTFOUND, and *out_found says how
 * many events there are. With `each` set: TBD_OK, *out is the last event, *out_found their number.
 * Pointers in *out are borrowed from the session's windows. */
TBD_MUST_CHECK enum tbd_status tbd_search_run(struct tbd_search *search, struct tbd_event *out,
                                              uint64_t *out_found);

#endif
