// SPDX-License-Identifier: MIT
/* page_file.h - the page as one file, which needs no server and nothing from elsewhere */
#ifndef TBD_QUERY_PAGE_FILE_H
#define TBD_QUERY_PAGE_FILE_H

#include "query/page/page_request.h"
#include "query/session/session.h"

/* Writes what the page shows at `place`, and the answers of `lines`, if there are any. */
TBD_MUST_CHECK enum tbd_status tbd_page_write(struct tbd_session *session,
                                              const struct tbd_page_place *place, size_t count,
                                              char *const *lines, FILE *out);

#endif
