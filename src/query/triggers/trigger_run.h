// SPDX-License-Identifier: MIT
/* trigger_run.h - `tbd set`: from the command line to the engine's answer
 *
 * Exit status: 0 done, 1 a name is not there, 2 wrong usage or text, 4 the system or the engine refused something. */
#ifndef TBD_QUERY_TRIGGER_RUN_H
#define TBD_QUERY_TRIGGER_RUN_H

/* argv[0] is the word `set`: set PID NAME=VALUE ...; for the collector, before the program runs:
 * set --stream-fd N PID NAME=VALUE ... */
int tbd_set_run(int argc, char **argv);

#endif
