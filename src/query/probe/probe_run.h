// SPDX-License-Identifier: MIT
/* probe_run.h - `tbd probe`: from the command line to the last map
 *
 * Exit status: 0 done, 1 the script names what is not there, 2 wrong usage or script, 4 the system or the
 * engine refused something. */
#ifndef TBD_QUERY_PROBE_RUN_H
#define TBD_QUERY_PROBE_RUN_H

/* argv[0] is the word `probe`. */
int tbd_probe_run(int argc, char **argv);

#endif
