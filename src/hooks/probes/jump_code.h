// SPDX-License-Identifier: MIT
/* jump_code.h - writes the code that a jump leads to (jump.h).  Context: keeper. */
#ifndef TBD_HOOKS_PROBES_JUMP_CODE_H
#define TBD_HOOKS_PROBES_JUMP_CODE_H

#include "hooks/probes/jump.h"

#define TBD_JUMP_CODE_BYTES 4096u /* at most */

/* `out` has the jump, and where it starts; the code goes to `emit`.  False: it does not fit, or does not reach. */
bool tbd_jump_write(struct tbd_jump_code *out, struct tbd_emit *emit);

/* Does it do what the probe's uses are now? */
bool tbd_jump_serves(const struct tbd_jump_code *code);

#endif
