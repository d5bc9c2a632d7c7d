// SPDX-License-Identifier: MIT
/* ask_dump.h - `tbd dump PID`: a program that runs under `tbd crash` leaves a dump, and goes on
 *
 * Exit status: 0 the dump is written, 2 wrong usage, or no such program, 4 the program does not answer, or has ended before. */
#ifndef TBD_QUERY_ASK_DUMP_H
#define TBD_QUERY_ASK_DUMP_H

/* argv[0] is the word `dump`. */
int tbd_ask_dump_run(int argc, char **argv);

#endif
