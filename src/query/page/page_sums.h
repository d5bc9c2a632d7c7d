// SPDX-License-Identifier: MIT
/* page_sums.h - what happened along a stretch of the time line, for each of its pixels
 *
 * From the trace's index alone: no window is read, whatever the stretch. */
#ifndef TBD_QUERY_PAGE_SUMS_H
#define TBD_QUERY_PAGE_SUMS_H

#include "query/page/page_request.h"
#include "format/trace/trace.h"

#include <jansson.h>

/* Puts the sums of question->pixels equal parts of [since, until) into `answer`.  The events of a window that lies
 * in several parts are spread evenly. */
void tbd_page_put_sums(const struct tbd_trace *trace, const struct tbd_page_question *question,
                       json_t *answer);

#endif
