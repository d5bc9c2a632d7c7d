// SPDX-License-Identifier: MIT
/* probe_refused.h - probes are placed; places that the engine refuses are left out, and said
 *
 * A clause of which nothing is left is an error.  One thread. */
#ifndef TBD_QUERY_PROBE_REFUSED_H
#define TBD_QUERY_PROBE_REFUSED_H

#include "query/probe/probe_client.h"
#include "query/probe/probe_places.h"

/* Probes at the places of the first look; those that are refused are taken out of `places`. */
bool tbd_probes_place(struct tbd_probe_client *client, struct tbd_script_places *places,
                      struct tbd_query_error *error);
/* At those that a later look has found. */
bool tbd_probes_place_fresh(struct tbd_probe_client *client, struct tbd_script_places *places,
                            struct tbd_query_error *error);

#endif
