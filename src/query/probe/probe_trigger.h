// SPDX-License-Identifier: MIT
/* probe_trigger.h - what begins when a script's session has ended: a recording, a dump
 *
 * `tbd` beside this program does it (record -p, crash -p, dump, stop), so it needs ptrace, and takes some
 * milliseconds: the program has run on meanwhile.  One thread. */
#ifndef TBD_QUERY_PROBE_TRIGGER_H
#define TBD_QUERY_PROBE_TRIGGER_H

#include "query/probe/probe_script.h"

#include <signal.h>
#include <sys/types.h>

/* Returns when the recording or the dump is done, or the process has ended; *wants_end cuts a recording short.
 * The exit status of what failed, else 0. */
int tbd_probe_follow_trigger(pid_t pid, const struct tbd_script_print *trigger,
                             const volatile sig_atomic_t *wants_end);

#endif
