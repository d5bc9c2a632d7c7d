// SPDX-License-Identifier: MIT
/* lap_worker.h - the collector condenses laps of rings that wait (format/stream/handed_laps.h), where a processor has nothing else to do
 *
 * One thread calls these, once; the work is another one's. */
#ifndef TBD_ORGANIZER_LAP_WORKER_H
#define TBD_ORGANIZER_LAP_WORKER_H

#include <stdbool.h>
#include <stddef.h>

/* For a stream with rings, of `bytes` bytes, that stays where it is until tbd_lap_worker_end().  Nothing begins if laps are not
 * condensed, or if there is one processor only. */
void tbd_lap_worker_begin(void *stream, size_t bytes);
/* False: the stream has to stay where it is until this process ends. */
bool tbd_lap_worker_end(void);

#endif
