// SPDX-License-Identifier: MIT
/* beginning.h - recordings whose first window has not ended: there is a directory, but no trace yet
 *
 * The organizer holds a lock on the directory from its making on (FORMAT-4).  Where it was killed so early, the directory
 * stays, and never becomes a trace. */
#ifndef TBD_FORMAT_BEGINNING_H
#define TBD_FORMAT_BEGINNING_H

#include <stdbool.h>
#include <stddef.h>

enum tbd_beginning {
    TBD_NOT_BEGINNING, /* a trace, or no directory of ours */
    TBD_BEGINNING,     /* an organizer writes the first window */
    TBD_BEGUN_ONLY,    /* it died before it had */
};

/* What this open directory is. */
enum tbd_beginning tbd_beginning_of(int dir);
/* The path of such a recording of this user, the one begun last, below the trace root. */
bool tbd_find_beginning(const char *root, char *out, size_t bytes);

#endif
