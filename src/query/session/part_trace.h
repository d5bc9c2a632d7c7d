// SPDX-License-Identifier: MIT
/* part_trace.h - a recording of native play, some of whose windows are counted, for questions about these alone
 *
 * To count a window takes one replay of it; to know its times takes those of all windows before it.  A question about the end of
 * a long run should not wait for them.  So a trace is made beside, in which the windows asked about have their blocks, and all others
 * their stops.  Times are those of this trace alone: a position is written as its window's number and the block entries in it
 * (position_text.h), which stays right when all is counted.  A question that comes to another window says so here, and is
 * asked again about more windows, until there is nothing that it could have missed. */
#ifndef TBD_QUERY_PART_TRACE_H
#define TBD_QUERY_PART_TRACE_H

#include "format/trace/trace.h"

#include <stdbool.h>
#include <stdint.h>

struct tbd_counted_part {
    uint32_t from, to;   /* windows [from, to) are counted */
    uint32_t windows;    /* of the recording */
    uint32_t dropped;    /* before them: a window's number is its index and this */
    uint64_t first, end; /* times of the counted windows: [first, end) */
    char path[4096];     /* of the recording */
    int home;            /* owned; the recording's folder, where the user's position is kept */
    /* set, by any thread, as soon as the question needs a window before, after, or times */
    bool wants_before, wants_after, wants_all;
};

/* Does the trace at `path` (NULL: the latest) have windows without times, which can be counted?  Then *part has its path and their number. */
TBD_MUST_CHECK bool tbd_part_find(struct tbd_counted_part *part, const char *path);

/* *out: such a trace, with windows [from, to) of *part, or more. */
TBD_MUST_CHECK enum tbd_status tbd_part_open(struct tbd_counted_part *part, unsigned workers,
                                             struct tbd_trace **out, struct tbd_error *why);
void tbd_part_close(struct tbd_counted_part *part);

/* Is the window counted?  If it is not, the part says that it is wanted.  NULL: all are counted. */
bool tbd_part_has(struct tbd_counted_part *part, uint32_t window);

#endif
