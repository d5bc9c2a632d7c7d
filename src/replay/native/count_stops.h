// SPDX-License-Identifier: MIT
/* count_stops.h - a trace of native play becomes one like any other: a replay finds the blocks between its stops
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_COUNT_STOPS_H
#define TBD_REPLAY_COUNT_STOPS_H

#include "replay/replay.h"

#include <pthread.h>

/* Only windows [from, to) are counted; all others keep their stops as their blocks. */
struct tbd_stops_part {
    uint32_t from, to;
    const char *root; /* a folder, in which the new trace is made: TBD_STOPS_PART_NAME */
};

#define TBD_STOPS_PART_NAME "trace-1"

struct tbd_count_stops {
    const char *path; /* the trace */
    unsigned workers;
    /* nobody waits: TBD_BUSY while somebody else counts it.  As soon as somebody wants to, up to `helpers` workers of ordinary priority go on, in
     * threads that `start` makes; if it is NULL: TBD_INTERRUPTED */
    bool is_aside;
    unsigned helpers;
    bool (*start)(void *context, pthread_t *out, void *(*run)(void *), void *argument);
    void (*be_idle)(
        void); /* called first by each thread that replays, but for helpers; may be NULL */
    /* also while it is recorded: windows are counted as they come.  `ended`, which may be NULL, is called when it has ended */
    bool follows;
    void (*ended)(void *context);
    bool (*goes_on)(
        void *context); /* asked before each window; false: TBD_INTERRUPTED.  May be NULL */
    /* called after each window; may be NULL */
    void (*progress)(void *context, uint32_t done, uint32_t count);
    /* called while another one counts it: see struct tbd_stops_waiting.  May be NULL */
    void (*waits)(void *context, uint32_t done, uint32_t count);
    void *context;
    const struct tbd_stops_part *part; /* NULL: all windows; borrowed */
};

/* Replays all windows, and replaces the trace in one step.  TBD_OK also for a trace that is like any other already, which it may
 * have become by another one's hand: only one counts a trace at a time.
 * TBD_BUSY: it is still being recorded; with `follows`, TBD_INTERRUPTED and TBD_NOWINDOW: it could not be counted while it was.  Otherwise the trace stays as it was. */
TBD_MUST_CHECK enum tbd_status tbd_count_stops(const struct tbd_count_stops *how,
                                               struct tbd_error *why);

/* Makes a trace beside, of which only `part` is counted; the trace stays as it is.  Any number may do so at a time, each with a root
 * of its own.  TBD_NOTFOUND: all of it is counted by now. */
TBD_MUST_CHECK enum tbd_status tbd_count_stops_part(const struct tbd_count_stops *how,
                                                    struct tbd_error *why);

#endif
