// SPDX-License-Identifier: MIT
/* raise.h - writes the events of windows to disk again, or only their counts
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_RAISE_H
#define TBD_REPLAY_RAISE_H

#include "format/writer/writer.h"
#include "replay/replay.h"

/* Is the window below that level, and did play write it?  Merged windows, and those too large to
 * load with their events, cannot be raised: replays answer questions about them. */
bool tbd_raise_is_possible(const struct tbd_trace *trace, uint32_t window, enum tbd_level level);

/* Is the window uncounted, and would a replay count it? */
bool tbd_raise_is_left(const struct tbd_trace *trace, uint32_t window);

struct tbd_raise {
    struct tbd_trace *trace;   /* opened after the last change of the trace */
    struct tbd_writer *writer; /* of the same trace */
    uint32_t from, to;         /* windows' indices */
    /* 3: their files become as play wrote them; 2: they are counted.  Windows that cannot be raised stay unchanged. */
    enum tbd_level level;
    unsigned workers; /* processes that replay at the same time, >= 1 */
    /* Only uncounted windows are raised.  Those whose replay fails stay unchanged, and others may change the trace between two windows, which ends this with
     * TBD_BUSY. */
    bool is_aside;
    uint64_t
        most_bytes; /* that files may grow by; 0: no limit.  Windows for which there is no space stay unchanged */
    /* May be NULL.  Called when `done` of `wanted` windows are raised; false ends it with TBD_INTERRUPTED.  What was raised stays so. */
    bool (*goes_on)(void *context, uint32_t done, uint32_t wanted);
    void *context;
};

/* `*out_raised` is the number of windows that were raised, also after a failure. */
TBD_MUST_CHECK enum tbd_status tbd_raise_windows(const struct tbd_raise *raise,
                                                 uint32_t *out_raised,
                                                 struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

#endif
