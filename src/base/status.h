// SPDX-License-Identifier: MIT
/* status.h - the return values of functions outside the engine's system-call layer
 *
 * TBD_OK is 0.  Numbers are ABI (status.def).  tbd_status_text() may be called
 * from any context, before relocation too. */
#ifndef TBD_BASE_STATUS_H
#define TBD_BASE_STATUS_H

#include <stdint.h>

enum tbd_status {
#define X(name, number, message) TBD_##name = (number),
#include "base/status.def"
#undef X
};

/* Static text; never NULL, "unknown status" for a number that is not in the table. */
const char *tbd_status_text(enum tbd_status status);

#define TBD_MUST_CHECK __attribute__((warn_unused_result))

/* Says which file and which offset an error is about.  Filled by readers on failure. */
struct tbd_error {
    enum tbd_status status;
    uint64_t offset;  /* byte offset in `file`, 0 if none applies */
    char file[256];   /* path as given; if longer, its front is replaced by "..." */
    char detail[256]; /* one clause, no newline */
};

#endif
