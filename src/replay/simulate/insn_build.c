// SPDX-License-Identifier: MIT
/* insn_build.c - see insn_build.h */
#include "replay/simulate/insn_build.h"

#include "replay/simulate/bits.h"

#define GROW(b, array, count, limit)                                                               \
    ((b)->out.count < (limit) ? &(b)->array[(b)->out.count++] : ((b)->full = true, &(b)->array[0]))

uint8_t tbd_build_slot(struct tbd_build *b)
{
    if (b->out.slots == TBD_INSN_SLOTS - 1) {
        b->full = true;
        return 0;
    }
    return b->out.slots++;
}

uint8_t tbd_build_constant(struct tbd_build *b, uint64_t value)
{
    struct tbd_insn_constant *constant;

    for (unsigned i = 0; i < b->out.constant_count; i++)
        if (b->constants[i].value == value)
            return b->constants[i].slot;
    constant = GROW(b, constants, constant_count, TBD_INSN_PLACES);
    *constant = (struct tbd_insn_constant){ .value = value, .slot = tbd_build_slot(b) };
    return constant->slot;
}

void tbd_build_op(struct tbd_build *b, struct tbd_insn_op op)
{
    *GROW(b, ops, op_count, TBD_INSN_OPS) = op;
}

uint8_t tbd_build_binary(struct tbd_build *b, enum tbd_operation code, unsigned width, uint8_t x,
                         uint8_t y)
{
    uint8_t d = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){
                        .code = (uint8_t)code, .width = (uint8_t)width, .d = d, .a = x, .b = y });
    return d;
}

uint8_t tbd_build_field(struct tbd_build *b, uint8_t from, unsigned shift, unsigned width)
{
    uint8_t d = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_FIELD,
                                          .width = (uint8_t)width,
                                          .shift = (uint8_t)shift,
                                          .d = d,
                                          .a = from });
    return d;
}

uint8_t tbd_build_put(struct tbd_build *b, uint8_t into, unsigned shift, unsigned width,
                      uint8_t bits)
{
    uint8_t d = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_PUT,
                                          .width = (uint8_t)width,
                                          .shift = (uint8_t)shift,
                                          .d = d,
                                          .a = into,
                                          .b = bits });
    return d;
}

uint8_t tbd_build_pure(struct tbd_build *b, enum tbd_pure function, unsigned width,
                       const uint8_t in[3])
{
    uint8_t d = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_PURE,
                                          .width = (uint8_t)width,
                                          .aux = (uint8_t)function,
                                          .d = d,
                                          .a = in[0],
                                          .b = in[1],
                                          .c = in[2] });
    return d;
}

void tbd_build_link(struct tbd_build *b, uint8_t d, uint8_t from, uint64_t mask)
{
    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_LINK, .d = d, .a = from, .mask = mask });
}

uint8_t tbd_build_read_place(struct tbd_build *b, unsigned place)
{
    struct tbd_insn_place *read;

    for (unsigned i = 0; i < b->out.read_count; i++)
        if (b->reads[i].place == place)
            return b->reads[i].slot;
    read = GROW(b, reads, read_count, TBD_INSN_PLACES);
    *read = (struct tbd_insn_place){ .place = (uint16_t)place, .slot = tbd_build_slot(b) };
    return read->slot;
}

static struct tbd_insn_place *find_write(struct tbd_build *b, unsigned place)
{
    for (unsigned i = 0; i < b->out.write_count; i++)
        if (b->writes[i].place == place)
            return &b->writes[i];
    return NULL;
}

void tbd_build_write_place(struct tbd_build *b, unsigned place, uint8_t slot)
{
    struct tbd_insn_place *write = find_write(b, place);

    if (write == NULL)
        write = GROW(b, writes, write_count, TBD_INSN_PLACES);
    *write = (struct tbd_insn_place){ .place = (uint16_t)place, .slot = slot };
}

void tbd_build_copy(struct tbd_build *b, unsigned to, unsigned from)
{
    *GROW(b, copies, copy_count, TBD_INSN_COPIES) =
        (struct tbd_insn_copy){ .to = (uint16_t)to, .from = (uint16_t)from };
}

static unsigned number_of(ZydisRegister reg)
{
    return (unsigned)ZydisRegisterGetId(
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg));
}

static unsigned shift_of(ZydisRegister reg)
{
    return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH ? 8 : 0;
}

static unsigned width_of(ZydisRegister reg)
{
    return ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

static bool is_general(ZydisRegister reg)
{
    return reg >= ZYDIS_REGISTER_AL && reg <= ZYDIS_REGISTER_R15;
}

uint8_t tbd_build_read_register(struct tbd_build *b, ZydisRegister reg)
{
    unsigned width = width_of(reg);
    uint8_t whole;

    if (reg == ZYDIS_REGISTER_RIP)
        return tbd_build_constant(b, b->address + b->insn.length);
    if (!is_general(reg)) {
        b->full = true;
        return 0;
    }
    whole = tbd_build_read_place(b, number_of(reg));
    return width == 64 ? whole : tbd_build_field(b, whole, shift_of(reg), width);
}

void tbd_build_write_register(struct tbd_build *b, ZydisRegister reg, uint8_t slot)
{
    unsigned place = number_of(reg), width = width_of(reg);
    struct tbd_insn_place *earlier = find_write(b, place);

    if (!is_general(reg)) {
        b->full = true;
        return;
    }
    if (width < 32)
        slot = tbd_build_put(b, earlier ? earlier->slot : tbd_build_read_place(b, place),
                             shift_of(reg), width, slot);
    tbd_build_write_place(b, place, slot);
}

static void add_memory(struct tbd_build *b, struct tbd_insn_memory memory)
{
    *GROW(b, memory, memory_count, TBD_INSN_MEMORY) = memory;
}

uint8_t tbd_build_load(struct tbd_build *b, uint8_t address, unsigned offset, unsigned bytes)
{
    uint8_t data = tbd_build_slot(b);

    add_memory(b, (struct tbd_insn_memory){ .address = address,
                                            .data = data,
                                            .bytes = (uint8_t)bytes,
                                            .offset = (uint8_t)offset });
    return data;
}

void tbd_build_store(struct tbd_build *b, uint8_t address, unsigned offset, unsigned bytes,
                     uint8_t slot)
{
    add_memory(b, (struct tbd_insn_memory){ .address = address,
                                            .data = slot,
                                            .bytes = (uint8_t)bytes,
                                            .offset = (uint8_t)offset,
                                            .write = true });
}

static uint8_t sum(struct tbd_build *b, uint8_t so_far, uint8_t part)
{
    return so_far == TBD_INSN_NO_SLOT ? part : tbd_build_binary(b, TBD_OP_ADD, 64, so_far, part);
}

static uint8_t scaled(struct tbd_build *b, const ZydisDecodedOperandMem *mem)
{
    uint8_t index = tbd_build_read_register(b, mem->index);

    if (mem->scale <= 1)
        return index;
    return tbd_build_binary(b, TBD_OP_SHL, 64, index,
                            tbd_build_constant(b, (uint64_t)__builtin_ctz(mem->scale)));
}

static uint8_t new_address(struct tbd_build *b, unsigned i, bool segment)
{
    const ZydisDecodedOperandMem *mem = &b->operand[i].mem;
    uint8_t at = TBD_INSN_NO_SLOT;

    if (mem->base != ZYDIS_REGISTER_NONE && mem->base != ZYDIS_REGISTER_EIP)
        at = tbd_build_read_register(b, mem->base);
    else if (mem->base == ZYDIS_REGISTER_EIP)
        at = tbd_build_constant(b, b->address + b->insn.length);
    if (mem->index != ZYDIS_REGISTER_NONE)
        at = sum(b, at, scaled(b, mem));
    if (at == TBD_INSN_NO_SLOT || mem->disp.value != 0)
        at = sum(b, at, tbd_build_constant(b, (uint64_t)mem->disp.value));
    if (b->insn.address_width == 32)
        at = tbd_build_field(b, at, 0, 32);
    if (segment && mem->segment == ZYDIS_REGISTER_FS)
        at = sum(b, at, tbd_build_read_place(b, TBD_PLACE_FS));
    if (segment && mem->segment == ZYDIS_REGISTER_GS)
        at = sum(b, at, tbd_build_read_place(b, TBD_PLACE_GS));
    return at;
}

uint8_t tbd_build_address(struct tbd_build *b, unsigned i, bool segment)
{
    if (b->address_of[i] == 0)
        b->address_of[i] = (uint8_t)(1 + new_address(b, i, segment));
    return (uint8_t)(b->address_of[i] - 1);
}

unsigned tbd_build_width(const struct tbd_build *b, unsigned i)
{
    return b->operand[i].size;
}

bool tbd_build_is_register(const struct tbd_build *b, unsigned i)
{
    return b->operand[i].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

bool tbd_build_same(const struct tbd_build *b, unsigned i, unsigned j)
{
    return tbd_build_is_register(b, i) && tbd_build_is_register(b, j) &&
           b->operand[i].reg.value == b->operand[j].reg.value;
}

uint8_t tbd_build_read(struct tbd_build *b, unsigned i)
{
    const ZydisDecodedOperand *operand = &b->operand[i];

    if (operand->size == 0 || operand->size > 64) {
        b->full = true;
        return 0;
    }
    switch (operand->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER: return tbd_build_read_register(b, operand->reg.value);
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
        return tbd_build_constant(b, operand->imm.value.u & tbd_bits_low(tbd_build_width(b, 0)));
    case ZYDIS_OPERAND_TYPE_MEMORY:
        return tbd_build_load(b, tbd_build_address(b, i, true), 0, operand->size / 8u);
    default: b->full = true; return 0;
    }
}

void tbd_build_write(struct tbd_build *b, unsigned i, uint8_t slot)
{
    const ZydisDecodedOperand *operand = &b->operand[i];
    bool is_register = operand->type == ZYDIS_OPERAND_TYPE_REGISTER;

    if (operand->size == 0 || operand->size > 64 ||
        (!is_register && operand->type != ZYDIS_OPERAND_TYPE_MEMORY))
        b->full = true;
    else if (is_register)
        tbd_build_write_register(b, operand->reg.value, slot);
    else
        tbd_build_store(b, tbd_build_address(b, i, true), 0, operand->size / 8u, slot);
}

uint8_t tbd_build_flags(struct tbd_build *b, uint64_t unchanged)
{
    uint8_t d = tbd_build_slot(b);

    if (unchanged != 0)
        tbd_build_link(b, d, tbd_build_read_place(b, TBD_PLACE_FLAGS), unchanged);
    tbd_build_write_place(b, TBD_PLACE_FLAGS, d);
    return d;
}
