// SPDX-License-Identifier: MIT
/* jump_inline.h - what a probe does, as machine code
 *
 * For clauses that need nothing but registers, numbers and counters without a key: these cost some nanoseconds so.  All
 * others are carried out by probe_code.h.  The code uses ax, cx, dx, which are saved, and the frame (jump.h).
 * Context: keeper. */
#ifndef TBD_HOOKS_PROBES_JUMP_INLINE_H
#define TBD_HOOKS_PROBES_JUMP_INLINE_H

#include "hooks/probes/jump.h"
#include "hooks/probes/probe_session.h"

/* Can all uses of the probe be written so? */
bool tbd_inline_can(const struct tbd_probe_session *session, const struct tbd_probe *probe);
void tbd_inline_write(const struct tbd_probe_session *session, const struct tbd_probe *probe,
                      struct tbd_emit *e);

#endif
