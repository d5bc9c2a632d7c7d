// SPDX-License-Identifier: MIT
/* path_merged.h - `path merged`: the rows of all threads in one order, as far as it is known */
#ifndef TBD_QUERY_PATH_MERGED_H
#define TBD_QUERY_PATH_MERGED_H

#include "query/commands/path_rows.h"

/* The last `max` rows.  Says on standard error what cannot be known. */
TBD_MUST_CHECK enum tbd_status tbd_path_merged_add(struct tbd_path_rows *path, size_t max,
                                                   struct tbd_rows *rows);

#endif
