// SPDX-License-Identifier: MIT
/* dump_commands.h - commands of recordings that a crash dump answers from its rings
 *
 * goto, calls, lines, count and bt need only what ran; commands about values answer as far as these follow from the dump's end
 * (dump_values.h).  What a question would need beyond that is named in the answer. */
#ifndef TBD_QUERY_DUMP_COMMANDS_H
#define TBD_QUERY_DUMP_COMMANDS_H

#include "query/commands/commands.h"

struct tbd_dump_command {
    const char *name;
    enum tbd_exit (*run)(struct tbd_command_run *run);
};

/* Before any command on a dump: one that has rings only takes from them which files were mapped. */
TBD_MUST_CHECK enum tbd_status tbd_dump_begin(struct tbd_session *session);
/* The version for dumps of this command with these arguments; NULL: there is none. */
const struct tbd_dump_command *tbd_dump_command_find(const struct tbd_command_run *run,
                                                     const char *name);

#endif
