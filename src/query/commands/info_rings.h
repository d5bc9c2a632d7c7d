// SPDX-License-Identifier: MIT
/* info_rings.h - info's part about what a crash dump's threads ran last */
#ifndef TBD_QUERY_COMMANDS_INFO_RINGS_H
#define TBD_QUERY_COMMANDS_INFO_RINGS_H

#include "query/session/session.h"

#include <jansson.h>
#include <stdio.h>

/* How much there is of each thread, and what is beside it.  {"error": WHY} if the rings cannot be read. */
json_t *tbd_info_rings_object(struct tbd_session *session);
void tbd_info_rings_print(struct tbd_session *session, FILE *out);

/* All of info, for a dump that has rings only. */
json_t *tbd_info_killed_object(struct tbd_session *session);
void tbd_info_killed_print(struct tbd_session *session, FILE *out);

#endif
