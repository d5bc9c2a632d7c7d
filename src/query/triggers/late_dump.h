// SPDX-License-Identifier: MIT
/* late_dump.h - the dump of a program that has just ended: its collector is still writing it */
#ifndef TBD_QUERY_LATE_DUMP_H
#define TBD_QUERY_LATE_DUMP_H

/* Waits until no program of this user that ran with rings (mode=crash) has ended without its dump being written, for some seconds at
 * most: who asks just after `kill -9` means that program, and not the one before. */
void tbd_late_dump_await(void);

#endif
