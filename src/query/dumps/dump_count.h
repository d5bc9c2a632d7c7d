// SPDX-License-Identifier: MIT
/* dump_count.h - count in a dump: what its rings have of each function, line, module or thread */
#ifndef TBD_QUERY_DUMP_COUNT_H
#define TBD_QUERY_DUMP_COUNT_H

#include "query/commands/commands.h"

enum tbd_exit tbd_dump_run_count(struct tbd_command_run *run);

#endif
