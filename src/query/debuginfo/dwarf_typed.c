// SPDX-License-Identifier: MIT
/* dwarf_typed.c - operations of location descriptions that give their operands a base type (DWARF 5, 2.5.1.5 and 2.5.1.6)
 *
 * An integer lies on the stack extended to 64 bits, a floating-point number of 4 or 8 bytes as its bits. */
#include "query/debuginfo/dwarf_machine.h"

#include <dwarf.h>
#include <string.h>

/* Doubles that have an integer of 64 bits lie between them. */
#define LEAST (-0x1p63)
#define LIMIT 0x1p64

/* The base type that the operation names. */
static bool take_type(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op,
                      struct tbd_type_view *out_view, enum tbd_number *out)
{
    struct tbd_type type;
    Dwarf_Die die;

    if (dwarf_getlocation_die(attribute, op, &die) != 0)
        return tbd_machine_fail(m, "its location is damaged");
    type = tbd_type_from(&die);
    *out_view = tbd_type_look(&type);
    if (out_view->kind == TBD_TYPE_FLOAT && (out_view->bytes == 4 || out_view->bytes == 8)) {
        *out = out_view->bytes == 4 ? TBD_NUMBER_FLOAT : TBD_NUMBER_DOUBLE;
        return true;
    }
    if (out_view->kind != TBD_TYPE_INTEGER || out_view->bytes == 0 || out_view->bytes > 8)
        return tbd_machine_fail(m, "it was calculated with numbers of more than 64 bits");
    *out = out_view->is_signed ? TBD_NUMBER_SIGNED : TBD_NUMBER_UNSIGNED;
    return true;
}

/* Bytes of memory, of a register or of a constant. */
static bool push_bytes(struct tbd_machine *m, const struct tbd_type_view *view,
                       enum tbd_number number, const uint8_t *bytes)
{
    uint64_t value = 0;

    memcpy(&value, bytes, (size_t)view->bytes);
    value = tbd_data_extend(value, (uint32_t)view->bytes * 8, number == TBD_NUMBER_SIGNED);
    return tbd_machine_push_number(m, value, number);
}

static bool push_constant(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op,
                          const struct tbd_type_view *view, enum tbd_number number)
{
    Dwarf_Attribute value;
    Dwarf_Block block;

    if (dwarf_getlocation_attr(attribute, op, &value) != 0 ||
        dwarf_formblock(&value, &block) != 0 || block.length != view->bytes)
        return tbd_machine_fail(m, "its location is damaged");
    return push_bytes(m, view, number, block.data);
}

static double double_of(uint64_t value, enum tbd_number number)
{
    double wide;
    float narrow;

    switch (number) {
    case TBD_NUMBER_DOUBLE: memcpy(&wide, &value, sizeof(wide)); return wide;
    case TBD_NUMBER_FLOAT: memcpy(&narrow, &value, sizeof(narrow)); return (double)narrow;
    case TBD_NUMBER_UNSIGNED: return (double)value;
    default: return (double)(int64_t)value;
    }
}

static bool push_double(struct tbd_machine *m, double value, enum tbd_number number)
{
    float narrow = (float)value;
    uint64_t bits = 0;

    if (number == TBD_NUMBER_FLOAT)
        memcpy(&bits, &narrow, sizeof(narrow));
    else
        memcpy(&bits, &value, sizeof(value));
    return tbd_machine_push_number(m, bits, number);
}

/* From an integer, as a double would lose what a float keeps. */
static bool push_from_integer(struct tbd_machine *m, uint64_t value, enum tbd_number from,
                              enum tbd_number to)
{
    float narrow =
        from == TBD_NUMBER_UNSIGNED ? (float)value : (float)(int64_t)value; /* rounds once */

    return push_double(m, to == TBD_NUMBER_FLOAT ? (double)narrow : double_of(value, from), to);
}

static bool push_truncated(struct tbd_machine *m, double value, uint32_t bits, enum tbd_number to)
{
    uint64_t whole;

    if (!(value >= LEAST && value < LIMIT))
        return tbd_machine_fail(m, "it was calculated with a number that is no integer");
    whole = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
    return tbd_machine_push_number(m, tbd_data_extend(whole, bits, to == TBD_NUMBER_SIGNED), to);
}

static bool convert(struct tbd_machine *m, uint64_t value, enum tbd_number from, uint32_t bits,
                    enum tbd_number to)
{
    if (tbd_number_is_float(from) && tbd_number_is_float(to))
        return push_double(m, double_of(value, from), to);
    if (tbd_number_is_float(from))
        return push_truncated(m, double_of(value, from), bits, to);
    if (tbd_number_is_float(to))
        return push_from_integer(m, value, from, to);
    return tbd_machine_push_number(m, tbd_data_extend(value, bits, to == TBD_NUMBER_SIGNED), to);
}

bool tbd_machine_typed(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
    bool converts = op->atom == DW_OP_convert || op->atom == DW_OP_GNU_convert ||
                    op->atom == DW_OP_reinterpret || op->atom == DW_OP_GNU_reinterpret;
    struct tbd_type_view view = { .bytes = 8 };
    enum tbd_number to = TBD_NUMBER_GENERIC, from = TBD_NUMBER_GENERIC;
    uint8_t bytes[16] = { 0 };
    uint64_t value = 0;
    uint32_t count;

    if ((!converts || op->number != 0) && !take_type(m, attribute, op, &view, &to))
        return false;
    if (m->depth != 0)
        from = m->numbers[m->depth - 1];
    switch (op->atom) {
    case DW_OP_const_type:
    case DW_OP_GNU_const_type: return push_constant(m, attribute, op, &view, to);
    case DW_OP_regval_type:
    case DW_OP_GNU_regval_type:
        return tbd_machine_register(m, op->number, bytes, &count) &&
               push_bytes(m, &view, to, bytes);
    case DW_OP_deref_type:
    case DW_OP_GNU_deref_type:
        if (op->number != view.bytes)
            return tbd_machine_fail(m, "its location is damaged");
        return tbd_machine_deref(m, view.bytes) && tbd_machine_pop(m, &value) &&
               push_bytes(m, &view, to, (const uint8_t *)&value);
    case DW_OP_convert:
    case DW_OP_GNU_convert:
        return tbd_machine_pop(m, &value) && convert(m, value, from, (uint32_t)view.bytes * 8, to);
    default: return tbd_machine_pop(m, &value) && push_bytes(m, &view, to, (const uint8_t *)&value);
    }
}

/* ---- arithmetic ---- */

bool tbd_machine_combine_floats(struct tbd_machine *m, uint8_t atom, uint64_t first,
                                uint64_t second, enum tbd_number number)
{
    double a = double_of(first, number), b = double_of(second, number);

    switch (atom) {
    case DW_OP_plus: return push_double(m, a + b, number);
    case DW_OP_minus: return push_double(m, a - b, number);
    case DW_OP_mul: return push_double(m, a * b, number);
    case DW_OP_div: return push_double(m, a / b, number);
    case DW_OP_eq: return tbd_machine_push(m, a == b);
    case DW_OP_ne: return tbd_machine_push(m, a != b);
    case DW_OP_lt: return tbd_machine_push(m, a < b);
    case DW_OP_le: return tbd_machine_push(m, a <= b);
    case DW_OP_gt: return tbd_machine_push(m, a > b);
    case DW_OP_ge: return tbd_machine_push(m, a >= b);
    default: return tbd_machine_fail(m, "its location is damaged");
    }
}

bool tbd_machine_change_float(struct tbd_machine *m, uint8_t atom, uint64_t value,
                              enum tbd_number number)
{
    double a = double_of(value, number);

    if (atom == DW_OP_neg)
        return push_double(m, -a, number);
    if (atom == DW_OP_abs)
        return push_double(m, a < 0 ? -a : a, number);
    return tbd_machine_fail(m, "its location is damaged");
}
