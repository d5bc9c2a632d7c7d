// SPDX-License-Identifier: MIT
/* search_tally.h - the events of a window that must be replayed, counted by place (for search.c) */
#ifndef TBD_QUERY_SEARCH_TALLY_H
#define TBD_QUERY_SEARCH_TALLY_H

#include "query/search/search_private.h"

/* Gives all events of the window to `each_many`, those at the same instruction at once, and adds their number to run->total.  TBD_NOTFOUND:
 * the question or the window is not of those that can be counted so, and nothing was given. */
TBD_MUST_CHECK enum tbd_status tbd_search_tally(struct tbd_search_run *run, uint32_t window);

#endif
