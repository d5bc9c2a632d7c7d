// SPDX-License-Identifier: MIT
/* decoded.h - the program's instruction at a place, decoded once and found again
 *
 * The engine executes some instructions itself, each time that the program comes there (shared_insn.c).  To decode one takes
 * longer than to run it: the library needs vector registers saved and, without fsgsbase, three system calls.  Context: APP. */
#ifndef TBD_HOOKS_DECODED_H
#define TBD_HOOKS_DECODED_H

#include "patcher/decode.h"

/* The program's instruction at `pc`, of at most `limit` bytes, whatever traps are in it.  `bytes` receives them.  It is valid
 * until the next call.  NULL: there is none, or it cannot be read. */
const struct tbd_insn *tbd_decoded(uint64_t pc, uint8_t bytes[TBD_INSN_MAX_BYTES], size_t limit);

#endif
