// SPDX-License-Identifier: MIT
/* take.h - a process that runs comes under the engine, and is let go again
 *
 * One thread is borrowed and maps the engine, which starts its collector, while all others run.  Then all are stopped, the engine
 * takes the signal handlers and says where each thread goes on, and all go on (format/probe/takeover.h).
 *
 * What is in the way is said before anything has changed; what fails later is undone. */
#ifndef TBD_QUERY_TAKE_H
#define TBD_QUERY_TAKE_H

#include "query/text/query_error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tbd_taken {
    size_t threads;
    uint64_t stopped_ns; /* for how long all threads stood still */
};

/* `options`: as in TBD_OPTIONS.  `records`: they ask for a recording, in which threads take turns. */
/* Threads that would stand still for longer than the option `pause` says go on as they were, and it is tried again some times; each time is said on
 * stderr. */
bool tbd_take(pid_t pid, const char *options, bool records, struct tbd_taken *out,
              struct tbd_query_error *error);

/* It goes on natively; returns when it does. */
bool tbd_let_go_process(pid_t pid, struct tbd_query_error *error);

#endif
