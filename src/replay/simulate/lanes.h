// SPDX-License-Identifier: MIT
/* lanes.h - vector operands of an instruction that is being described
 *
 * A vector is its lanes of 64 bits.  An instruction with a VEX or EVEX prefix makes all lanes above its operand 0; an
 * older one leaves them alone.  With a mask (AVX-512) elements that it leaves out stay as they are, or become 0. */
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
/* Are elements that the mask leaves out 0? */
bool tbd_lanes_are_zeroed(const struct tbd_build *b);
/* The slot of the instruction's mask. */
uint8_t tbd_lanes_mask(struct tbd_build *b);
unsigned tbd_lanes_place(const struct tbd_build *b, unsigned i, unsigned lane);

/* The lowest `bytes` of operand i, a vector register or memory; the last lane may be narrower. */
struct tbd_lanes tbd_lanes_read(struct tbd_build *b, unsigned i, unsigned bytes);
/* Zeros above the lanes, unless the instruction leaves them alone. */
void tbd_lanes_clear_above(struct tbd_build *b, unsigned i, unsigned lane);
/* Where the instruction has a mask, only its elements. */
void tbd_lanes_write(struct tbd_build *b, unsigned i, const struct tbd_lanes *all);
/* The bits of x where `bits` has ones, else those of y. */
uint8_t tbd_lanes_choose(struct tbd_build *b, uint8_t bits, uint8_t x, uint8_t y);
/* Elements that the mask leaves out are those of `old`; without it 0. */
void tbd_lanes_merge(struct tbd_build *b, struct tbd_lanes *lanes, const struct tbd_lanes *old);

/* The size of operand 0. */
unsigned tbd_lanes_bytes(const struct tbd_build *b);
/* Operands that a two-operand form reads: 0 and 1; with three operands 1 and 2. */
unsigned tbd_lanes_first_source(const struct tbd_build *b);
unsigned tbd_lanes_last_operand(const struct tbd_build *b);
/* Are its operands whole lanes, without broadcast? */
bool tbd_lanes_fit(const struct tbd_build *b);

#endif
