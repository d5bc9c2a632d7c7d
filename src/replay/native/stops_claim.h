// SPDX-License-Identifier: MIT
/* stops_claim.h - one process at a time counts a trace of native play
 *
 * The claim is a lock of a folder in the trace's, which the kernel gives back when its holder dies.  Who waits for it leaves a
 * mark in the folder of the trace that is being made: a holder that nobody has waited for hurries then, or ends.  One that hurries writes
 * beside it how far it is.
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_STOPS_CLAIM_H
#define TBD_REPLAY_STOPS_CLAIM_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct tbd_stops_claim {
    int trace;        /* the trace's folder */
    int stops;        /* whose lock is the claim; -1: the trace has no stops */
    const char *root; /* borrowed until the claim ends */
};

/* What is called while another one has the claim: it has counted `done` of `count` windows, 0 of 0 if that is not known. */
struct tbd_stops_waiting {
    void (*show)(void *context, uint32_t done, uint32_t count); /* may be NULL */
    void *context;
};

/* `root`: the folder of the trace that is being made.  `waiting` NULL: TBD_BUSY, at once, if another one has it; else this waits. */
TBD_MUST_CHECK enum tbd_status tbd_stops_claim(struct tbd_stops_claim *out, const char *path,
                                               const char *root,
                                               const struct tbd_stops_waiting *waiting,
                                               struct tbd_error *why);
void tbd_stops_claim_end(struct tbd_stops_claim *claim);
/* Does another one wait? */
bool tbd_stops_claim_is_wanted(const struct tbd_stops_claim *claim);
/* The holder tells who waits how far it is. */
void tbd_stops_claim_tell(const struct tbd_stops_claim *claim, uint32_t done, uint32_t count);

#endif
