// SPDX-License-Identifier: MIT
/* trigger_request.h - triggers as text, for a process that runs or is about to: places and code for its engine */
#ifndef TBD_QUERY_TRIGGER_REQUEST_H
#define TBD_QUERY_TRIGGER_REQUEST_H

#include "format/probe/trigger.h"
#include "query/places/running_process.h"

/* What becomes of a trigger whose place is in no module. */
enum tbd_trigger_absent {
    TBD_ABSENT_FAILS,
    TBD_ABSENT_WAITS, /* other errors fail */
    TBD_ABSENT_FITS,  /* nothing fails: they were accepted before, and modules have come and gone */
};

/* The parts that `crash` has, which is of the rings' memory, are those that a trigger may name.  Fills in everything but `state`; `what` gets TBD_REQUEST_TRIGGERS.  On failure *error says what is wrong in `text`. */
bool tbd_trigger_request(struct tbd_probe_process *process, const char *text,
                         enum tbd_trigger_absent absent, const struct tbd_crash *crash,
                         struct tbd_crash_request *out, struct tbd_query_error *error);
/* Where the dynamic loader says that modules have come or gone; 0: there is no loader. */
uint64_t tbd_trigger_loader(struct tbd_probe_process *process);

#endif
