// SPDX-License-Identifier: MIT
/* slot_private.h - what the three files of slot.h share: slot.c (where instructions lie and run), slot_describe.c (what
 * they access, as the decoder says), slot_operands.c (where that is, with the program's registers).  Context: APP. */
#ifndef TBD_HOOKS_SLOT_PRIVATE_H
#define TBD_HOOKS_SLOT_PRIVATE_H

#include "hooks/instructions/slot.h"

#include <Zydis/Decoder.h>

#define TBD_SLOT_INSN_MAX 15

enum segment { SEGMENT_NONE, SEGMENT_FS, SEGMENT_GS };

struct tbd_slot {
    uint64_t pc;
    uint64_t code; /* where the copy is */
    uint8_t bytes[TBD_SLOT_INSN_MAX];
    uint8_t length;
    bool uses_gs;
    bool has_store; /* the fields below are valid */
    /* enum segment: whose base is added to the address of the store, or of what a */
    uint8_t segment;
    /* string instruction reads at rsi */
    uint8_t base, index; /* enum tbd_reg; NONE */
    uint8_t scale;
    uint8_t vector_index; /* register number; NONE */
    uint8_t index_bytes;  /* of an element of the vector index */
    uint8_t mask;         /* number of the mask register; 0 = none */
    uint8_t vector_mask;  /* of the vector register whose elements' signs are the mask; NONE */
    uint8_t vector_data;  /* of a gather's target, a scatter's source; NONE */
    bool is_compress;     /* the chosen elements are stored side by side */
    uint16_t element_bytes;
    uint16_t element_count;
    uint8_t string_bytes;
    bool reads_string;
    bool has_narrow_addresses; /* address-size prefix */
    struct tbd_string_loads string_loads;
    int64_t disp; /* rip-relative operands: the address itself */
};

#define NONE 0xffu

struct tbd_slot_decoded {
    const uint8_t *bytes;
    uint32_t length;
    bool ok;
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

void tbd_slot_describe(struct tbd_slot *slot, const struct tbd_slot_decoded *d);

#endif
