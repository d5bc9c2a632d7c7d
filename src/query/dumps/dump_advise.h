// SPDX-License-Identifier: MIT
/* dump_advise.h - advise: what should be recorded so that more values before a crash are known, by a dry run on a dump */
#ifndef TBD_QUERY_DUMP_ADVISE_H
#define TBD_QUERY_DUMP_ADVISE_H

#include "query/commands/commands.h"

enum tbd_exit tbd_dump_run_advise(struct tbd_command_run *run);

#endif
