// SPDX-License-Identifier: MIT
/* meaning.h - one condition at one event: which memory it reads, and whether it would hold with the
 * memory of another time
 *
 * The registers and the frame stay those of the event. */
#ifndef TBD_QUERY_MEANING_H
#define TBD_QUERY_MEANING_H

#include "query/condition/expr.h"
#include "query/session/session.h"

struct tbd_meaning;

/* `text` is a condition on events of the event's type. */
TBD_MUST_CHECK enum tbd_status tbd_meaning_open(struct tbd_session *session, const char *text,
                                                const struct tbd_event *event,
                                                struct tbd_meaning **out);
void tbd_meaning_close(struct tbd_meaning *meaning); /* NULL is fine */
/* Does the condition depend on the function's frame, so that it concerns this call only? */
bool tbd_meaning_is_local(const struct tbd_meaning *meaning);
uint64_t tbd_meaning_frame(const struct tbd_meaning *meaning); /* CFA; 0: not known */
/* Memory that the condition reads at the event, up to `max` ranges; returns how many there are. */
size_t tbd_meaning_reads(struct tbd_meaning *meaning, struct tbd_range64 *out, size_t max);
/* *out says whether the condition holds with memory as of `position`; false: it has no value
 * then. */
bool tbd_meaning_value(struct tbd_meaning *meaning, struct tbd_position position, bool *out);

#endif
