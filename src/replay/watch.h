// SPDX-License-Identifier: MIT
/* watch.h - whether a replay process that works on a plan still should
 *
 * It runs code out of a trace, and what it says of its progress would be that code's word.  So the
 * driver looks at its own clock, and at what the kernel says of the process: the processor time it
 * has used, and the memory it holds.
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_WATCH_H
#define TBD_REPLAY_WATCH_H

#include "base/status.h"

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct tbd_process_watch {
    pid_t pid;
    clockid_t clock;  /* of the process */
    uint64_t next_ms; /* the next look */
    uint64_t idle_ms; /* since then it has used no processor time */
    uint64_t most_idle_ms;
    uint64_t used_ns;    /* processor time at the last look */
    uint64_t most_ns;    /* at most so much */
    uint64_t most_bytes; /* of memory; 0: nobody knows */
};

/* Work begins that has `blocks` block entries; 0: it starts up. */
void tbd_watch_begin(struct tbd_process_watch *watch, pid_t pid, uint64_t blocks);
/* To be called again and again while it works.  TBD_STUBDIED: it hangs, or takes too much; `why`
 * says which. */
TBD_MUST_CHECK enum tbd_status tbd_watch_look(struct tbd_process_watch *watch,
                                              struct tbd_error *why);

#endif
