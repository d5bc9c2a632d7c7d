// SPDX-License-Identifier: MIT
/* stops_claim.h - one process at a time counts a trace of native play
 *
 * The claim is a lock of a folder in the trace's, which the kernel gives back when its holder dies.  Who waits for it leaves a
 * mark in the folder of the trace that is being made: a holder that nobody has waited for hurries then, or ends.
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_STOPS_CLAIM_H
#define TBD_REPLAY_STOPS_CLAIM_H

#include "base/status.h"

#include <stdbool.h>

struct tbd_stops_claim {
    int trace;        /* the trace's folder */
    int stops;        /* whose lock is the claim; -1: the trace has no stops */
    const char *root; /* borrowed until the claim ends */
};

/* `root`: the folder of the trace that is being made.  `is_aside`: TBD_BUSY, at once, if another one has it; else this waits. */
TBD_MUST_CHECK enum tbd_status tbd_stops_claim(struct tbd_stops_claim *out, const char *path,
                                               const char *root, bool is_aside,
                                               struct tbd_error *why);
void tbd_stops_claim_end(struct tbd_stops_claim *claim);
/* Does another one wait? */
bool tbd_stops_claim_is_wanted(const struct tbd_stops_claim *claim);

#endif
