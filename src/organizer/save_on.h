// SPDX-License-Identifier: MIT
/* save_on.h - a trace that is not wanted is removed when its program has ended */
#ifndef TBD_ORGANIZER_SAVE_ON_H
#define TBD_ORGANIZER_SAVE_ON_H

#include <stdbool.h>

enum tbd_save_on {
    TBD_SAVE_ON_ANY = 0, /* every trace is kept */
    TBD_SAVE_ON_EXIT,    /* the program has ended, and not become another one */
    TBD_SAVE_ON_FAILURE, /* with a status other than 0, or of a signal */
    TBD_SAVE_ON_SIGNAL
};

/* "exit", "failure", "signal", "always"; false: it is none of them. */
bool tbd_save_on_read(const char *text, enum tbd_save_on *out);
/* Removes the trace at `path` unless it is to be kept; `latest` of its root then leads to the newest one that is left.
 * True: it was removed. */
bool tbd_save_on_end(const char *path, enum tbd_save_on when);

#endif
