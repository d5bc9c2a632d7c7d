// SPDX-License-Identifier: MIT
/* bookmarks.h - names for positions, kept in the trace's folder */
#ifndef TBD_QUERY_BOOKMARKS_H
#define TBD_QUERY_BOOKMARKS_H

#include "query/commands/commands.h"

/* The line with each bookmark outside quotes replaced by its position, as times; the caller frees it.  TBD_NOTIME: a position in a window is
 * not in the trace, session->why says why. */
TBD_MUST_CHECK enum tbd_status tbd_bookmarks_expand(struct tbd_session *session, const char *line,
                                                    char **out);

/* Calls `each` with every name. */
void tbd_bookmarks_each(struct tbd_session *session, void (*each)(void *context, const char *name),
                        void *context);

#endif
