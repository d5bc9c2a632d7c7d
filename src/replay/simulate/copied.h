// SPDX-License-Identifier: MIT
/* copied.h - which bytes of what an instruction writes it has only moved there
 *
 * Of a value in 64 bits, a lane of a register or a piece of memory, that an instruction writes: where its bytes were before the
 * instruction, if it left them as they were.  A pair of pointers that went through a vector register is found so, each by itself. */
#ifndef TBD_REPLAY_SIMULATE_COPIED_H
#define TBD_REPLAY_SIMULATE_COPIED_H

#include "replay/simulate/insn.h"

enum tbd_copied_from {
    TBD_COPIED_NOT, /* calculated, or the table does not say how */
    TBD_COPIED_FROM_PLACE,
    TBD_COPIED_FROM_MEMORY,
    TBD_COPIED_FROM_CONSTANT,
};

struct tbd_copied {
    enum tbd_copied_from from;
    uint16_t number;   /* PLACE: which; MEMORY: index in the instruction's `memory` */
    uint8_t first;     /* of its bytes, where the copied ones begin */
    uint8_t bytes;     /* how many: 1 to as many as were asked for; more may come from elsewhere */
    uint64_t constant; /* CONSTANT: the bytes, zeros above them */
};

/* Where `bytes` bytes from byte `first` on, within 8, of a place after the instruction came from.  A place that it does not write
 * comes from itself. */
struct tbd_copied tbd_copied_to_place(const struct tbd_sim_insn *insn, unsigned place,
                                      unsigned first, unsigned bytes);
/* The same of insn->memory[number], which it writes. */
struct tbd_copied tbd_copied_to_memory(const struct tbd_sim_insn *insn, size_t number,
                                       unsigned first, unsigned bytes);

#endif
