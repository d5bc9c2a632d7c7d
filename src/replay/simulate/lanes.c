// SPDX-License-Identifier: MIT
/* lanes.c - see lanes.h */
#include "replay/simulate/lanes.h"

bool tbd_lanes_are_in(const struct tbd_build *b, unsigned i)
{
    return tbd_build_is_register(b, i) && b->operand[i].reg.value >= ZYDIS_REGISTER_XMM0 &&
           b->operand[i].reg.value <= ZYDIS_REGISTER_ZMM31;
}

bool tbd_lanes_are_legacy(const struct tbd_build *b)
{
    return b->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
}

bool tbd_lanes_are_masked(const struct tbd_build *b)
{
    return b->insn.avx.mask.reg != ZYDIS_REGISTER_NONE && b->insn.avx.mask.reg != ZYDIS_REGISTER_K0;
}

bool tbd_lanes_are_plain(const struct tbd_build *b)
{
    return !tbd_lanes_are_masked(b) && b->insn.avx.broadcast.mode == ZYDIS_BROADCAST_MODE_INVALID;
}

unsigned tbd_lanes_place(const struct tbd_build *b, unsigned i, unsigned lane)
{
    return TBD_PLACE_VECTOR + 8u * (unsigned)ZydisRegisterGetId(b->operand[i].reg.value) + lane;
}

struct tbd_lanes tbd_lanes_read(struct tbd_build *b, unsigned i, unsigned bytes)
{
    struct tbd_lanes out = { .count = (bytes + 7) / 8 };

    for (unsigned k = 0; k < out.count && k < TBD_LANES_MAX; k++) {
        unsigned width = bytes - 8 * k < 8 ? bytes - 8 * k : 8;

        if (!tbd_lanes_are_in(b, i)) {
            out.slot[k] = tbd_build_load(b, tbd_build_address(b, i, true), 8 * k, width);
            continue;
        }
        out.slot[k] = tbd_build_read_place(b, tbd_lanes_place(b, i, k));
        if (width < 8)
            out.slot[k] = tbd_build_field(b, out.slot[k], 0, 8 * width);
    }
    return out;
}

void tbd_lanes_clear_above(struct tbd_build *b, unsigned i, unsigned lane)
{
    for (; !tbd_lanes_are_legacy(b) && lane < TBD_LANES_MAX; lane++)
        tbd_build_copy(b, tbd_lanes_place(b, i, lane), TBD_PLACE_COUNT);
}

void tbd_lanes_write(struct tbd_build *b, unsigned i, const struct tbd_lanes *lanes)
{
    if (!tbd_lanes_are_in(b, i)) {
        for (unsigned k = 0; k < lanes->count; k++)
            tbd_build_store(b, tbd_build_address(b, i, true), 8 * k, 8, lanes->slot[k]);
        return;
    }
    for (unsigned k = 0; k < lanes->count; k++)
        tbd_build_write_place(b, tbd_lanes_place(b, i, k), lanes->slot[k]);
    tbd_lanes_clear_above(b, i, lanes->count);
}

unsigned tbd_lanes_bytes(const struct tbd_build *b)
{
    return b->operand[0].size / 8u;
}

unsigned tbd_lanes_first_source(const struct tbd_build *b)
{
    return b->insn.operand_count_visible > 2 && !tbd_lanes_are_legacy(b)
               ? b->insn.operand_count_visible - 2u
               : 0;
}

unsigned tbd_lanes_last_operand(const struct tbd_build *b)
{
    return b->insn.operand_count_visible - 1u;
}

bool tbd_lanes_fit(const struct tbd_build *b)
{
    return b->insn.operand_count_visible >= 2 && tbd_lanes_are_plain(b) &&
           tbd_lanes_bytes(b) % 8 == 0 && tbd_lanes_bytes(b) >= 8 &&
           tbd_lanes_bytes(b) <= 8 * TBD_LANES_MAX;
}
