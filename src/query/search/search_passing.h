// SPDX-License-Identifier: MIT
/* search_passing.h - judges the events of a window while its replay passes, without keeping them */
#ifndef TBD_QUERY_SEARCH_PASSING_H
#define TBD_QUERY_SEARCH_PASSING_H

#include "query/search/search_private.h"

/* Counts the matches of window `index` into run->total, or hands them on (run->search->each).  TBD_NOTFOUND: it has to be walked, and
 * nothing was handed on. */
TBD_MUST_CHECK enum tbd_status tbd_search_passing(struct tbd_search_run *run, uint32_t index);

#endif
