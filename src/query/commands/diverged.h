// SPDX-License-Identifier: MIT
/* diverged.h - explains a divergence: what play did before it, and what often causes it */
#ifndef TBD_QUERY_DIVERGED_H
#define TBD_QUERY_DIVERGED_H

#include "query/session/session.h"

#include "query/commands/commands.h"

#include <jansson.h>

/* The usual cause of a difference with this description; NULL: not known. */
const char *tbd_diverged_cause(const char *what);
/* The last block entries and messages of play up to the divergence, as strings; empty where the
 * window's events were not kept. */
json_t *tbd_diverged_before(struct tbd_session *session, const struct tbd_divergence *divergence);
/* A message of play's log, as text.  False: there is none. */
bool tbd_diverged_logged(const struct tbd_window *window, uint64_t index, char *out, size_t bytes);
/* cmd_verify.c: replays all windows.  TBD_OK: *out is the first that diverges; TBD_NOTFOUND: none does. */
TBD_MUST_CHECK enum tbd_status tbd_verify_find(struct tbd_command_run *run, uint32_t *out);

#endif
