// SPDX-License-Identifier: MIT
/* dwarf_location.c - location descriptions (DWARF 5, 2.6) evaluated on a frame
 *
 * DWARF_LOCATION-1  The first thing that is missing ends the evaluation, and `why` says what it
 *     was. (not checked: it is about what is not done) */
#include "query/debuginfo/dwarf_location.h"

#include "query/debuginfo/dwarf_machine.h"
#include "query/debuginfo/dwarf_parameter.h"
#include "query/debuginfo/frame_unset.h"

#include <dwarf.h>
#include <string.h>

#define FUNCTIONS_MAX 32

void tbd_place_enter(struct tbd_place_of *place, struct tbd_dwarf *dwarf, uint64_t bias,
                     uint64_t address, size_t function)
{
    struct tbd_dwarf_function functions[FUNCTIONS_MAX];
    size_t count;

    place->dwarf = dwarf;
    place->bias = bias;
    place->address = address - bias;
    if (dwarf == NULL || !tbd_dwarf_scopes(dwarf, place->address, &place->scopes))
        return;
    count = tbd_dwarf_functions(&place->scopes, functions, FUNCTIONS_MAX);
    if (count == 0)
        return;
    if (function >= count)
        function = count - 1;
    place->first = functions[function].first;
    place->end = functions[function].end;
}

static bool is_piece(uint8_t atom)
{
    return atom == DW_OP_piece || atom == DW_OP_bit_piece;
}

/* The operations have appended the bytes themselves, after `start`: a piece is the first `size` of them. */
static bool cut_piece(struct tbd_machine *m, uint32_t start, uint64_t size)
{
    if (size > m->out->byte_count - start)
        return tbd_machine_fail(m, "its location is damaged");
    m->out->byte_count = start + (uint32_t)size;
    return true;
}

/* Appends the bytes that the operations [from, to) described to out->bytes, which had `start` before them. */
static bool add_piece(struct tbd_machine *m, uint32_t start, size_t from, size_t to, uint64_t size)
{
    struct tbd_data *out = m->out;
    uint8_t bytes[16] = { 0 };
    uint32_t count = 8;
    uint64_t value = 0;

    if (m->kind == TBD_IS_BYTES)
        return cut_piece(m, start, size);
    if (size > TBD_DATA_BYTES - out->byte_count)
        return tbd_machine_fail(m, "it is too large");
    if (from == to) {
        memset(out->lost + out->byte_count, 1, (size_t)size);
        out->byte_count += (uint32_t)size;
        return true;
    }
    if (m->kind == TBD_IN_MEMORY) {
        if (!tbd_machine_pop(m, &value) || m->place->memory == NULL ||
            !m->place->memory->read(m->place->memory->context, value, out->bytes + out->byte_count,
                                    (size_t)size))
            return tbd_machine_fail(m, "a part of it is not mapped");
    } else {
        if (m->kind == TBD_IN_REGISTER ? !tbd_machine_register(m, m->reg, bytes, &count)
                                       : !tbd_machine_pop(m, &value))
            return false;
        if (m->kind != TBD_IN_REGISTER)
            memcpy(bytes, &value, sizeof(value));
        if (size > sizeof(bytes))
            return tbd_machine_fail(m, "its location is damaged");
        memcpy(out->bytes + out->byte_count, bytes, (size_t)size);
    }
    out->byte_count += (uint32_t)size;
    return true;
}

static bool run_pieces(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *ops,
                       size_t count)
{
    size_t from = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t start = m->out->byte_count;

        if (!is_piece(ops[i].atom))
            continue;
        if (ops[i].atom == DW_OP_bit_piece && (ops[i].number % 8 != 0 || ops[i].number2 != 0))
            return tbd_machine_fail(m, "its bits are in several places");
        m->kind = TBD_IN_MEMORY;
        if (!tbd_machine_operations(m, attribute, ops, from, i) ||
            !add_piece(m, start, from, i,
                       ops[i].atom == DW_OP_piece ? ops[i].number : ops[i].number / 8))
            return false;
        from = i + 1;
    }
    return memchr(m->out->lost, 0, m->out->byte_count) != NULL
               ? true
               : tbd_machine_fail(m, "it is kept nowhere");
}

static bool take_result(struct tbd_machine *m)
{
    struct tbd_data *out = m->out;
    uint64_t value = 0;

    switch (m->kind) {
    case TBD_IS_BYTES: return true;
    case TBD_IN_REGISTER:
        out->in_register = tbd_machine_place(m->reg);
        return tbd_machine_register(m, m->reg, out->bytes, &out->byte_count);
    case TBD_IS_VALUE:
        if (!tbd_machine_pop(m, &value))
            return false;
        out->byte_count = 8;
        memcpy(out->bytes, &value, sizeof(value));
        return true;
    case TBD_IN_MEMORY: break;
    }
    out->in_memory = true;
    return tbd_machine_pop(m, &out->address);
}

/* Does the operation bring what the program has elsewhere than in a register of this frame? */
static bool is_from_elsewhere(uint8_t atom)
{
    switch (atom) {
    case DW_OP_fbreg:
    case DW_OP_call_frame_cfa:
    case DW_OP_deref:
    case DW_OP_deref_size:
    case DW_OP_deref_type:
    case DW_OP_GNU_deref_type:
    case DW_OP_form_tls_address:
    case DW_OP_GNU_push_tls_address:
    case DW_OP_entry_value:
    case DW_OP_GNU_entry_value: return true;
    default: return false;
    }
}

/* tbd_data's from_register. */
static uint8_t register_of_result(const Dwarf_Op *ops, size_t count)
{
    uint8_t only = 0, reg;

    for (size_t i = 0; i < count; i++) {
        switch (ops[i].atom) {
        case DW_OP_regval_type:
        case DW_OP_GNU_regval_type:
        case DW_OP_bregx: reg = tbd_machine_general(ops[i].number); break;
        default:
            if (is_from_elsewhere(ops[i].atom))
                return 0;
            if (ops[i].atom < DW_OP_breg0 || ops[i].atom > DW_OP_breg31)
                continue;
            reg = tbd_machine_general((uint64_t)(ops[i].atom - DW_OP_breg0));
        }
        if (reg == 0 || (only != 0 && only != reg))
            return 0;
        only = reg;
    }
    return only;
}

static bool run_location(struct tbd_machine *m, Dwarf_Attribute *attribute)
{
    Dwarf_Op *ops;
    size_t count;

    if (!tbd_machine_choose(m, attribute, &ops, &count))
        return false;
    if (count == 0)
        return tbd_machine_fail(m, TBD_DATA_NO_LOCATION);
    if (is_piece(ops[count - 1].atom))
        return run_pieces(m, attribute, ops, count);
    if (!tbd_machine_operations(m, attribute, ops, 0, count) || !take_result(m))
        return false;
    if (m->kind == TBD_IS_VALUE)
        m->out->from_register = register_of_result(ops, count);
    return true;
}

static bool take_constant(const Dwarf_Die *variable, struct tbd_data *out)
{
    Dwarf_Attribute attribute;
    Dwarf_Block block;
    uint64_t value = 0;

    if (tbd_die_number(variable, DW_AT_const_value, &value)) {
        out->byte_count = 8;
        memcpy(out->bytes, &value, sizeof(value));
        return true;
    }
    if (!tbd_die_attribute(variable, DW_AT_const_value, &attribute) ||
        dwarf_formblock(&attribute, &block) != 0 || block.length > TBD_DATA_BYTES)
        return false;
    out->byte_count = (uint32_t)block.length;
    memcpy(out->bytes, block.data, block.length);
    return true;
}

/* ---- before something is stored to it ---- */

/* Does the description give a place below the frame, where the function has stored nothing yet? */
static bool is_below_frame(struct tbd_machine *m, Dwarf_Attribute *attribute)
{
    Dwarf_Op *ops;
    size_t count;

    return tbd_machine_choose(m, attribute, &ops, &count) && count != 0 &&
           ops[0].atom == DW_OP_fbreg && (int64_t)ops[0].number < 0;
}

static void take_register(struct tbd_machine *m, const struct tbd_type *type, uint64_t value)
{
    struct tbd_data *out = m->out;

    out->is_known = true;
    if (tbd_parameter_is_address(type)) {
        tbd_data_at(value, type, out);
    } else {
        out->byte_count = sizeof(value);
        memcpy(out->bytes, &value, sizeof(value));
    }
}

/* The register of a parameter that unoptimized code has not yet stored in its described place.
 * `written`: registers that hold another value by now. */
static void take_passed(struct tbd_machine *m, Dwarf_Attribute *attribute,
                        const Dwarf_Die *variable, uint32_t written)
{
    struct tbd_data *out = m->out;
    struct tbd_type type = out->type;
    int number = tbd_parameter_register(m->function, variable);
    int vector = tbd_parameter_vector(m->function, variable);

    if (number < 0 && vector < 0 && !is_below_frame(m, attribute))
        return;
    if (number >= 0 && (written >> tbd_parameter_gpr(number) & 1) != 0)
        number = -1;
    if (vector >= 0 && (written & TBD_UNSET_XMM0 << vector) != 0)
        vector = -1;
    memset(out, 0, sizeof(*out));
    out->type = type;
    if (vector >= 0)
        out->is_known = tbd_machine_register(m, TBD_MACHINE_XMM + (unsigned)vector, out->bytes,
                                             &out->byte_count);
    else if (number < 0)
        (void)tbd_machine_fail(m, "it is not stored yet at its function's first instructions");
    else if ((m->place->frame->known >> tbd_parameter_gpr(number) & 1) == 0)
        (void)tbd_machine_fail(m, "it is in a register that is not known here");
    else
        take_register(m, &type, m->place->frame->gpr[tbd_parameter_gpr(number)]);
}

/* At its function's first instructions, in the innermost frame.  True: it will be in memory. */
static bool correct_early(struct tbd_machine *m, Dwarf_Attribute *attribute,
                          const Dwarf_Die *variable)
{
    const struct tbd_frame *frame = m->place->frame;
    enum tbd_unset unset;
    uint32_t written = 0;

    if (m->function == NULL || frame == NULL || frame->how != TBD_FRAME_REGS)
        return false;
    unset = tbd_frame_unset(m->place, m->function, variable, &written);
    if (dwarf_tag((Dwarf_Die *)(uintptr_t)variable) == DW_TAG_formal_parameter &&
        (unset != TBD_UNSET_NO || tbd_parameter_is_entry(m->place, m->function))) {
        uint64_t described = m->out->is_known && unset != TBD_UNSET_PLACE ? m->out->address : 0;

        take_passed(m, attribute, variable, written);
        if (m->out->is_known && !m->out->in_memory)
            m->out->soon_at = described;
    } else if (unset == TBD_UNSET_PLACE) {
        m->out->is_known = tbd_machine_fail(m, "its function has no frame yet");
        return true;
    }
    return false;
}

/* An array of one dimension whose length the function computed (C's variable length arrays). */
static void take_length(const struct tbd_machine *m, struct tbd_data *out)
{
    struct tbd_type_view view = tbd_type_look(&out->type);
    struct tbd_machine bound = tbd_machine_nested(m, m->place);
    struct tbd_data ignored = { .is_known = false };
    Dwarf_Attribute attribute;
    Dwarf_Die range;
    uint64_t last = 0;

    if (view.kind != TBD_TYPE_ARRAY || view.count != 0 || view.die.addr == NULL ||
        !tbd_die_child(&view.die, &range) || dwarf_tag(&range) != DW_TAG_subrange_type ||
        !tbd_die_attribute(&range, DW_AT_upper_bound, &attribute) ||
        dwarf_whatform(&attribute) != DW_FORM_exprloc)
        return;
    bound.function = m->function;
    bound.out = &ignored;
    if (tbd_machine_run(&bound, &attribute) && tbd_machine_pop(&bound, &last) && last < INT64_MAX)
        out->type.count = last + 1;
}

void tbd_location_value(const struct tbd_place_of *place, const Dwarf_Die *variable,
                        struct tbd_data *out)
{
    uint32_t steps = 0;
    struct tbd_machine m = { .place = place, .steps = &steps, .out = out };
    Dwarf_Attribute attribute;
    bool is_early = false;

    memset(out, 0, sizeof(*out));
    out->type = tbd_type_of(variable);
    if (place->scopes.count != 0)
        m.function = &place->scopes.dies[place->scopes.count - 1];
    if (tbd_die_attribute(variable, DW_AT_location, &attribute)) {
        out->is_known = run_location(&m, &attribute);
        if (!out->is_known || out->in_memory)
            is_early = correct_early(&m, &attribute, variable);
        if (out->is_known && out->in_memory)
            take_length(&m, out);
        else
            out->of_frame = place->frame != NULL && !is_early;
    } else {
        out->is_known = take_constant(variable, out);
        if (!out->is_known)
            tbd_data_unknown(out, "it has no location");
    }
}
