// SPDX-License-Identifier: MIT
/* probe_records_read.h - takes records out of the rings, in the order in which they were written
 *
 * Rings are memory that the program can write to: lengths and counters are checked.  One thread. */
#ifndef TBD_QUERY_PROBE_RECORDS_READ_H
#define TBD_QUERY_PROBE_RECORDS_READ_H

#include "query/probe/probe_show.h"

/* Shows all records that are complete; how many. */
size_t tbd_records_take(struct tbd_probe_output *output);
/* Waits until there may be some, at most `ms` milliseconds. */
void tbd_records_wait(struct tbd_probe_shared *shared, int ms);
/* The threads that have asked `asked` times go on (TBD_PROBE_AWAIT). */
void tbd_records_answer(struct tbd_probe_shared *shared, uint32_t asked);

#endif
