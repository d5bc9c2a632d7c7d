// SPDX-License-Identifier: MIT
/* page_answer.h - answers a question of the page in the session
 *
 * The session has what the question says (position, thread, frame, span) and nothing of the one before. */
#ifndef TBD_QUERY_PAGE_ANSWER_H
#define TBD_QUERY_PAGE_ANSWER_H

#include "query/page/page_request.h"
#include "query/session/session.h"

#include <jansson.h>

/* One object, owned by the caller; docs/JSON.md has its keys. */
json_t *tbd_page_answer(struct tbd_session *session, const struct tbd_page_question *question);

#endif
