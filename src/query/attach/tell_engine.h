// SPDX-License-Identifier: MIT
/* tell_engine.h - tells the engine in a process that something is asked of it: by a SIGTRAP with a value (base/layout.h)
 *
 * The kernel drops a signal while another of the same number waits in the process, whatever its value: a request that comes
 * right after another one would be lost. */
#ifndef TBD_QUERY_TELL_ENGINE_H
#define TBD_QUERY_TELL_ENGINE_H

#include "query/text/query_error.h"

#include <stdint.h>
#include <sys/types.h>

/* When no other one waits, or after five seconds.  A process that does not catch the signal has left the engine, and would
 * die of it: nothing is sent then, and that is no error. */
bool tbd_tell_engine(pid_t pid, uint64_t value, struct tbd_query_error *error);

/* Has the engine done, or begun, what was asked?  Waits for that, `ms` milliseconds at most. */
typedef bool (*tbd_has_heard)(void *context, int ms);

/* Tells it again each second until it has heard.  False: it has not after `ms` milliseconds (TBD_BUSY), or cannot be told. */
bool tbd_tell_engine_until(pid_t pid, uint64_t value, tbd_has_heard has_heard, void *context,
                           int ms, struct tbd_query_error *error);

/* Has it ended, or does it within `ms` milliseconds?  One that nobody has waited for has, too: only its descriptor tells that (pidfd_open,
 * Linux 5.3); without one (-1) it is only asked whether there is such a process, after that time. */
bool tbd_process_ends(pid_t pid, int descriptor, int ms);

#endif
