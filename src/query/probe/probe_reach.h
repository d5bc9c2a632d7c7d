// SPDX-License-Identifier: MIT
/* probe_reach.h - the keeper of a process, which may have to come first */
#ifndef TBD_QUERY_PROBE_REACH_H
#define TBD_QUERY_PROBE_REACH_H

#include "query/probe/probe_client.h"
#include "query/probe/probe_script.h"

/* The engine comes into a process that was not armed.  A connection that is there stays. */
bool tbd_probe_reach(struct tbd_probe_client *client, pid_t pid, struct tbd_query_error *error);

/* The keeper of the program before sees by a connection that there is another one, and goes. */
void tbd_probe_await_keeper_end(pid_t pid);

/* A deputy that answers in the keeper's place brings it back (deputy.h). */
bool tbd_probe_open_session(struct tbd_probe_client *client, pid_t pid,
                            const struct tbd_probe_script *script, uint32_t flags,
                            struct tbd_query_error *error);

#endif
