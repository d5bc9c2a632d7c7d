// SPDX-License-Identifier: MIT
/* path_text.h - the source lines that `path` shows: each file is read once */
#ifndef TBD_QUERY_PATH_TEXT_H
#define TBD_QUERY_PATH_TEXT_H

#include "query/debuginfo/dwarf_file.h"

struct tbd_path_source; /* a list of files; NULL: none was read yet */

/* NULL: not known.  Borrowed until the list is freed. */
const char *tbd_path_text(struct tbd_path_source **sources, const struct tbd_source_line *line);
void tbd_path_texts_free(struct tbd_path_source *sources);

#endif
