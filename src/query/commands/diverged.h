// SPDX-License-Identifier: MIT
/* diverged.h - explains a divergence: what play did before it, and what often causes it */
#ifndef TBD_QUERY_DIVERGED_H
#define TBD_QUERY_DIVERGED_H

#include "query/session/session.h"

#include <jansson.h>

/* The usual cause of a difference with this description; NULL: not known. */
const char *tbd_diverged_cause(const char *what);
/* The last block entries and messages of play up to the divergence, as strings; empty where the
 * window's events were not kept. */
json_t *tbd_diverged_before(struct tbd_session *session, const struct tbd_divergence *divergence);

#endif
