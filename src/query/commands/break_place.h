// SPDX-License-Identifier: MIT
/* break_place.h - the question about the events at a place that a user names */
#ifndef TBD_QUERY_BREAK_PLACE_H
#define TBD_QUERY_BREAK_PLACE_H

#include "query/commands/commands.h"

/* "TYPE where PLACE" for text[0, length): a function or a pattern, perhaps in quotation marks, FILE:LINE, a line of the current file, or
 * *ADDRESS.  The caller frees it.  NULL: *out_why says why not, or is NULL if memory ran out. */
char *tbd_break_place(struct tbd_session *session, const char *text, size_t length,
                      const char **out_why);

#endif
