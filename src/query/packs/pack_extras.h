// SPDX-License-Identifier: MIT
/* pack_extras.h - what a question needs beside the trace: debug files of its modules, and sources */
#ifndef TBD_QUERY_PACK_EXTRAS_H
#define TBD_QUERY_PACK_EXTRAS_H

#include "query/session/session.h"

/* Calls `each` with a name ("debug/BUILD-ID.debug", "sources/PATH") and a file, which stays this function's, until it
 * returns false. */
struct tbd_pack_sink {
    bool (*each)(void *context, const char *name, int fd);
    void *context;
};
bool tbd_pack_debug_files(struct tbd_session *session, const struct tbd_pack_sink *sink);
bool tbd_pack_sources(struct tbd_session *session, const struct tbd_pack_sink *sink);

#endif
