// SPDX-License-Identifier: MIT
/* user_path.h - folders for the user's files that belong to no trace (XDG Base Directory
 * Specification) */
#ifndef TBD_QUERY_USER_PATH_H
#define TBD_QUERY_USER_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* $VARIABLE/tbd/NAME if that is an absolute path, else $HOME/BELOW_HOME/tbd/NAME.  All folders
 * above are made, with mode 0700; a NAME that ends with a slash is one of these folders. False if
 * there is no such place. */
bool tbd_user_path(const char *variable, const char *below_home, const char *name, char *out,
                   size_t bytes);

#endif
