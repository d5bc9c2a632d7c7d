// SPDX-License-Identifier: MIT
/* dump_goto.h - goto in a dump: to an instruction that ran */
#ifndef TBD_QUERY_DUMP_GOTO_H
#define TBD_QUERY_DUMP_GOTO_H

#include "query/commands/commands.h"

enum tbd_exit tbd_dump_run_goto(struct tbd_command_run *run);

#endif
