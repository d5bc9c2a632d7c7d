// SPDX-License-Identifier: MIT
/* probe_uses.h - which pieces of code run at a place
 *
 * Uses are taken from the session's memory.  Those that went serve again when no handler can be in one of
 * them any more.  Context: keeper. */
#ifndef TBD_HOOKS_PROBES_PROBE_USES_H
#define TBD_HOOKS_PROBES_PROBE_USES_H

#include "hooks/probes/probe_table.h"

/* False: there are as many as a session can have, or a thread stays inside of the code of one. */
bool tbd_uses_add(struct tbd_probe *probe, uint32_t code);

/* All of the probe. */
void tbd_uses_take(struct tbd_probe *probe);

/* Waits until no handler is inside of what it has found before.  False: a thread stays inside, or has died there. */
bool tbd_uses_await_quiet(void);

#endif
