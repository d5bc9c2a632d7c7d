// SPDX-License-Identifier: MIT
/* load_range.h - the memory in `loads of RANGE` (query/triggers/trigger_text.h), in a process that runs or is about to
 *
 *     0xFROM-0xTO          to before the second
 *     [MODULE!]VARIABLE    of the program, else of any module
 *     [MODULE!].SECTION    .data, .bss, ... of the program, or of that module
 *     heap                 what the program gets from brk() */
#ifndef TBD_QUERY_LOAD_RANGE_H
#define TBD_QUERY_LOAD_RANGE_H

#include "format/probe/trigger.h"
#include "query/places/running_process.h"

/* text[at, end) names it.  Fills in the addresses alone.  On failure *error points at it; TBD_NOTFOUND: a module that comes later may
 * have it. */
bool tbd_load_range(struct tbd_probe_process *process, const char *text, size_t at, size_t end,
                    struct tbd_trigger_loads *out, struct tbd_query_error *error);

#endif
