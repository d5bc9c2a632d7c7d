// SPDX-License-Identifier: MIT
/* page_command.h - `tbdq view`: the trace in a browser */
#ifndef TBD_QUERY_PAGE_COMMAND_H
#define TBD_QUERY_PAGE_COMMAND_H

#include "query/commands/commands.h"

/* Carries `words` out if they are `view`; false: they are something else. */
bool tbd_page_command(struct tbd_session *session, size_t count, char *const *words, FILE *out,
                      enum tbd_exit *result);

#endif
