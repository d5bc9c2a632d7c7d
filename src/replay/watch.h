// SPDX-License-Identifier: MIT
/* watch.h - limits the time and memory of a replay process
 *
 * The process runs code from a trace, so its own report of progress cannot be trusted.  The driver
 * uses its own clock, and the kernel's figures of the process: processor time and memory.
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
    uint64_t next_ms; /* time of the next check */
    uint64_t idle_ms; /* time since when it has used no processor time */
    uint64_t most_idle_ms;
    uint64_t used_ns;    /* processor time at the last check */
    uint64_t most_ns;    /* limit of processor time */
    uint64_t most_bytes; /* limit of memory; 0: not known */
};

/* Called when work on `blocks` block entries begins; 0: its start-up. */
void tbd_watch_begin(struct tbd_process_watch *watch, pid_t pid, uint64_t blocks);
/* Called repeatedly while it works.  TBD_STUBDIED: it hangs, or uses too much; `why` says which. */
TBD_MUST_CHECK enum tbd_status tbd_watch_check(struct tbd_process_watch *watch,
                                               struct tbd_error *why);

#endif
