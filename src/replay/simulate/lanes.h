// SPDX-License-Identifier: MIT
/* lanes.h - vector operands of an instruction that is being described
 *
 * A vector is its lanes of 64 bits.  An instruction with a VEX or EVEX prefix makes all lanes above its operand 0; an
 * older one leaves them alone.  Masked instructions are not described. */
#ifndef TBD_REPLAY_SIMULATE_LANES_H
#define TBD_REPLAY_SIMULATE_LANES_H

#include "replay/simulate/insn_build.h"

enum { TBD_LANES_MAX = 8 };

/* The lanes of one operand; `count` of them are used. */
struct tbd_lanes {
    uint8_t slot[TBD_LANES_MAX];
    unsigned count;
};

/* Is operand i a vector register? */
bool tbd_lanes_are_in(const struct tbd_build *b, unsigned i);
bool tbd_lanes_are_legacy(const struct tbd_build *b);
bool tbd_lanes_are_masked(const struct tbd_build *b);
/* With a mask or a broadcast it is another instruction. */
bool tbd_lanes_are_plain(const struct tbd_build *b);
unsigned tbd_lanes_place(const struct tbd_build *b, unsigned i, unsigned lane);

/* The lowest `bytes` of operand i, a vector register or memory; the last lane may be narrower. */
struct tbd_lanes tbd_lanes_read(struct tbd_build *b, unsigned i, unsigned bytes);
/* Zeros above the lanes, unless the instruction leaves them alone. */
void tbd_lanes_clear_above(struct tbd_build *b, unsigned i, unsigned lane);
void tbd_lanes_write(struct tbd_build *b, unsigned i, const struct tbd_lanes *lanes);

/* The size of operand 0. */
unsigned tbd_lanes_bytes(const struct tbd_build *b);
/* Operands that a two-operand form reads: 0 and 1; with three operands 1 and 2. */
unsigned tbd_lanes_first_source(const struct tbd_build *b);
unsigned tbd_lanes_last_operand(const struct tbd_build *b);
/* Are its operands whole lanes, of a plain instruction? */
bool tbd_lanes_fit(const struct tbd_build *b);

#endif
