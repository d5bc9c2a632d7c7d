// SPDX-License-Identifier: MIT
/* line_starts.h - which instructions of a block begin the code of a source line
 *
 * An instruction begins a line's code if its line is known and differs from the line of the byte
 * before it. So a line begins only once, even if a jump enters it in the middle, as for the
 * condition of a `for`. */
#ifndef TBD_QUERY_LINE_STARTS_H
#define TBD_QUERY_LINE_STARTS_H

#include "base/status.h"

#include <stdint.h>

struct tbd_session;
struct tbd_line_starts;

/* Borrows the session. */
TBD_MUST_CHECK enum tbd_status tbd_line_starts_new(struct tbd_session *session,
                                                   struct tbd_line_starts **out);
void tbd_line_starts_free(struct tbd_line_starts *starts); /* NULL is fine */
/* Bit i: instruction i of block `id`, as mapped in `window`.  Computed once per block. */
uint64_t tbd_line_starts_of(struct tbd_line_starts *starts, uint32_t window, uint32_t id);

#endif
