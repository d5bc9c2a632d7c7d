// SPDX-License-Identifier: MIT
/* bookmarks.h - names for positions, kept in the trace's folder */
#ifndef TBD_QUERY_BOOKMARKS_H
#define TBD_QUERY_BOOKMARKS_H

#include "query/commands/commands.h"

/* A line with the bookmarks outside quotes replaced; the caller's to free, NULL without memory. */
char *tbd_bookmarks_expand(struct tbd_session *session, const char *line);

#endif
