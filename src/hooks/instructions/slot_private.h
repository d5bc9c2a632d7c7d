// SPDX-License-Identifier: MIT
/* slot_private.h - shared by the three files that implement slot.h: slot.c (slots, and running
 * them), slot_describe.c (operands, by the decoder), slot_operands.c (their addresses, from the
 * program's registers).  Context: APP. */
#ifndef TBD_HOOKS_SLOT_PRIVATE_H
#define TBD_HOOKS_SLOT_PRIVATE_H

#include "hooks/instructions/slot.h"

#include <Zydis/Decoder.h>

#define TBD_SLOT_INSN_MAX 15

enum segment { SEGMENT_NONE, SEGMENT_FS, SEGMENT_GS };

struct tbd_slot {
    uint64_t pc;
    uint64_t code; /* address of the copy */
    uint8_t bytes[TBD_SLOT_INSN_MAX];
    uint8_t length;
    bool uses_gs;
    bool has_store; /* the fields below are valid */
    /* enum segment: its base is added to the address of the store, or of the */
    uint8_t segment;
    /* operand of a string instruction at rsi */
    uint8_t base, index; /* enum tbd_reg; NONE */
    uint8_t scale;
    uint8_t vector_index; /* register number; NONE */
    uint8_t index_bytes;  /* of an element of the vector index */
    uint8_t mask;         /* number of the mask register; 0 = none */
    uint8_t vector_mask;  /* number of the vector register whose sign bits are the mask; NONE */
    uint8_t vector_data;  /* number of a gather's target or a scatter's source; NONE */
    uint8_t tile;         /* number of the tile that is loaded or stored; NONE */
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
    uint32_t status; /* ZYDIS_STATUS_..., or success */
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

void tbd_slot_describe(struct tbd_slot *slot, const struct tbd_slot_decoded *d);

#endif
