// SPDX-License-Identifier: MIT
/* probe_start.h - starts a program that waits for its probes (tbd arm --wait=yes).  One thread. */
#ifndef TBD_QUERY_PROBE_START_H
#define TBD_QUERY_PROBE_START_H

#include "query/probe/probe_client.h"

#include <sys/types.h>

/* Returns when its keeper answers; the client is then connected. */
bool tbd_probe_start_armed(char **command, pid_t *out, struct tbd_probe_client *client,
                           struct tbd_query_error *error);
/* Runs the tool `tbd` with these words, whose first is its name, and waits for it.  Its exit status; 126: it cannot run. */
int tbd_probe_run_tbd(char **argv);
/* Waits for its end, which `kills` brings about.  Returns `status`, or, if that is 0, the program's as a
 * shell has it. */
int tbd_probe_end_armed(pid_t pid, bool kills, int status);

#endif
