// SPDX-License-Identifier: MIT
/* why_copies.c - see why_copies.h */
#include "query/why/why_copies.h"

#include "replay/simulate/copied.h"

#include <stdio.h>
#include <string.h>

#define XMM_BYTES 16u

unsigned tbd_why_place_of(ZydisRegister whole, uint64_t byte)
{
    if (whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15 && byte < 8)
        return (unsigned)(whole - ZYDIS_REGISTER_RAX);
    if (whole >= ZYDIS_REGISTER_ZMM0 && whole <= ZYDIS_REGISTER_ZMM31 && byte < 64)
        return TBD_PLACE_VECTOR + 8 * (unsigned)(whole - ZYDIS_REGISTER_ZMM0) +
               (unsigned)(byte / 8);
    if (whole >= ZYDIS_REGISTER_K0 && whole <= ZYDIS_REGISTER_K7 && byte < 8)
        return TBD_PLACE_MASK + (unsigned)(whole - ZYDIS_REGISTER_K0);
    return TBD_PLACE_COUNT;
}

ZydisRegister tbd_why_register_of(unsigned place, uint32_t *byte)
{
    *byte = 0;
    if (place < 16)
        return (ZydisRegister)(ZYDIS_REGISTER_RAX + (int)place);
    if (place >= TBD_PLACE_MASK && place < TBD_PLACE_COUNT)
        return (ZydisRegister)(ZYDIS_REGISTER_K0 + (int)(place - TBD_PLACE_MASK));
    if (place < TBD_PLACE_VECTOR || place >= TBD_PLACE_COUNT)
        return ZYDIS_REGISTER_NONE;
    *byte = (place - TBD_PLACE_VECTOR) % 8 * 8;
    return (ZydisRegister)(ZYDIS_REGISTER_ZMM0 + (int)((place - TBD_PLACE_VECTOR) / 8));
}

ZydisRegister tbd_why_register_named(const char *text, uint64_t *bytes)
{
    static const struct {
        ZydisRegister first, last, whole; /* `whole`: that `first` is a part of */
        uint64_t bytes;
    } kinds[] = { { ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_R15, ZYDIS_REGISTER_RAX, 8 },
                  { ZYDIS_REGISTER_XMM0, ZYDIS_REGISTER_XMM31, ZYDIS_REGISTER_ZMM0, XMM_BYTES } };

    for (size_t i = 0; *text == '$' && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        for (ZydisRegister reg = kinds[i].first; reg <= kinds[i].last; reg++)
            if (strcmp(text + 1, ZydisRegisterGetString(reg)) == 0) {
                *bytes = kinds[i].bytes;
                return kinds[i].whole + (reg - kinds[i].first);
            }
    return ZYDIS_REGISTER_NONE;
}

ZydisRegister tbd_why_register_of_value(const struct tbd_data *data, uint64_t *bytes)
{
    unsigned number = data->in_register != 0 ? data->in_register : data->from_register;
    bool is_vector = number > TBD_DATA_XMM0;
    uint64_t most = is_vector ? XMM_BYTES : 8;

    if (!data->is_known || number == 0)
        return ZYDIS_REGISTER_NONE;
    *bytes = data->in_register != 0 ? tbd_type_look(&data->type).bytes : most;
    if (*bytes == 0 || *bytes > most)
        *bytes = most;
    return (ZydisRegister)(is_vector ? ZYDIS_REGISTER_ZMM0 + (number - 1 - TBD_DATA_XMM0)
                                     : ZYDIS_REGISTER_RAX + (number - 1));
}

/* Where byte `at` of the part came from, and those after it that came with it. */
static struct tbd_copied copied(const struct tbd_sim_insn *insn, const struct tbd_why_part *part,
                                uint64_t at)
{
    uint64_t byte = part->first + at, left = part->bytes - at;
    uint64_t in_lane = 8 - byte % 8;
    struct tbd_copied none = { .from = TBD_COPIED_NOT };

    if (part->reg != ZYDIS_REGISTER_NONE) {
        unsigned place = tbd_why_place_of(part->reg, byte);

        if (place == TBD_PLACE_COUNT)
            return none;
        return tbd_copied_to_place(insn, place, byte % 8,
                                   (unsigned)(left < in_lane ? left : in_lane));
    }
    for (size_t i = 0; i < insn->memory_count; i++) {
        const struct tbd_insn_memory *piece = &insn->memory[i];

        if (piece->write && byte >= piece->offset && byte - piece->offset < piece->bytes)
            return tbd_copied_to_memory(insn, i, (unsigned)(byte - piece->offset),
                                        (unsigned)(left < 8 ? left : 8));
    }
    return none;
}

/* As the instruction has the register. */
static ZydisRegister name_of(const struct tbd_why_insn *decoded, ZydisRegister whole)
{
    for (size_t k = 0; k < decoded->insn.operand_count; k++)
        if (decoded->operands[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            tbd_why_whole(decoded->operands[k].reg.value) == whole)
            return decoded->operands[k].reg.value;
    return whole;
}

static struct tbd_why_input input_of(const struct tbd_sim_insn *insn,
                                     const struct tbd_why_insn *decoded,
                                     const struct tbd_copied *from)
{
    struct tbd_why_input input = { .bytes = from->bytes };
    uint32_t byte;

    switch (from->from) {
    case TBD_COPIED_FROM_PLACE:
        input.place = TBD_WHY_REGISTER;
        input.reg = tbd_why_register_of(from->number, &byte);
        input.named = name_of(decoded, input.reg);
        input.first = byte + from->first;
        break;
    case TBD_COPIED_FROM_MEMORY:
        input.place = TBD_WHY_MEMORY;
        input.operand = tbd_why_memory_read(decoded);
        input.first = insn->memory[from->number].offset + from->first;
        break;
    case TBD_COPIED_FROM_CONSTANT:
    default: input.place = TBD_WHY_CONSTANT; input.constant = (int64_t)from->constant;
    }
    return input;
}

/* Can it be followed? */
static bool is_whole(const struct tbd_why_input *input)
{
    return (input->place != TBD_WHY_REGISTER || input->reg != ZYDIS_REGISTER_NONE) &&
           (input->place != TBD_WHY_MEMORY || input->operand != NULL);
}

/* The bytes right after those of the input before. */
static bool goes_on(const struct tbd_why_input *before, const struct tbd_why_input *input)
{
    return before->place == input->place && input->place != TBD_WHY_CONSTANT &&
           before->reg == input->reg && before->operand == input->operand &&
           before->first + before->bytes == input->first;
}

static void add(struct tbd_why_inputs *out, const struct tbd_why_input *input)
{
    if (out->count != 0 && goes_on(&out->inputs[out->count - 1], input))
        out->inputs[out->count - 1].bytes += input->bytes;
    else if (out->count < TBD_WHY_INPUTS_MAX)
        out->inputs[out->count++] = *input;
}

static bool is_zero(const struct tbd_why_input *input)
{
    return input->place == TBD_WHY_CONSTANT && input->constant == 0;
}

bool tbd_why_writes_part(const struct tbd_sim_insn *insn, const struct tbd_why_part *part)
{
    for (uint64_t at = 0; at < part->bytes;) {
        struct tbd_copied from = copied(insn, part, at);

        if (from.from != TBD_COPIED_FROM_PLACE ||
            from.number != tbd_why_place_of(part->reg, part->first + at) ||
            from.first != (part->first + at) % 8)
            return true;
        at += from.bytes;
    }
    return part->bytes == 0;
}

bool tbd_why_copies(const struct tbd_sim_insn *insn, const struct tbd_why_insn *decoded,
                    const struct tbd_why_part *part, struct tbd_why_inputs *out)
{
    *out = (struct tbd_why_inputs){ .is_moved = true };
    for (uint64_t at = 0; at < part->bytes;) {
        struct tbd_copied from = copied(insn, part, at);
        struct tbd_why_input input;

        if (from.from == TBD_COPIED_NOT)
            return false;
        input = input_of(insn, decoded, &from);
        if (!is_whole(&input))
            return false;
        add(out, &input);
        at += from.bytes;
    }
    while (out->count > 1 && is_zero(&out->inputs[out->count - 1])) /* above a narrower value */
        out->count--;
    out->is_copy = out->count == 1;
    return out->count != 0;
}

void tbd_why_take_part(const struct tbd_why_insn *decoded, const struct tbd_why_part *part,
                       struct tbd_why_input *input)
{
    uint64_t first = part->first;

    if (decoded->insn.meta.category == ZYDIS_CATEGORY_STRINGOP && input->place == TBD_WHY_MEMORY) {
        input->bytes = (uint32_t)(first + part->bytes);
    } else if (decoded->insn.meta.category == ZYDIS_CATEGORY_STRINGOP && input->bytes != 0) {
        input->bytes = decoded->operands[0].size / 8u; /* of rax */
        first = input->bytes != 0 ? first % input->bytes : 0;
    }
    if (first >= input->bytes) /* above a narrower value: its sign */
        return;
    input->first += (uint32_t)first;
    input->bytes -= (uint32_t)first;
    if (input->bytes > part->bytes)
        input->bytes = (uint32_t)part->bytes;
}

const char *tbd_why_register_text(const struct tbd_why_input *input,
                                  char out[TBD_WHY_REGISTER_TEXT])
{
    const char *name = ZydisRegisterGetString(input->named);

    if (input->first == 0 ||
        (input->named >= ZYDIS_REGISTER_AH && input->named <= ZYDIS_REGISTER_BH))
        snprintf(out, TBD_WHY_REGISTER_TEXT, "%s", name);
    else if (input->bytes == 1)
        snprintf(out, TBD_WHY_REGISTER_TEXT, "byte %u of %s", input->first, name);
    else
        snprintf(out, TBD_WHY_REGISTER_TEXT, "bytes %u to %u of %s", input->first,
                 input->first + input->bytes - 1, name);
    return out;
}
