// SPDX-License-Identifier: MIT
/* deputy.h - takes an armed program over that its user must not attach to
 *
 *   tbd record -p PID --TBD_PROBE_RUN--> keeper --executes--> deputy --LEAVE--> keeper (ends)
 *                                                             |
 *                                                             +--ptrace--> program
 *
 * Yama (kernel.yama.ptrace_scope 1) lets only ancestors of a process attach to it, and whom it has named with their children: an armed
 * program has named its keeper.  The keeper must not be there while a program is taken over, so the keeper's child has itself named
 * first.  Afterwards it stays beside the program in the keeper's place, under the keeper's address, so that the program can be taken over
 * again, or get its keeper back for probes.  It ends with the program, and by `tbd stop` of a process that is not recorded. */
#ifndef TBD_QUERY_DEPUTY_H
#define TBD_QUERY_DEPUTY_H

#include "query/text/query_error.h"

#include <sys/types.h>

/* ---- who asks ---- */

/* `how`: "record", "crash", or "arm", which brings the keeper back; options as in TBD_OPTIONS.  False: there is neither keeper nor deputy, or
 * it refuses.  What the deputy says goes to stderr; *out_status is its exit status. */
bool tbd_deputy_ask(pid_t pid, const char *how, const char *options, int *out_status,
                    struct tbd_query_error *error);

/* ---- the deputy ---- */

/* argv: the word `deputy`, `record` or `crash`, the process, the options.  Descriptor 3 takes the status. */
int tbd_deputy_run(int argc, char **argv);

#endif
