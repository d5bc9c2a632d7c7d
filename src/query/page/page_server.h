// SPDX-License-Identifier: MIT
/* page_server.h - serves the page to browsers on this machine */
#ifndef TBD_QUERY_PAGE_SERVER_H
#define TBD_QUERY_PAGE_SERVER_H

#include "query/page/page_request.h"
#include "query/session/session.h"

/* Listens at `port` of the loopback interface (0: any that is free), prints the page's address on `out`, and serves until
 * SIGINT comes.  Pages begin at `start`.  TBD_SYSTEM, with errno: it cannot listen there. */
TBD_MUST_CHECK enum tbd_status tbd_page_serve(struct tbd_session *session, uint16_t port,
                                              const struct tbd_page_place *start, FILE *out);

#endif
