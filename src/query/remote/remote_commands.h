// SPDX-License-Identifier: MIT
/* remote_commands.h - `tbdq serve` and `tbdq gdb`: commands of the shell alone, as they take tbdq's place */
#ifndef TBD_QUERY_REMOTE_COMMANDS_H
#define TBD_QUERY_REMOTE_COMMANDS_H

#include "query/commands/commands.h"

/* Is words[0] one of the two?  Then carries it out. */
bool tbd_remote_command(struct tbd_session *session, size_t count, char *const *words,
                        enum tbd_exit *out);

#endif
