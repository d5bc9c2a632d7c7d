// SPDX-License-Identifier: MIT
/* decoded.h - the program's instruction at a place, decoded once and found again
 *
 * The engine executes some instructions itself, each time that the program comes there (shared_insn.c).  To decode one takes
 * longer than to run it: the library needs vector registers saved and, without fsgsbase, three system calls.  Context: APP. */
#ifndef TBD_HOOKS_DECODED_H
#define TBD_HOOKS_DECODED_H

#include "patcher/decode.h"

/* tbd_decode() of at most `limit` of these bytes at `pc`, which *out borrows.  False: they are no instruction. */
bool tbd_decoded(struct tbd_insn *out, uint64_t pc, const uint8_t *bytes, size_t limit);

#endif
