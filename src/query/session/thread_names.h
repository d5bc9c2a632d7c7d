// SPDX-License-Identifier: MIT
/* thread_names.h - what threads call themselves */
#ifndef TBD_QUERY_THREAD_NAMES_H
#define TBD_QUERY_THREAD_NAMES_H

#include "query/session/session.h"

#define TBD_THREAD_NAME_BYTES 16u /* as the kernel keeps it, with the NUL */

/* A thread that has not named itself has the name that its creator had when it made the thread; the
 * first thread has the program's name. */
void tbd_thread_name(struct tbd_session *session, const struct tbd_thread_info *thread,
                     char out[TBD_THREAD_NAME_BYTES]);

#endif
