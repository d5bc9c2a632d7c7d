// SPDX-License-Identifier: MIT
/* cached_folder.h - folders of the user's cache that are made once and used until others push them out
 *
 *   CACHE/tbd/KIND/NAME/
 *
 * A folder gets its name when it is complete.  The TBD_CACHED_FOLDERS of a kind that were made last are kept.  It belongs to the
 * user, who alone may write there: the cache's own folder is 0700. */
#ifndef TBD_QUERY_CACHED_FOLDER_H
#define TBD_QUERY_CACHED_FOLDER_H

#include "base/status.h"

#include <stddef.h>

#define TBD_CACHED_FOLDERS 4u

struct tbd_cached_folder {
    const char *kind; /* "packed/" */
    const char *name; /* says what it was made from */
    /* fills the folder `dir`, whose path is `path`, until it is complete */
    enum tbd_status (*fill)(void *context, int dir, const char *path, struct tbd_error *why);
    void *context;
};

/* Its path in `out`; it is made if it is not there.  TBD_NOTFOUND: there is no cache. */
TBD_MUST_CHECK enum tbd_status tbd_cached_folder(const struct tbd_cached_folder *wanted, char *out,
                                                 size_t bytes, struct tbd_error *why);

#endif
