// SPDX-License-Identifier: MIT
/* nearest.h - the nearest of many events, in one direction from a position: where a run stops
 *
 * Each question is searched only as far as the nearest event so far, so the order of the questions
 * changes the time it takes, not the answer. */
#ifndef TBD_QUERY_NEAREST_H
#define TBD_QUERY_NEAREST_H

#include "query/search/search.h"

struct tbd_nearest {
    struct tbd_session *session;
    struct tbd_position from;
    bool backward;
    const struct tbd_position *limit; /* only events before it, in this direction; NULL: all */
    tbd_search_progress progress;     /* may be NULL */
    void *progress_context;
    bool has_event;
    struct tbd_event event;       /* the nearest so far */
    struct tbd_query_error error; /* of the question that could not be asked */
};

/* One kind of event that a run stops at. */
struct tbd_nearest_wish {
    const char *question; /* "TYPE where CONTEXT" */
    uint64_t count;       /* the how many-th from the position; 0: the next */
    /* The instruction at the position counts, too: what it does has not happened yet. */
    bool with_own;
};

/* TBD_OK also if there is no such event; *out_is_nearest: it is nearest->event now. */
TBD_MUST_CHECK enum tbd_status tbd_nearest_look(struct tbd_nearest *nearest,
                                                const struct tbd_nearest_wish *wish,
                                                bool *out_is_nearest);

#endif
