// SPDX-License-Identifier: MIT
/* probe_places.h - where a script's clauses are in a process, at the beginning and when libraries have come or gone
 *
 * A clause that is nowhere may wait (--pending).  Then the dynamic loader has a probe, too, at the function that it
 * calls for debuggers whenever it has mapped or unmapped something; a thread waits there until the
 * places have been looked for again, so that no call of a new library is missed.  One thread. */
#ifndef TBD_QUERY_PROBE_PLACES_H
#define TBD_QUERY_PROBE_PLACES_H

#include "query/probe/probe_script.h"

struct tbd_script_places {
    struct tbd_probe_script *script;   /* borrowed, as is the next */
    struct tbd_probe_process *process; /* read again each time */
    struct tbd_probe_places now;       /* that have a probe, or are to have one */
    struct tbd_probe_places gone;      /* whose library has gone since the last look */
    size_t fresh;                      /* in `now`: the first one that this look has found */
    size_t
        ends[TBD_SCRIPT_MAX_CLAUSES]; /* where each clause's end in `now`, after the first look */
    bool may_wait;
    size_t loaders; /* probes in the loader; in `now` like all others */
    bool waits[TBD_SCRIPT_MAX_CLAUSES];
};

/* Fails if a clause is nowhere and must not wait. */
bool tbd_script_places_find(struct tbd_script_places *places, struct tbd_query_error *error);
/* Looks at what the process has mapped since then; also for clauses that have places, which get more. */
bool tbd_script_places_again(struct tbd_script_places *places, struct tbd_query_error *error);
/* How many clauses are still nowhere. */
size_t tbd_script_places_waiting(const struct tbd_script_places *places);
/* Must somebody look from time to time, because no loader says that something has come? */
bool tbd_script_places_polls(const struct tbd_script_places *places);
void tbd_script_places_free(struct tbd_script_places *places);

#endif
