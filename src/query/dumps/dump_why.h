// SPDX-License-Identifier: MIT
/* dump_why.h - why in a dump: which instructions made a value, as far as rings and values tell (query/past) */
#ifndef TBD_QUERY_DUMP_WHY_H
#define TBD_QUERY_DUMP_WHY_H

#include "query/commands/commands.h"

enum tbd_exit tbd_dump_run_why(struct tbd_command_run *run);

#endif
