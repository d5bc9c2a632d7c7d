// SPDX-License-Identifier: MIT
/* trace_folder.h - makes the folder of a trace, or of a crash dump: ROOT/PROGRAM-N */
#ifndef TBD_FORMAT_TRACE_FOLDER_H
#define TBD_FORMAT_TRACE_FOLDER_H

#include "base/status.h"

#include <stddef.h>

struct tbd_trace_folder {
    int root_dir; /* -1: not open */
    int dir;
    char *path; /* owned; NULL if there is none */
};

/* With a number that no other has; mode 0700.  On failure what has been made so far is in *out, with errno. */
TBD_MUST_CHECK enum tbd_status tbd_trace_folder_make(const char *root, const char *program,
                                                     struct tbd_trace_folder *out);

/* Makes a name that is one path component and not hidden. */
void tbd_plain_name(const char *program, char *out, size_t bytes);

#endif
