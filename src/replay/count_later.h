// SPDX-License-Identifier: MIT
/* count_later.h - counts the windows of traces that were recorded uncounted, after their programs' end or while they run
 *
 * Nobody waits for it.  It may end, or be killed, at any moment: each window is as before, or counted.  Questions and commands
 * that change the trace go on meanwhile; if one does change it, counting ends.
 * Context: ORG. */
#ifndef TBD_REPLAY_COUNT_LATER_H
#define TBD_REPLAY_COUNT_LATER_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tbd_count_later {
    uint64_t disk_left;             /* bytes of the disk that stay free */
    bool (*goes_on)(void *context); /* asked before each window */
    /* for native play; see count_stops.h.  All but `start` may be NULL */
    bool (*start)(void *context, pthread_t *out, void *(*run)(void *), void *argument);
    void (*be_idle)(void);
    void (*ended)(void *context);
    void *context;
};

/* The trace at `path`, if it has ended and is this user's.  What cannot be counted stays as it is. */
TBD_MUST_CHECK enum tbd_status tbd_count_trace(const char *path, const struct tbd_count_later *how,
                                               struct tbd_error *why);

/* The same, and all other traces of its trace root for which this is called meanwhile: one process at a time counts there, another
 * one returns TBD_BUSY at once and leaves its trace to the first. */
TBD_MUST_CHECK enum tbd_status tbd_count_traces(const char *path, const struct tbd_count_later *how,
                                                struct tbd_error *why);

/* Native play: counts the trace while it is recorded, and what is left then.  One process at a time does so in a trace root, another one
 * returns TBD_BUSY at once.  It ends if the disk would not have the space that the recording may yet need. */
TBD_MUST_CHECK enum tbd_status tbd_count_while_recorded(const char *path,
                                                        const struct tbd_count_later *how,
                                                        struct tbd_error *why);

#endif
