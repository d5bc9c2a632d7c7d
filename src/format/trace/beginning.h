// SPDX-License-Identifier: MIT
/* beginning.h - recordings whose first window has not ended: there is a directory, but no trace yet
 *
 * The organizer holds a lock on the directory from its making on (FORMAT-4). */
#ifndef TBD_FORMAT_BEGINNING_H
#define TBD_FORMAT_BEGINNING_H

#include <stdbool.h>
#include <stddef.h>

/* Is this open directory without a header one of a recording that has only begun? */
bool tbd_is_beginning(int dir);
/* The path of such a recording of this user, the one begun last, below the trace root. */
bool tbd_find_beginning(const char *root, char *out, size_t bytes);

#endif
