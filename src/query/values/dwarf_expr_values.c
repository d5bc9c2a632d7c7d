// SPDX-License-Identifier: MIT
/* dwarf_expr_values.c - C's operators on values: conversions, arithmetic, casts
 *
 * Types and widths are C17's (6.3.1.8), on this machine.  Keeps DWARF_EXPR-1: an unknown operand is
 * the result. */
#include "query/values/dwarf_expr_private.h"

#include "query/values/cxx_cast.h"

#include <dwarf.h>
#include <inttypes.h>
#include <string.h>

/* ---- operands ---- */

void tbd_c_decay(struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    struct tbd_type target = data->type;
    struct tbd_type pointer;

    if (view.kind != TBD_TYPE_ARRAY && view.kind != TBD_TYPE_FUNCTION)
        return;
    if (view.kind == TBD_TYPE_ARRAY)
        (void)tbd_type_target(&data->type, &target);
    pointer = tbd_type_pointer_to(&target);
    if (data->is_known && data->in_memory) {
        tbd_data_number(data->address, &pointer, data);
        return;
    }
    data->type = pointer;
    if (data->is_known)
        tbd_data_unknown(data, "it has no address");
}

void tbd_c_follow(struct tbd_c_run *r, struct tbd_data *data)
{
    struct tbd_type target;
    uint64_t address;

    if (tbd_type_look(&data->type).kind != TBD_TYPE_REFERENCE ||
        !tbd_type_target(&data->type, &target))
        return;
    if (tbd_data_scalar(r->scope->place, data, &address))
        tbd_data_at(address, &target, data);
}

bool tbd_c_operand(struct tbd_c_run *r, struct tbd_data *data, struct tbd_c_operand *out)
{
    struct tbd_type_view view;
    long double real;

    tbd_c_follow(r, data);
    tbd_c_decay(data);
    memset(out, 0, sizeof(*out));
    view = tbd_type_look(&data->type);
    out->type = data->type;
    out->bytes = (uint8_t)(view.bytes > 255 ? 0 : view.bytes);
    out->is_signed = view.is_signed;
    out->is_pointer = view.kind == TBD_TYPE_POINTER;
    if (!data->is_known)
        return false;
    if (view.kind == TBD_TYPE_INTEGER && view.bytes > 8)
        return tbd_query_wrong(r->error, TBD_TYPE, 0, 0,
                               "integers of more than 8 bytes are not calculated with");
    if (data->bits != 0 && data->bits < 32 && view.kind == TBD_TYPE_INTEGER) {
        out->type = tbd_type_made(DW_ATE_signed, 4); /* an int holds all of its values */
        out->bytes = 4;
        out->is_signed = true;
    }
    if (view.kind == TBD_TYPE_FLOAT) {
        out->is_float = true;
        out->is_narrow = view.bytes == 4;
        if (tbd_data_float(r->scope->place, data, &real)) {
            out->real = (double)real;
            return true;
        }
    } else if (view.kind != TBD_TYPE_INTEGER && view.kind != TBD_TYPE_ENUM && !out->is_pointer) {
        return tbd_query_wrong(r->error, TBD_TYPE, 0, 0,
                               "this kind of value cannot be calculated with");
    } else if (tbd_data_scalar(r->scope->place, data, &out->number)) {
        return true;
    }
    if (data->in_memory)
        tbd_data_unknown(data, "memory at 0x%" PRIx64 " is not known", data->address);
    else
        tbd_data_unknown(data, "its bytes are not known");
    return false;
}

void tbd_c_give_int(uint64_t value, struct tbd_data *out)
{
    struct tbd_type type = tbd_type_made(DW_ATE_signed, 4);

    tbd_data_number(value, &type, out);
}

void tbd_c_give_float(double value, bool narrow, struct tbd_data *out)
{
    struct tbd_type type = tbd_type_made(DW_ATE_float, narrow ? 4 : 8);
    float small = (float)value;

    tbd_data_number(0, &type, out);
    if (narrow)
        memcpy(out->bytes, &small, sizeof(small));
    else
        memcpy(out->bytes, &value, sizeof(value));
}

struct tbd_type tbd_c_common(const struct tbd_c_operand *a, const struct tbd_c_operand *b)
{
    uint8_t bytes = a->bytes > 4 || b->bytes > 4 ? 8 : 4;
    bool is_unsigned = (a->bytes == bytes && !a->is_signed) || (b->bytes == bytes && !b->is_signed);

    return tbd_type_made(is_unsigned ? DW_ATE_unsigned : DW_ATE_signed, bytes);
}

/* `narrow`: an integer becomes a float of 4 bytes. */
static double as_float(const struct tbd_c_operand *a, bool narrow)
{
    if (a->is_float)
        return a->real;
    if (narrow)
        return a->is_signed ? (float)(int64_t)a->number : (float)a->number;
    return a->is_signed ? (double)(int64_t)a->number : (double)a->number;
}

/* ---- binary operators ---- */

static bool compare(enum tbd_c_op operation, int order)
{
    switch (operation) {
    case TBD_C_EQUAL: return order == 0;
    case TBD_C_UNEQUAL: return order != 0;
    case TBD_C_LESS: return order < 0;
    case TBD_C_LESS_EQUAL: return order <= 0;
    case TBD_C_GREATER: return order > 0;
    default: return order >= 0;
    }
}

static bool combine_floats(struct tbd_c_run *r, enum tbd_c_op operation,
                           const struct tbd_c_operand *left, const struct tbd_c_operand *right,
                           struct tbd_data *out)
{
    bool narrow = (!left->is_float || left->is_narrow) && (!right->is_float || right->is_narrow);
    double a = as_float(left, narrow), b = as_float(right, narrow);

    switch (operation) {
    case TBD_C_PLUS: tbd_c_give_float(a + b, narrow, out); return true;
    case TBD_C_MINUS: tbd_c_give_float(a - b, narrow, out); return true;
    case TBD_C_TIMES: tbd_c_give_float(a * b, narrow, out); return true;
    case TBD_C_DIVIDED: tbd_c_give_float(a / b, narrow, out); return true;
    default: break;
    }
    if (!tbd_c_is_comparison(operation))
        return tbd_query_wrong(r->error, TBD_TYPE, 0, 0, "this operator takes integers");
    if (a != a || b != b) /* not a number is unequal to everything */
        tbd_c_give_int(operation == TBD_C_UNEQUAL, out);
    else
        tbd_c_give_int(compare(operation, (a > b) - (a < b)), out);
    return true;
}

static bool divide(struct tbd_c_run *r, enum tbd_c_op operation, bool is_signed, uint64_t a,
                   uint64_t b, uint64_t *out)
{
    if (b == 0 && r->dead == 0)
        return tbd_query_wrong(r->error, TBD_TYPE, 0, 0, "division by zero");
    if (b == 0)
        b = 1;
    if (is_signed && b == UINT64_MAX) /* INT64_MIN / -1 overflows in C */
        *out = operation == TBD_C_DIVIDED ? 0 - a : 0;
    else if (is_signed)
        *out = operation == TBD_C_DIVIDED ? (uint64_t)((int64_t)a / (int64_t)b)
                                          : (uint64_t)((int64_t)a % (int64_t)b);
    else
        *out = operation == TBD_C_DIVIDED ? a / b : a % b;
    return true;
}

uint64_t tbd_c_narrow(const struct tbd_type *type, uint64_t value)
{
    struct tbd_type_view view = tbd_type_look(type);

    if (view.bytes == 0 || view.bytes >= 8)
        return value;
    value &= (1ull << view.bytes * 8) - 1;
    if (view.is_signed && (value >> (view.bytes * 8 - 1) & 1) != 0)
        value |= ~0ull << view.bytes * 8;
    return value;
}

/* A shift has the type of its left side alone. */
static void shift(enum tbd_c_op operation, const struct tbd_c_operand *x, uint64_t by,
                  struct tbd_data *out)
{
    struct tbd_type type = tbd_c_common(x, x);
    uint64_t a = tbd_c_narrow(&type, x->number), value;

    if (operation == TBD_C_LEFT)
        value = by < 64 ? a << by : 0;
    else if (type.encoding == DW_ATE_signed)
        value = (uint64_t)((int64_t)a >> (by < 63 ? by : 63));
    else
        value = by < 64 ? a >> by : 0;
    tbd_data_number(tbd_c_narrow(&type, value), &type, out);
}

static bool combine_integers(struct tbd_c_run *r, enum tbd_c_op operation,
                             const struct tbd_c_operand *x, const struct tbd_c_operand *y,
                             struct tbd_data *out)
{
    struct tbd_type type = tbd_c_common(x, y);
    bool is_signed = type.encoding == DW_ATE_signed;
    uint64_t a = tbd_c_narrow(&type, x->number), b = tbd_c_narrow(&type, y->number), value = 0;

    if (tbd_c_is_comparison(operation)) {
        int order =
            is_signed ? ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b) : (a > b) - (a < b);

        tbd_c_give_int(compare(operation, order), out);
        return true;
    }
    if (operation == TBD_C_LEFT || operation == TBD_C_RIGHT) {
        shift(operation, x, y->number, out);
        return true;
    }
    switch (operation) {
    case TBD_C_PLUS: value = a + b; break;
    case TBD_C_MINUS: value = a - b; break;
    case TBD_C_TIMES: value = a * b; break;
    case TBD_C_BIT_OR: value = a | b; break;
    case TBD_C_BIT_XOR: value = a ^ b; break;
    case TBD_C_BIT_AND: value = a & b; break;
    default:
        if (!divide(r, operation, is_signed, a, b, &value))
            return false;
    }
    tbd_data_number(tbd_c_narrow(&type, value), &type, out);
    return true;
}

static bool combine_pointers(struct tbd_c_run *r, enum tbd_c_op operation,
                             const struct tbd_c_operand *a, const struct tbd_c_operand *b,
                             struct tbd_data *out)
{
    struct tbd_type difference = tbd_type_made(DW_ATE_signed, 8);

    if (tbd_c_is_comparison(operation)) {
        tbd_c_give_int(compare(operation, (a->number > b->number) - (a->number < b->number)), out);
    } else if (operation == TBD_C_MINUS && a->is_pointer && b->is_pointer) {
        tbd_data_number(
            (uint64_t)((int64_t)(a->number - b->number) / (int64_t)tbd_type_step(&a->type)),
            &difference, out);
    } else if (operation == TBD_C_PLUS && a->is_pointer && !b->is_pointer) {
        tbd_data_number(a->number + b->number * tbd_type_step(&a->type), &a->type, out);
    } else if (operation == TBD_C_PLUS && !a->is_pointer) {
        tbd_data_number(b->number + a->number * tbd_type_step(&b->type), &b->type, out);
    } else if (operation == TBD_C_MINUS && a->is_pointer) {
        tbd_data_number(a->number - b->number * tbd_type_step(&a->type), &a->type, out);
    } else {
        return tbd_query_wrong(r->error, TBD_TYPE, 0, 0, "this operator does not take pointers");
    }
    return true;
}

bool tbd_c_combine(struct tbd_c_run *r, enum tbd_c_op operation, struct tbd_data *left,
                   struct tbd_data *right)
{
    struct tbd_c_operand a, b;

    if (!tbd_c_operand(r, left, &a))
        return r->error->status == TBD_OK;
    if (!tbd_c_operand(r, right, &b)) {
        *left = *right;
        return r->error->status == TBD_OK;
    }
    if (operation == TBD_C_OR_ELSE || operation == TBD_C_AND_THEN) {
        bool x = tbd_c_truth(&a);
        bool y = tbd_c_truth(&b);

        tbd_c_give_int(operation == TBD_C_OR_ELSE ? x || y : x && y, left);
        return true;
    }
    if (a.is_float || b.is_float)
        return combine_floats(r, operation, &a, &b, left);
    if (a.is_pointer || b.is_pointer)
        return combine_pointers(r, operation, &a, &b, left);
    return combine_integers(r, operation, &a, &b, left);
}

bool tbd_c_is_decided(struct tbd_c_run *r, enum tbd_c_op operation, struct tbd_data *left)
{
    struct tbd_data copy = *left;
    struct tbd_c_operand a;
    bool truth;

    if ((operation != TBD_C_OR_ELSE && operation != TBD_C_AND_THEN) || !tbd_c_operand(r, &copy, &a))
        return false;
    truth = tbd_c_truth(&a);
    if (truth != (operation == TBD_C_OR_ELSE))
        return false;
    tbd_c_give_int(truth, left);
    return true;
}

/* ---- casts ---- */

/* A pointer to a class becomes one to another class: to its base class's part of the object, or back. */
static void cast_class(struct tbd_c_run *r, enum tbd_cast_kind kind, const struct tbd_type *type,
                       struct tbd_c_operand *a, struct tbd_data *data)
{
    struct tbd_class_finder finder = { r->scope->type, r->scope->context };
    struct tbd_type from, to;
    uint64_t address;

    if (!tbd_type_target(&a->type, &from) || !tbd_type_target(type, &to))
        return;
    if (tbd_object_cast(r->scope->place, &finder, kind, a->number, &from, &to, &address)) {
        a->number = address;
    } else {
        data->type = *type;
        tbd_data_unknown(data, "which object it points to is not known");
    }
}

bool tbd_c_cast(struct tbd_c_run *r, const struct tbd_c_node *node, const struct tbd_type *type,
                struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(type);
    struct tbd_c_operand a;

    /* A name without a type is read from memory as the type of the cast. */
    if (data->is_known && data->in_memory && tbd_type_look(&data->type).kind == TBD_TYPE_VOID) {
        data->type = *type;
        return true;
    }
    if (view.kind == TBD_TYPE_STRUCT || view.kind == TBD_TYPE_ARRAY)
        return tbd_query_wrong(r->error, TBD_TYPE, node == NULL ? 0 : node->at, 1,
                               "a value cannot be cast to a struct or an array");
    if (!tbd_c_operand(r, data, &a)) {
        data->type = *type;
        return r->error->status == TBD_OK;
    }
    if (view.kind == TBD_TYPE_FLOAT) {
        tbd_c_give_float(as_float(&a, view.bytes == 4), view.bytes == 4, data);
        data->type = view.bytes == 4 || view.bytes == 8 ? *type : data->type;
        return true;
    }
    if (a.is_float)
        a.number = a.real < 0 ? (uint64_t)(int64_t)a.real : (uint64_t)a.real;
    if (view.encoding == DW_ATE_boolean)
        a.number = tbd_c_truth(&a);
    if (view.kind == TBD_TYPE_POINTER && a.is_pointer)
        cast_class(r, node == NULL ? TBD_CAST_C : (enum tbd_cast_kind)node->number, type, &a, data);
    if (data->is_known)
        tbd_data_number(tbd_c_narrow(type, a.number), type, data);
    return true;
}

/* ---- c ? a : b ---- */

static bool is_arithmetic(const struct tbd_type_view *view)
{
    return view->kind == TBD_TYPE_INTEGER || view->kind == TBD_TYPE_ENUM ||
           view->kind == TBD_TYPE_FLOAT;
}

static struct tbd_type common_type(const struct tbd_type_view *x, const struct tbd_type_view *y)
{
    struct tbd_c_operand a = { .bytes = (uint8_t)x->bytes, .is_signed = x->is_signed };
    struct tbd_c_operand b = { .bytes = (uint8_t)y->bytes, .is_signed = y->is_signed };

    if (x->kind == TBD_TYPE_FLOAT || y->kind == TBD_TYPE_FLOAT)
        return tbd_type_made(DW_ATE_float, (x->kind == TBD_TYPE_FLOAT && x->bytes != 4) ||
                                                   (y->kind == TBD_TYPE_FLOAT && y->bytes != 4)
                                               ? 8
                                               : 4);
    return tbd_c_common(&a, &b);
}

bool tbd_c_take_common_type(struct tbd_c_run *r, struct tbd_data *data, struct tbd_data *other)
{
    struct tbd_type_view x, y;
    struct tbd_type type;

    tbd_c_follow(r, data);
    tbd_c_follow(r, other);
    x = tbd_type_look(&data->type);
    y = tbd_type_look(&other->type);
    if (!is_arithmetic(&x) || !is_arithmetic(&y) ||
        (x.kind == y.kind && x.bytes == y.bytes && x.is_signed == y.is_signed))
        return true;
    type = common_type(&x, &y);
    return tbd_c_cast(r, NULL, &type, data);
}
