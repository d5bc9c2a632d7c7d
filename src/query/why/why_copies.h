// SPDX-License-Identifier: MIT
/* why_copies.h - what an instruction has only moved to where a value is
 *
 * Byte by byte, as the table of instructions says (replay/simulate/copied.h): a pointer that was stored as the upper half of a vector
 * register came from there, and not from the register's first bytes. */
#ifndef TBD_QUERY_WHY_COPIES_H
#define TBD_QUERY_WHY_COPIES_H

#include "query/debuginfo/dwarf_location.h"
#include "query/why/why_inputs.h"
#include "replay/simulate/insn.h"

/* Some bytes of what an instruction writes. */
struct tbd_why_part {
    ZydisRegister reg; /* the whole one; ZYDIS_REGISTER_NONE: memory */
    uint64_t first;    /* byte of the register, or of what is stored */
    uint64_t bytes;
};

/* The simulation's place of the register's lane that the byte is in; TBD_PLACE_COUNT: it has none. */
unsigned tbd_why_place_of(ZydisRegister whole, uint64_t byte);
/* The register that a place is in, and where in it; ZYDIS_REGISTER_NONE: in no such register. */
ZydisRegister tbd_why_register_of(unsigned place, uint32_t *byte);

/* "$rax", "$xmm3", and how many bytes of it; ZYDIS_REGISTER_NONE: no such register can be asked about. */
ZydisRegister tbd_why_register_named(const char *text, uint64_t *bytes);
/* The whole register that the value is in, or is a result of, and how many bytes of it; ZYDIS_REGISTER_NONE: there is none. */
ZydisRegister tbd_why_register_of_value(const struct tbd_data *data, uint64_t *bytes);

/* False: the bytes of the register are those that it had before. */
bool tbd_why_writes_part(const struct tbd_sim_insn *insn, const struct tbd_why_part *part);
/* True: each byte was only moved; `out` has where they came from, one after the other.  Of more than TBD_WHY_INPUTS_MAX pieces the
 * first ones.  `out` is borrowed from `decoded`, the same instruction. */
bool tbd_why_copies(const struct tbd_sim_insn *insn, const struct tbd_why_insn *decoded,
                    const struct tbd_why_part *part, struct tbd_why_inputs *out);
/* The part of an input that an instruction copies which the table does not have, byte for byte; of one that is repeated, from what
 * its first round copies on. */
void tbd_why_take_part(const struct tbd_why_insn *decoded, const struct tbd_why_part *part,
                       struct tbd_why_input *input);

#define TBD_WHY_REGISTER_TEXT 48
/* "rax", "bytes 8 to 15 of xmm0"; returns `out`. */
const char *tbd_why_register_text(const struct tbd_why_input *input,
                                  char out[TBD_WHY_REGISTER_TEXT]);

#endif
