// SPDX-License-Identifier: MIT
/* event_lines.h - events as lines of text, by the hundred thousand
 *
 * The same lines as by way of an event's object (output.h), in a tenth of the time: what is said of an instruction is made
 * once, by way of such an object.  One thread. */
#ifndef TBD_QUERY_EVENT_LINES_H
#define TBD_QUERY_EVENT_LINES_H

#include "query/output/output.h"

struct tbd_event_lines;

/* Borrows the session.  NULL without memory. */
struct tbd_event_lines *tbd_event_lines_new(struct tbd_session *session);
void tbd_event_lines_free(struct tbd_event_lines *lines); /* NULL is fine */
/* Prints it, which is what tbd_output_print_event() would print.  False: nothing is printed, because more is to be said of the event than
 * is known here, or because JSON or wall-clock time is wanted.  `lines` may be NULL. */
bool tbd_event_lines_print(struct tbd_event_lines *lines, const struct tbd_event *event, FILE *out);

#endif
