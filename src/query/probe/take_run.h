// SPDX-License-Identifier: MIT
/* take_run.h - `tbd record -p PID`, `tbd crash -p PID`, and `tbd stop PID`
 *
 * Exit status as probe_run.h. */
#ifndef TBD_QUERY_TAKE_RUN_H
#define TBD_QUERY_TAKE_RUN_H

#include <sys/types.h>

/* By ptrace, after the keeper has gone that may wait beside it.  What came of it is said. */
int tbd_take_process(pid_t pid, const char *how, const char *options);
/* argv: the word `take`, `record` or `crash`, the process, the options as in TBD_OPTIONS. */
int tbd_take_run(int argc, char **argv);
/* argv: the word `stop`, the process. */
int tbd_stop_run(int argc, char **argv);

#endif
