// SPDX-License-Identifier: MIT
/* moved.h - values that an instruction only moves, adds numbers to, or gives
 *
 * Of a value that an instruction writes, or an address that it uses: which place before the instruction it came from, and what was
 * added to it.  Several instructions, one after the other, are told in the same way. */
#ifndef TBD_REPLAY_SIMULATE_MOVED_H
#define TBD_REPLAY_SIMULATE_MOVED_H

#include "replay/simulate/insn.h"

struct tbd_moved {
    enum {
        TBD_MOVED_LOST = 0, /* calculated in another way, or the table does not say how */
        TBD_MOVED_NUMBER,
        TBD_MOVED_WHOLE,
        TBD_MOVED_LOW /* the low 32 bits */
    } kind;
    uint32_t from; /* WHOLE, LOW: place before, ... */
    uint64_t by;   /* ... to which this is added; NUMBER: the value */
};

/* A place after the instruction.  One that it does not write comes from itself. */
struct tbd_moved tbd_moved_to_place(const struct tbd_sim_insn *insn, unsigned place);
/* What one of its slots holds, as an address does. */
struct tbd_moved tbd_moved_to_slot(const struct tbd_sim_insn *insn, uint8_t slot);
/* `then` is about a place whose value `first` tells: both in one. */
struct tbd_moved tbd_moved_both(struct tbd_moved first, struct tbd_moved then);

#endif
