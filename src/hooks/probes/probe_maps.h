// SPDX-License-Identifier: MIT
/* probe_maps.h - maps of a session: counts, sums, distributions under a key
 *
 * In shared memory, filled by all threads at once without a lock: an entry is claimed by one atomic exchange,
 * and its values change by atomic additions.  Context: SIG. */
#ifndef TBD_HOOKS_PROBE_MAPS_H
#define TBD_HOOKS_PROBE_MAPS_H

#include "hooks/probes/probe_session.h"

void tbd_probe_put(struct tbd_probe_session *session, uint32_t map, uint32_t shard,
                   const uint64_t *key, int64_t value);

#endif
