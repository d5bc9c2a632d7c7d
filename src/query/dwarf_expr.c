// SPDX-License-Identifier: MIT
/* dwarf_expr.c - C expressions evaluated at a place
 *
 * I1  An unknown value (optimized out, not mapped) goes up as the result; only wrong text, wrong
 *     types and unknown names are errors.
 * I2  Trees are bounded (c_parse.h), and so is the recursion here. */
#include "query/dwarf_expr.h"

#include "query/cxx_print.h"
#include "query/names.h"

#include <ctype.h>
#include <dwarf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRING_MAX 1024u

struct reader {
    const struct tbd_c_scope *scope;
    const char *text;
    const struct tbd_c_tree *tree;
    struct tbd_query_error *error;
    int dead; /* > 0: the value will not count, as on the right of `1 || ...` */
};

static bool evaluate(struct reader *r, int32_t index, struct tbd_data *out);

static bool wrong(struct reader *r, enum tbd_status status, size_t at, size_t length,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));
static bool wrong(struct reader *r, enum tbd_status status, size_t at, size_t length,
                  const char *format, ...)
{
    va_list args;

    if (r->error->status != TBD_OK)
        return false;
    *r->error = (struct tbd_query_error){ .status = status, .at = at, .length = length };
    va_start(args, format);
    vsnprintf(r->error->message, sizeof(r->error->message), format, args);
    va_end(args);
    return false;
}

/* ---- values ---- */

struct operand {
    bool is_float;
    bool is_pointer;
    double real;
    uint64_t number;
    bool is_signed;
    uint8_t bytes;
    struct tbd_type type;
};

/* Arrays and functions become pointers to their first element, to themselves. */
static void decay(struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    struct tbd_type target = data->type;
    struct tbd_type pointer;

    if (view.kind != TBD_TYPE_ARRAY && view.kind != TBD_TYPE_FUNCTION)
        return;
    if (view.kind == TBD_TYPE_ARRAY)
        (void)tbd_type_target(&data->type, &target);
    pointer = tbd_type_pointer_to(&target);
    if (data->is_known && data->in_memory)
        tbd_data_number(data->address, &pointer, data);
    else
        tbd_data_unknown(data, "it has no address");
}

/* What a C++ reference refers to. */
static void follow_reference(struct reader *r, struct tbd_data *data)
{
    struct tbd_type target;
    uint64_t address;

    if (tbd_type_look(&data->type).kind != TBD_TYPE_REFERENCE ||
        !tbd_type_target(&data->type, &target))
        return;
    if (tbd_data_scalar(r->scope->place, data, &address))
        tbd_data_at(address, &target, data);
}

/* The value of `data` as an operand; false with *data unknown, or an error. */
static bool take_operand(struct reader *r, struct tbd_data *data, struct operand *out)
{
    struct tbd_type_view view;
    long double real;

    follow_reference(r, data);
    decay(data);
    memset(out, 0, sizeof(*out));
    view = tbd_type_look(&data->type);
    out->type = data->type;
    out->bytes = (uint8_t)(view.bytes > 255 ? 0 : view.bytes);
    out->is_signed = view.is_signed;
    out->is_pointer = view.kind == TBD_TYPE_POINTER;
    if (!data->is_known)
        return false;
    if (view.kind == TBD_TYPE_FLOAT) {
        out->is_float = true;
        if (tbd_data_float(r->scope->place, data, &real)) {
            out->real = (double)real;
            return true;
        }
    } else if (view.kind != TBD_TYPE_INTEGER && view.kind != TBD_TYPE_ENUM && !out->is_pointer) {
        return wrong(r, TBD_TYPE, 0, 0, "this kind of value cannot be calculated with");
    } else if (tbd_data_scalar(r->scope->place, data, &out->number)) {
        return true;
    }
    if (data->in_memory)
        tbd_data_unknown(data, "memory at 0x%" PRIx64 " is not known", data->address);
    else
        tbd_data_unknown(data, "its bytes are not known");
    return false;
}

static void give_int(uint64_t value, struct tbd_data *out)
{
    struct tbd_type type = tbd_type_made(DW_ATE_signed, 4);

    tbd_data_number(value, &type, out);
}

static void give_float(double value, struct tbd_data *out)
{
    struct tbd_type type = tbd_type_made(DW_ATE_float, 8);

    tbd_data_number(0, &type, out);
    memcpy(out->bytes, &value, sizeof(value));
}

/* The common type of two integers (C17, 6.3.1.8). */
static struct tbd_type common(const struct operand *a, const struct operand *b)
{
    uint8_t bytes = a->bytes > 4 || b->bytes > 4 ? 8 : 4;
    bool is_unsigned = (a->bytes == bytes && !a->is_signed) || (b->bytes == bytes && !b->is_signed);

    return tbd_type_made(is_unsigned ? DW_ATE_unsigned : DW_ATE_signed, bytes);
}

static double as_float(const struct operand *a)
{
    if (a->is_float)
        return a->real;
    return a->is_signed ? (double)(int64_t)a->number : (double)a->number;
}

static uint64_t step_of(const struct operand *a)
{
    struct tbd_type target;
    uint64_t bytes = 0;

    if (tbd_type_target(&a->type, &target))
        bytes = tbd_type_look(&target).bytes;
    return bytes == 0 ? 1 : bytes;
}

/* ---- binary operators ---- */

static void name_of(const struct reader *r, const struct tbd_c_node *node, char *out)
{
    memcpy(out, r->text + node->at, node->length);
    out[node->length] = '\0';
}

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

static bool combine_floats(struct reader *r, enum tbd_c_op operation, double a, double b,
                           struct tbd_data *out)
{
    switch (operation) {
    case TBD_C_PLUS: give_float(a + b, out); return true;
    case TBD_C_MINUS: give_float(a - b, out); return true;
    case TBD_C_TIMES: give_float(a * b, out); return true;
    case TBD_C_DIVIDED: give_float(a / b, out); return true;
    default: break;
    }
    if (!tbd_c_is_comparison(operation))
        return wrong(r, TBD_TYPE, 0, 0, "this operator takes integers");
    if (a != a || b != b) /* not a number is unequal to everything */
        give_int(operation == TBD_C_UNEQUAL, out);
    else
        give_int(compare(operation, (a > b) - (a < b)), out);
    return true;
}

static bool divide(struct reader *r, enum tbd_c_op operation, bool is_signed, uint64_t a,
                   uint64_t b, uint64_t *out)
{
    if (b == 0 && r->dead == 0)
        return wrong(r, TBD_TYPE, 0, 0, "division by zero");
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

/* To the width of its type, as if stored and loaded again. */
static uint64_t narrow(const struct tbd_type *type, uint64_t value)
{
    struct tbd_type_view view = tbd_type_look(type);

    if (view.bytes == 0 || view.bytes >= 8)
        return value;
    value &= (1ull << view.bytes * 8) - 1;
    if (view.is_signed && (value >> (view.bytes * 8 - 1) & 1) != 0)
        value |= ~0ull << view.bytes * 8;
    return value;
}

static bool combine_integers(struct reader *r, enum tbd_c_op operation, const struct operand *x,
                             const struct operand *y, struct tbd_data *out)
{
    struct tbd_type type = common(x, y);
    bool is_signed = type.encoding == DW_ATE_signed;
    uint64_t a = narrow(&type, x->number), b = narrow(&type, y->number), value = 0;

    if (tbd_c_is_comparison(operation)) {
        int order =
            is_signed ? ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b) : (a > b) - (a < b);

        give_int(compare(operation, order), out);
        return true;
    }
    switch (operation) {
    case TBD_C_PLUS: value = a + b; break;
    case TBD_C_MINUS: value = a - b; break;
    case TBD_C_TIMES: value = a * b; break;
    case TBD_C_BIT_OR: value = a | b; break;
    case TBD_C_BIT_XOR: value = a ^ b; break;
    case TBD_C_BIT_AND: value = a & b; break;
    case TBD_C_LEFT: value = b < 64 ? a << b : 0; break;
    case TBD_C_RIGHT:
        value = is_signed ? (uint64_t)((int64_t)a >> (b < 63 ? b : 63)) : b < 64 ? a >> b : 0;
        break;
    default:
        if (!divide(r, operation, is_signed, a, b, &value))
            return false;
    }
    tbd_data_number(narrow(&type, value), &type, out);
    return true;
}

static bool combine_pointers(struct reader *r, enum tbd_c_op operation, const struct operand *a,
                             const struct operand *b, struct tbd_data *out)
{
    struct tbd_type difference = tbd_type_made(DW_ATE_signed, 8);

    if (tbd_c_is_comparison(operation)) {
        give_int(compare(operation, (a->number > b->number) - (a->number < b->number)), out);
    } else if (operation == TBD_C_MINUS && a->is_pointer && b->is_pointer) {
        tbd_data_number((uint64_t)((int64_t)(a->number - b->number) / (int64_t)step_of(a)),
                        &difference, out);
    } else if (operation == TBD_C_PLUS && a->is_pointer && !b->is_pointer) {
        tbd_data_number(a->number + b->number * step_of(a), &a->type, out);
    } else if (operation == TBD_C_PLUS && !a->is_pointer) {
        tbd_data_number(b->number + a->number * step_of(b), &b->type, out);
    } else if (operation == TBD_C_MINUS && a->is_pointer) {
        tbd_data_number(a->number - b->number * step_of(a), &a->type, out);
    } else {
        return wrong(r, TBD_TYPE, 0, 0, "this operator does not take pointers");
    }
    return true;
}

/* Keeps I1: an unknown operand is the result. */
static bool combine(struct reader *r, enum tbd_c_op operation, struct tbd_data *left,
                    struct tbd_data *right)
{
    struct operand a, b;

    if (!take_operand(r, left, &a))
        return r->error->status == TBD_OK;
    if (!take_operand(r, right, &b)) {
        *left = *right;
        return r->error->status == TBD_OK;
    }
    if (operation == TBD_C_OR_ELSE || operation == TBD_C_AND_THEN) {
        bool x = a.is_float ? a.real != 0 : a.number != 0;
        bool y = b.is_float ? b.real != 0 : b.number != 0;

        give_int(operation == TBD_C_OR_ELSE ? x || y : x && y, left);
        return true;
    }
    if (a.is_float || b.is_float)
        return combine_floats(r, operation, as_float(&a), as_float(&b), left);
    if (a.is_pointer || b.is_pointer)
        return combine_pointers(r, operation, &a, &b, left);
    return combine_integers(r, operation, &a, &b, left);
}

/* `a && b` with a false left side is decided, whatever the right side is. */
static bool is_decided(struct reader *r, enum tbd_c_op operation, struct tbd_data *left)
{
    struct tbd_data copy = *left;
    struct operand a;
    bool truth;

    if ((operation != TBD_C_OR_ELSE && operation != TBD_C_AND_THEN) || !take_operand(r, &copy, &a))
        return false;
    truth = a.is_float ? a.real != 0 : a.number != 0;
    if (truth != (operation == TBD_C_OR_ELSE))
        return false;
    give_int(truth, left);
    return true;
}

/* A string beside == or !=: what the other side points to, up to its NUL, or the array itself. */
static bool compare_string(struct reader *r, const struct tbd_c_node *node, struct tbd_data *data,
                           const struct tbd_c_node *string, struct tbd_data *out)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    bool is_array = view.kind == TBD_TYPE_ARRAY && !data->in_memory;
    char wanted[STRING_MAX + 1];
    size_t length = tbd_c_unescape(r->text + string->at, string->length, wanted, STRING_MAX);
    struct tbd_cxx text;
    struct tbd_data at;
    struct operand a;

    wanted[length] = '\0';
    follow_reference(r, data);
    if (tbd_cxx_open(r->scope->place, data, &text) && text.kind == TBD_CXX_STRING) {
        *data = text.data;
        if (text.count != length) {
            give_int(node->op == TBD_C_UNEQUAL, out);
            return true;
        }
        is_array = true; /* its characters, where they are */
    } else {
        length++; /* the NUL, too */
    }
    if (!is_array && !take_operand(r, data, &a)) {
        *out = *data;
        return r->error->status == TBD_OK;
    }
    if (!is_array && !a.is_pointer)
        return wrong(r, TBD_TYPE, node->at, node->length,
                     "a string is compared with pointers and arrays");
    at = *data;
    if (!is_array)
        tbd_data_at(a.number, &data->type, &at);
    for (size_t i = 0; i < length; i++) {
        char c = '\0';

        if (!tbd_data_read(r->scope->place, &at, i, &c, 1)) {
            tbd_data_unknown(out, "the string's memory is not known");
            return true;
        }
        if (c != wanted[i]) {
            give_int(node->op == TBD_C_UNEQUAL, out);
            return true;
        }
    }
    give_int(node->op == TBD_C_EQUAL, out);
    return true;
}

static const struct tbd_c_node *string_of(const struct reader *r, int32_t index)
{
    const struct tbd_c_node *node = &r->tree->nodes[index];

    return node->op == TBD_C_STRING ? node : NULL;
}

static bool evaluate_binary(struct reader *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    const struct tbd_c_node *left = string_of(r, node->left), *string = string_of(r, node->right);
    struct tbd_data right;
    bool good;

    if ((left != NULL) != (string != NULL) &&
        (node->op == TBD_C_EQUAL || node->op == TBD_C_UNEQUAL))
        return evaluate(r, left != NULL ? node->right : node->left, &right) &&
               compare_string(r, node, &right, left != NULL ? left : string, out);
    if (!evaluate(r, node->left, out))
        return false;
    if (is_decided(r, node->op, out)) {
        r->dead++;
        good = evaluate(r, node->right, &right);
        r->dead--;
        return good;
    }
    if (!evaluate(r, node->right, &right))
        return false;
    if (combine(r, node->op, out, &right))
        return true;
    if (r->error->length == 0) {
        r->error->at = node->at;
        r->error->length = node->length;
    }
    return false;
}

static bool evaluate_choice(struct reader *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    struct operand a;

    if (!evaluate(r, node->left, out))
        return false;
    if (!take_operand(r, out, &a))
        return r->error->status == TBD_OK;
    return evaluate(r, (a.is_float ? a.real != 0 : a.number != 0) ? node->right : node->third, out);
}

/* ---- casts ---- */

static bool cast(struct reader *r, size_t at, const struct tbd_type *type, struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(type);
    struct operand a;
    float small;

    /* What has no type of its own is taken as it lies in memory. */
    if (data->is_known && data->in_memory && tbd_type_look(&data->type).kind == TBD_TYPE_VOID) {
        data->type = *type;
        return true;
    }
    if (view.kind == TBD_TYPE_STRUCT || view.kind == TBD_TYPE_ARRAY)
        return wrong(r, TBD_TYPE, at, 1, "a value cannot be cast to a struct or an array");
    if (!take_operand(r, data, &a)) {
        data->type = *type;
        return r->error->status == TBD_OK;
    }
    if (view.kind == TBD_TYPE_FLOAT) {
        give_float(as_float(&a), data);
        small = (float)as_float(&a);
        if (view.bytes == 4)
            memcpy(data->bytes, &small, sizeof(small));
        data->type = view.bytes == 4 || view.bytes == 8 ? *type : data->type;
        return true;
    }
    if (a.is_float)
        a.number = a.real < 0 ? (uint64_t)(int64_t)a.real : (uint64_t)a.real;
    if (view.encoding == DW_ATE_boolean)
        a.number = a.is_float ? a.real != 0 : a.number != 0;
    tbd_data_number(narrow(type, a.number), type, data);
    return true;
}

/* ---- unary operators ---- */

/* The pointers of the C++ library point, too. */
static void take_pointer(struct reader *r, struct tbd_data *data)
{
    struct tbd_data pointer;

    if (tbd_type_look(&data->type).kind == TBD_TYPE_STRUCT &&
        tbd_cxx_pointer(r->scope->place, data, &pointer))
        *data = pointer;
}

static bool dereference(struct reader *r, size_t at, struct tbd_data *data)
{
    struct tbd_type target;
    struct tbd_data held;
    struct operand a;
    enum tbd_type_kind kind;

    follow_reference(r, data);
    decay(data);
    if (tbd_type_look(&data->type).kind == TBD_TYPE_STRUCT &&
        tbd_cxx_target(r->scope->place, data, &held)) {
        *data = held;
        return true;
    }
    take_pointer(r, data);
    kind = tbd_type_look(&data->type).kind;
    if (data->is_known && kind != TBD_TYPE_POINTER)
        return wrong(r, TBD_TYPE, at, 1, "this is not a pointer");
    if (!take_operand(r, data, &a)) {
        if (a.is_pointer && tbd_type_target(&a.type, &target))
            data->type = target;
        return r->error->status == TBD_OK;
    }
    if (!a.is_pointer || !tbd_type_target(&a.type, &target))
        return wrong(r, TBD_TYPE, at, 1, "this is not a pointer");
    if (tbd_type_look(&target).kind == TBD_TYPE_VOID && target.die.addr == NULL &&
        target.pointers == 0 && a.type.die.addr != NULL)
        return wrong(r, TBD_TYPE, at, 1, "a void pointer must be cast to the type it points to");
    tbd_data_at(a.number, &target, data);
    return true;
}

static bool address_of(struct reader *r, size_t at, struct tbd_data *data)
{
    struct tbd_type pointer = tbd_type_pointer_to(&data->type);

    follow_reference(r, data);
    if (!data->is_known) {
        data->type = pointer;
        return true;
    }
    if (!data->in_memory || data->bits != 0)
        return wrong(r, TBD_TYPE, at, 1, "it has no address: it is in a register or a bit-field");
    tbd_data_number(data->address, &pointer, data);
    return true;
}

static bool negate(struct reader *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    char sign = r->text[node->at];
    struct operand a;
    struct tbd_type type;

    if (!take_operand(r, data, &a))
        return r->error->status == TBD_OK;
    if (sign == '!') {
        give_int(a.is_float ? a.real == 0 : a.number == 0, data);
        return true;
    }
    if (a.is_pointer || (a.is_float && sign == '~'))
        return wrong(r, TBD_TYPE, node->at, 1, "'%c' takes a number", sign);
    if (a.is_float) {
        give_float(sign == '-' ? -a.real : a.real, data);
        return true;
    }
    type = common(&a, &a);
    tbd_data_number(narrow(&type, sign == '-'   ? 0 - a.number
                                  : sign == '~' ? ~a.number
                                                : a.number),
                    &type, data);
    return true;
}

/* ---- postfix and primary ---- */

static bool member(struct reader *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    const char *name = r->text + node->at;
    struct tbd_type_view view;
    struct tbd_member found;
    Dwarf_Die of;

    view = tbd_type_look(&data->type);
    if (view.kind != TBD_TYPE_STRUCT)
        return wrong(r, TBD_TYPE, (size_t)node->number, 1, "this is not a struct or union");
    of = tbd_type_complete(r->scope->place->dwarf, &view.die);
    if (!tbd_type_find_member(&of, name, node->length, &found))
        return wrong(r, TBD_NAME, node->at, node->length, "there is no member '%.*s'",
                     (int)node->length, name);
    if (found.is_static) {
        tbd_data_unknown(data, "static members are not supported");
        data->type = found.type;
        return true;
    }
    tbd_data_part(data, found.offset, &found.type, data);
    data->bits = found.bits;
    data->bit_offset = found.bit_offset;
    return true;
}

/* A key that is looked for: a number, a variable, or a string between quotes. */
struct wanted_key {
    struct reader *reader;
    const struct tbd_c_node *node; /* of [] or at() */
    const struct tbd_c_node *string; /* NULL: `value` */
    struct tbd_data value;
};

/* The characters of a std::string, in a buffer of STRING_MAX bytes. */
static bool string_bytes(struct reader *r, const struct tbd_data *data, char *out, size_t *length)
{
    struct tbd_cxx text;

    if (!tbd_cxx_open(r->scope->place, data, &text) || text.kind != TBD_CXX_STRING ||
        text.count > STRING_MAX)
        return false;
    *length = (size_t)text.count;
    return tbd_data_read(r->scope->place, &text.data, 0, out, *length);
}

static bool is_wanted_key(void *context, const struct tbd_data *key)
{
    struct wanted_key *wanted = context;
    struct reader *r = wanted->reader;
    struct tbd_c_node equal = { .op = TBD_C_EQUAL, .at = wanted->node->at, .length = 1 };
    struct tbd_data left = *key, right = wanted->value;
    char text[2][STRING_MAX];
    size_t length[2];
    struct operand truth;

    if (r->error->status != TBD_OK)
        return false;
    if (wanted->string == NULL && string_bytes(r, &left, text[0], &length[0]) &&
        string_bytes(r, &right, text[1], &length[1]))
        return length[0] == length[1] && memcmp(text[0], text[1], length[0]) == 0;
    if (!(wanted->string != NULL ? compare_string(r, &equal, &left, wanted->string, &left)
                                 : combine(r, TBD_C_EQUAL, &left, &right)))
        return false;
    return take_operand(r, &left, &truth) && truth.number != 0;
}

/* The value behind a key of a map. */
static bool mapped(struct reader *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    struct wanted_key wanted = { .reader = r, .node = node, .string = string_of(r, node->right) };
    struct tbd_data found;

    if (wanted.string == NULL && !evaluate(r, node->right, &wanted.value))
        return false;
    follow_reference(r, &wanted.value);
    if (!tbd_cxx_find(r->scope->place, data, is_wanted_key, &wanted, &found)) {
        if (r->error->status != TBD_OK && r->error->length == 0) {
            r->error->at = node->at;
            r->error->length = 1;
        }
        return wrong(r, TBD_NOTFOUND, node->at, 1, "it has no such key here");
    }
    *data = found;
    return true;
}

/* An element of a vector, string, deque, map, ... of the C++ library. */
static bool library_element(struct reader *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    struct tbd_data found, index;
    struct operand number;

    if (tbd_cxx_is_map(r->scope->place, data))
        return mapped(r, node, data);
    if (!evaluate(r, node->right, &index))
        return false;
    if (!take_operand(r, &index, &number))
        return r->error->status == TBD_OK;
    if (!tbd_cxx_element(r->scope->place, data, number.number, &found))
        return wrong(r, TBD_TYPE, node->at, 1, "it has no element %" PRIu64 " here", number.number);
    *data = found;
    return true;
}

/* What a member function of the C++ library returns. */
static bool call(struct reader *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    const struct tbd_c_node *of = &r->tree->nodes[node->left];
    char name[TBD_C_NAME_BYTES];
    struct tbd_data found;

    name_of(r, of, name);
    if (!evaluate(r, of->left, data) ||
        (of->op == TBD_C_ARROW && !dereference(r, (size_t)of->number, data)))
        return false;
    follow_reference(r, data);
    if (!data->is_known)
        return true;
    if (node->right >= 0 && strcmp(name, "at") == 0 &&
        tbd_type_look(&data->type).kind == TBD_TYPE_STRUCT)
        return library_element(r, node, data);
    if (node->right >= 0 || !tbd_cxx_ask(r->scope->place, data, name, &found))
        return wrong(r, TBD_TYPE, of->at, of->length,
                     "functions of the program are not called, and this is no `%s` of the C++ library "
                     "with a value here",
                     name);
    *data = found;
    return true;
}

static bool element(struct reader *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    struct tbd_data index;
    struct tbd_type_view view;
    struct tbd_type type;
    struct operand number;

    if (!evaluate(r, node->left, data))
        return false;
    follow_reference(r, data);
    view = tbd_type_look(&data->type);
    if (view.kind == TBD_TYPE_STRUCT && data->is_known)
        return library_element(r, node, data);
    if (!evaluate(r, node->right, &index))
        return false;
    /* An array in registers has no address. */
    if (view.kind == TBD_TYPE_ARRAY && data->is_known && !data->in_memory) {
        if (!take_operand(r, &index, &number))
            return r->error->status == TBD_OK;
        (void)tbd_type_target(&data->type, &type);
        tbd_data_part(data, number.number * tbd_type_look(&type).bytes, &type, data);
        return true;
    }
    return combine(r, TBD_C_PLUS, data, &index) && dereference(r, node->at, data);
}

static bool take_register(struct reader *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    char name[TBD_C_NAME_BYTES];
    size_t length = node->length;
    const struct tbd_frame *frame = r->scope->place->frame;
    struct tbd_type type = tbd_type_made(DW_ATE_unsigned, 8);
    struct tbd_register_name reg;
    uint64_t value;

    name_of(r, node, name);
    if (strcmp(name, "$pc") == 0)
        reg = (struct tbd_register_name){ TBD_EXPR_RIP, 0, 64 };
    else if (strcmp(name, "$sp") == 0)
        reg = (struct tbd_register_name){ TBD_RSP, 0, 64 };
    else if (!tbd_register_find(name + 1, length - 1, &reg) || reg.which > TBD_EXPR_RIP)
        return wrong(r, TBD_NAME, node->at, length, "there is no register '%s'", name);
    if (frame == NULL || (reg.which < TBD_REG_COUNT && (frame->known >> reg.which & 1) == 0)) {
        *out = (struct tbd_data){ .type = type };
        tbd_data_unknown(out, "a called function may have changed %s", name + 1);
        return true;
    }
    value = reg.which == TBD_EXPR_RIP ? frame->pc : frame->gpr[reg.which];
    value >>= reg.shift;
    tbd_data_number(reg.width == 64 ? value : value & ((1ull << reg.width) - 1), &type, out);
    return true;
}

static bool take_name(struct reader *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    char name[TBD_C_NAME_BYTES];
    Dwarf_Die self;

    name_of(r, node, name);
    if (tbd_c_find_this(r->scope->place, name, &self)) {
        tbd_c_take(r->scope->place, &self, out);
        return dereference(r, node->at, out) && member(r, node, out);
    }
    if (!tbd_c_find(r->scope->place, name, out) &&
        (r->scope->variable == NULL || !r->scope->variable(r->scope->context, name, out)))
        return wrong(r, TBD_NAME, node->at, node->length, "there is no variable '%s' here", name);
    return true;
}

static bool size_of(struct reader *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    struct tbd_type result = tbd_type_made(DW_ATE_unsigned, 8);

    if (!evaluate(r, node->left, out))
        return false;
    tbd_data_number(tbd_type_look(&out->type).bytes, &result, out);
    return true;
}

static bool evaluate_leaf(struct reader *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    switch (node->op) {
    case TBD_C_NUMBER: tbd_data_number(node->number, &node->type, out); return true;
    case TBD_C_REAL: give_float(node->real, out); return true;
    case TBD_C_REGISTER: return take_register(r, node, out);
    case TBD_C_STRING:
        return wrong(r, TBD_TYPE, node->at, node->length,
                     "a string is compared with == or != only");
    default: return take_name(r, node, out);
    }
}

static bool evaluate_unary(struct reader *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    if (!evaluate(r, node->left, out))
        return false;
    switch (node->op) {
    case TBD_C_MEMBER: follow_reference(r, out); return member(r, node, out);
    case TBD_C_ARROW: return dereference(r, (size_t)node->number, out) && member(r, node, out);
    case TBD_C_CAST: return cast(r, node->at, &node->type, out);
    case TBD_C_DEREF: return dereference(r, node->at, out);
    case TBD_C_ADDRESS: return address_of(r, node->at, out);
    default: return negate(r, node, out);
    }
}

static bool evaluate(struct reader *r, int32_t index, struct tbd_data *out)
{
    const struct tbd_c_node *node = &r->tree->nodes[index];

    memset(out, 0, sizeof(*out));
    if (node->op == TBD_C_SIZEOF)
        return size_of(r, node, out);
    if (node->op == TBD_C_INDEX)
        return element(r, node, out);
    if (node->op == TBD_C_CALL)
        return call(r, node, out);
    if (node->op == TBD_C_CHOICE)
        return evaluate_choice(r, node, out);
    if (node->left < 0)
        return evaluate_leaf(r, node, out);
    return node->right < 0 ? evaluate_unary(r, node, out) : evaluate_binary(r, node, out);
}

/* ---- types by name ---- */

static bool find_type(void *context, const char *name, struct tbd_type *out)
{
    const struct tbd_c_scope *scope = context;
    const struct tbd_place_of *place = scope->place;
    const Dwarf_Die *unit = place->scopes.count != 0 ? &place->scopes.unit : NULL;

    return (place->dwarf != NULL && tbd_type_find(place->dwarf, unit, name, out)) ||
           (scope->type != NULL && scope->type(scope->context, name, out));
}

struct tbd_c_types tbd_c_types_of(const struct tbd_c_scope *scope)
{
    /* The callback only reads it. */
    return (struct tbd_c_types){ .find = find_type, .context = (void *)(uintptr_t)scope };
}

enum tbd_status tbd_c_evaluate(const struct tbd_c_scope *scope, const char *text, size_t from,
                               size_t to, struct tbd_data *out, struct tbd_query_error *error)
{
    struct tbd_c_types types = tbd_c_types_of(scope);
    struct tbd_c_tree tree;
    struct reader r = { .scope = scope, .text = text, .tree = &tree, .error = error };

    memset(out, 0, sizeof(*out));
    if (tbd_c_parse(&types, text, from, to, &tree, error) != TBD_OK)
        return error->status;
    (void)evaluate(&r, tree.root, out);
    tbd_c_tree_free(&tree);
    return error->status;
}

enum tbd_status tbd_c_type(const struct tbd_c_scope *scope, const char *text, struct tbd_type *out)
{
    struct tbd_c_types types = tbd_c_types_of(scope);

    return tbd_c_parse_type(&types, text, out);
}
