// SPDX-License-Identifier: MIT
/* guard_places.h - the system calls of the C library that change signal masks and handlers (hooks/probes/guard.h)
 *
 * One thread. */
#ifndef TBD_QUERY_GUARD_PLACES_H
#define TBD_QUERY_GUARD_PLACES_H

#include "query/places/running_process.h"

struct tbd_guard_places {
    struct tbd_probe_places
        blocks; /* rt_sigprocmask with SIG_BLOCK: nobody comes there to get an earlier mask back */
    struct tbd_probe_places others;
};

/* False: no memory.  None found is no error. */
bool tbd_guard_places_find(struct tbd_probe_process *process, struct tbd_guard_places *out);
void tbd_guard_places_free(struct tbd_guard_places *places);

#endif
