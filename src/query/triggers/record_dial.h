// SPDX-License-Identifier: MIT
/* record_dial.h - how much a running program records beside its rings (mode=crash, option record): to read, and to change */
#ifndef TBD_QUERY_RECORD_DIAL_H
#define TBD_QUERY_RECORD_DIAL_H

#include "query/text/query_error.h"

#include <sys/types.h>

struct tbd_dialled {
    pid_t pid;
    const char *
        program; /* the file that the process must run: its number may be another's by now; NULL: any */
};

/* The setting, 0 to TBD_RECORD_MOST. */
bool tbd_record_dial_read(const struct tbd_dialled *process, uint32_t *out,
                          struct tbd_query_error *error);
/* Changes it, and waits up to `ms` milliseconds for the engine's answer. */
bool tbd_record_dial_turn(const struct tbd_dialled *process, uint32_t setting, int ms,
                          struct tbd_query_error *error);

#endif
