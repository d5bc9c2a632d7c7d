// SPDX-License-Identifier: MIT
/* trigger_request.h - triggers as text, for a process that runs or is about to: places and code for its engine */
#ifndef TBD_QUERY_TRIGGER_REQUEST_H
#define TBD_QUERY_TRIGGER_REQUEST_H

#include "format/probe/trigger.h"
#include "query/places/running_process.h"

/* Fills in everything but `state`; `what` gets TBD_REQUEST_TRIGGERS.  On failure *error says what is wrong in `text`. */
bool tbd_trigger_request(struct tbd_probe_process *process, const char *text,
                         struct tbd_crash_request *out, struct tbd_query_error *error);

#endif
