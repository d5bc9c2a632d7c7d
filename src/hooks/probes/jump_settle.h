// SPDX-License-Identifier: MIT
/* jump_settle.h - a signal that comes while a thread is in the code of a jump
 *
 * The program sees it before the place or after it, never there: registers become those of the place if nothing was
 * counted yet; the instruction is carried out if it was; in between the signal is deferred, and comes again when the probe is
 * done.  Context: SIG, called first in each handler of the program. */
#ifndef TBD_HOOKS_PROBES_JUMP_SETTLE_H
#define TBD_HOOKS_PROBES_JUMP_SETTLE_H

#include "hooks/probes/jump.h"
#include "hooks/threads/sigframe.h"

enum tbd_settled {
    TBD_SETTLED_ELSEWHERE, /* the thread was in code of the program */
    TBD_SETTLED_THERE,     /* it is now */
    TBD_SETTLED_DEFERRED,  /* all signals are blocked; the caller sends this one again */
};

/* `info` as the handler got it. */
enum tbd_settled tbd_jump_settle(int signal, const uint8_t *info, struct tbd_ucontext *context);

#endif
