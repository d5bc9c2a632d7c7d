// SPDX-License-Identifier: MIT
/* part_request.h - functions and source files among the parts of the option `parts`, as code of a process that is about to run
 *
 *     libz.so.1 4M;[MODULE:]FUNCTION() [SIZE];FILE.c [SIZE];modules
 *
 * Modules are the engine's business: it knows them when they are mapped (format/stream/part_name.h).  Of a source file it is the code of
 * the units that were compiled from it, functions of headers in them included. */
#ifndef TBD_QUERY_PART_REQUEST_H
#define TBD_QUERY_PART_REQUEST_H

#include "format/probe/trigger.h"
#include "query/places/running_process.h"

struct tbd_part_names {
    char text[512]; /* with "; " between them, cut if there are too many */
};

/* Fills in the ranges of those that there are, and which wait, because no module has their code and there is a loader (out->loader);
 * `what` gets TBD_REQUEST_PARTS.  False: *error says what is wrong in `text` with the first of the others. */
bool tbd_part_request(struct tbd_probe_process *process, const char *text,
                      struct tbd_crash_request *out, struct tbd_part_names *waiting,
                      struct tbd_query_error *error);

#endif
