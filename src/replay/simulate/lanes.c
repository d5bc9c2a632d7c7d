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

/* Not of instructions that do nothing else. */
static bool is_broadcast(const struct tbd_build *b)
{
    return b->insn.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID &&
           !b->insn.avx.broadcast.is_static;
}

bool tbd_lanes_are_plain(const struct tbd_build *b)
{
    return !tbd_lanes_are_masked(b) && !is_broadcast(b);
}

bool tbd_lanes_are_zeroed(const struct tbd_build *b)
{
    return b->insn.avx.mask.mode == ZYDIS_MASK_MODE_ZEROING ||
           b->insn.avx.mask.mode == ZYDIS_MASK_MODE_CONTROL_ZEROING;
}

uint8_t tbd_lanes_mask(struct tbd_build *b)
{
    return tbd_build_read_place(b, TBD_PLACE_MASK +
                                       (unsigned)ZydisRegisterGetId(b->insn.avx.mask.reg));
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

uint8_t tbd_lanes_choose(struct tbd_build *b, uint8_t bits, uint8_t x, uint8_t y)
{
    return tbd_build_binary(b, TBD_OP_OR, 64, tbd_build_binary(b, TBD_OP_AND, 64, x, bits),
                            tbd_build_binary(b, TBD_OP_ANDN, 64, bits, y));
}

void tbd_lanes_merge(struct tbd_build *b, struct tbd_lanes *lanes, const struct tbd_lanes *old)
{
    unsigned width = b->operand[0].element_size;
    uint8_t mask = tbd_lanes_mask(b);

    if (width != 8 && width != 16 && width != 32 && width != 64) {
        b->full = true;
        return;
    }
    for (unsigned k = 0; k < lanes->count; k++) {
        uint8_t bits = tbd_build_slot(b);

        tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_SPREAD,
                                              .aux = (uint8_t)(k * (64 / width)),
                                              .shift = (uint8_t)width,
                                              .d = bits,
                                              .a = mask });
        lanes->slot[k] = old ? tbd_lanes_choose(b, bits, lanes->slot[k], old->slot[k])
                             : tbd_build_binary(b, TBD_OP_AND, 64, lanes->slot[k], bits);
    }
}

static void merge_with_before(struct tbd_build *b, unsigned i, struct tbd_lanes *lanes)
{
    struct tbd_lanes before;

    if (tbd_lanes_are_zeroed(b)) {
        tbd_lanes_merge(b, lanes, NULL);
        return;
    }
    before = tbd_lanes_read(b, i, 8 * lanes->count);
    tbd_lanes_merge(b, lanes, &before);
}

void tbd_lanes_write(struct tbd_build *b, unsigned i, const struct tbd_lanes *all)
{
    struct tbd_lanes merged = *all;
    const struct tbd_lanes *lanes = &merged;

    if (tbd_lanes_are_masked(b))
        merge_with_before(b, i, &merged);
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
    return b->insn.operand_count_visible >= 2 && !is_broadcast(b) && tbd_lanes_bytes(b) % 8 == 0 &&
           tbd_lanes_bytes(b) >= 8 && tbd_lanes_bytes(b) <= 8 * TBD_LANES_MAX;
}
