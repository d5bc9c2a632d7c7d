// SPDX-License-Identifier: MIT
/* dwarf_expr.c - recursive descent over C expressions, evaluated while they are read
 *
 * I1  An unknown value (optimized out, not mapped) goes up as the result; only wrong text, wrong
 *     types and unknown names are errors.
 * I2  Depth is bounded by DEPTH_MAX; every step consumes text. */
#include "query/dwarf_expr.h"

#include "query/names.h"

#include <ctype.h>
#include <dwarf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  64
#define NAME_BYTES 128

struct reader {
    const struct tbd_c_scope *scope;
    const char *text;
    size_t at, end;
    int depth;
    struct tbd_query_error *error;
};

static bool read_binary(struct reader *r, unsigned level, struct tbd_data *out);
static bool read_unary(struct reader *r, struct tbd_data *out);

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

/* ---- characters ---- */

static char peek(struct reader *r)
{
    while (r->at < r->end && isspace((unsigned char)r->text[r->at]))
        r->at++;
    return r->at < r->end ? r->text[r->at] : '\0';
}

static bool accept(struct reader *r, const char *sign)
{
    size_t length = strlen(sign);

    (void)peek(r);
    if (r->end - r->at < length || strncmp(r->text + r->at, sign, length) != 0)
        return false;
    r->at += length;
    return true;
}

static bool expect(struct reader *r, const char *sign)
{
    return accept(r, sign) || wrong(r, TBD_SYNTAX, r->at, 1, "expected '%s' here", sign);
}

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$';
}

/* The word here, "" if there is none; also A::B. */
static size_t word_at(struct reader *r, char *out)
{
    size_t length = 0;
    const char *s = r->text + r->at;

    *out = '\0';
    if (!is_name_start(peek(r)))
        return 0;
    s = r->text + r->at;
    while (r->at + length < r->end &&
           (isalnum((unsigned char)s[length]) || s[length] == '_' || s[length] == '$'))
        length++;
    if (length >= NAME_BYTES)
        return 0;
    memcpy(out, s, length);
    out[length] = '\0';
    return length;
}

static bool accept_word(struct reader *r, const char *word)
{
    char name[NAME_BYTES];
    size_t length = word_at(r, name);

    if (length == 0 || strcmp(name, word) != 0)
        return false;
    r->at += length;
    return true;
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

enum operation {
    OR_ELSE,
    AND_THEN,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    EQUAL,
    UNEQUAL,
    LESS_EQUAL,
    GREATER_EQUAL,
    LEFT,
    RIGHT,
    LESS,
    GREATER,
    PLUS,
    MINUS,
    TIMES,
    DIVIDED,
    MODULO,
};

static const struct {
    const char *sign;
    enum operation operation;
    unsigned level;
} operators[] = {
    { "||", OR_ELSE, 0 },    { "&&", AND_THEN, 1 }, { "==", EQUAL, 5 },
    { "!=", UNEQUAL, 5 },    { "<<", LEFT, 7 },     { ">>", RIGHT, 7 },
    { "<=", LESS_EQUAL, 6 }, { "<", LESS, 6 },      { ">=", GREATER_EQUAL, 6 },
    { ">", GREATER, 6 },     { "|", BIT_OR, 2 },    { "^", BIT_XOR, 3 },
    { "&", BIT_AND, 4 },     { "+", PLUS, 8 },      { "-", MINUS, 8 },
    { "*", TIMES, 9 },       { "/", DIVIDED, 9 },   { "%", MODULO, 9 },
};
#define OPERATORS   (sizeof(operators) / sizeof(operators[0]))
#define LEVEL_UNARY 10u

/* The operator here, -1 if there is none; longer signs come first in the table. */
static int operator_here(struct reader *r)
{
    (void)peek(r);
    for (size_t i = 0; i < OPERATORS; i++) {
        size_t length = strlen(operators[i].sign);

        if (r->end - r->at >= length && strncmp(r->text + r->at, operators[i].sign, length) == 0)
            return (int)i;
    }
    return -1;
}

static bool compare(enum operation operation, int order)
{
    switch (operation) {
    case EQUAL: return order == 0;
    case UNEQUAL: return order != 0;
    case LESS: return order < 0;
    case LESS_EQUAL: return order <= 0;
    case GREATER: return order > 0;
    default: return order >= 0;
    }
}

static bool is_comparison(enum operation operation)
{
    return operation == EQUAL || operation == UNEQUAL || operation == LESS ||
           operation == LESS_EQUAL || operation == GREATER || operation == GREATER_EQUAL;
}

static bool combine_floats(struct reader *r, enum operation operation, double a, double b,
                           struct tbd_data *out)
{
    switch (operation) {
    case PLUS: give_float(a + b, out); return true;
    case MINUS: give_float(a - b, out); return true;
    case TIMES: give_float(a * b, out); return true;
    case DIVIDED: give_float(a / b, out); return true;
    default: break;
    }
    if (!is_comparison(operation))
        return wrong(r, TBD_TYPE, 0, 0, "this operator takes integers");
    if (a != a || b != b) /* not a number is unequal to everything */
        give_int(operation == UNEQUAL, out);
    else
        give_int(compare(operation, (a > b) - (a < b)), out);
    return true;
}

static bool divide(struct reader *r, enum operation operation, bool is_signed, uint64_t a,
                   uint64_t b, uint64_t *out)
{
    if (b == 0)
        return wrong(r, TBD_TYPE, 0, 0, "division by zero");
    if (is_signed && b == UINT64_MAX) /* INT64_MIN / -1 overflows in C */
        *out = operation == DIVIDED ? 0 - a : 0;
    else if (is_signed)
        *out = operation == DIVIDED ? (uint64_t)((int64_t)a / (int64_t)b)
                                    : (uint64_t)((int64_t)a % (int64_t)b);
    else
        *out = operation == DIVIDED ? a / b : a % b;
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

static bool combine_integers(struct reader *r, enum operation operation, const struct operand *x,
                             const struct operand *y, struct tbd_data *out)
{
    struct tbd_type type = common(x, y);
    bool is_signed = type.encoding == DW_ATE_signed;
    uint64_t a = narrow(&type, x->number), b = narrow(&type, y->number), value = 0;

    if (is_comparison(operation)) {
        int order =
            is_signed ? ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b) : (a > b) - (a < b);

        give_int(compare(operation, order), out);
        return true;
    }
    switch (operation) {
    case PLUS: value = a + b; break;
    case MINUS: value = a - b; break;
    case TIMES: value = a * b; break;
    case BIT_OR: value = a | b; break;
    case BIT_XOR: value = a ^ b; break;
    case BIT_AND: value = a & b; break;
    case LEFT: value = b < 64 ? a << b : 0; break;
    case RIGHT:
        value = is_signed ? (uint64_t)((int64_t)a >> (b < 63 ? b : 63)) : b < 64 ? a >> b : 0;
        break;
    default:
        if (!divide(r, operation, is_signed, a, b, &value))
            return false;
    }
    tbd_data_number(narrow(&type, value), &type, out);
    return true;
}

static bool combine_pointers(struct reader *r, enum operation operation, const struct operand *a,
                             const struct operand *b, struct tbd_data *out)
{
    struct tbd_type difference = tbd_type_made(DW_ATE_signed, 8);

    if (is_comparison(operation)) {
        give_int(compare(operation, (a->number > b->number) - (a->number < b->number)), out);
    } else if (operation == MINUS && a->is_pointer && b->is_pointer) {
        tbd_data_number((uint64_t)((int64_t)(a->number - b->number) / (int64_t)step_of(a)),
                        &difference, out);
    } else if (operation == PLUS && a->is_pointer && !b->is_pointer) {
        tbd_data_number(a->number + b->number * step_of(a), &a->type, out);
    } else if (operation == PLUS && !a->is_pointer) {
        tbd_data_number(b->number + a->number * step_of(b), &b->type, out);
    } else if (operation == MINUS && a->is_pointer) {
        tbd_data_number(a->number - b->number * step_of(a), &a->type, out);
    } else {
        return wrong(r, TBD_TYPE, 0, 0, "this operator does not take pointers");
    }
    return true;
}

/* Keeps I1: an unknown operand is the result. */
static bool combine(struct reader *r, enum operation operation, struct tbd_data *left,
                    struct tbd_data *right)
{
    struct operand a, b;

    if (!take_operand(r, left, &a))
        return r->error->status == TBD_OK;
    if (!take_operand(r, right, &b)) {
        *left = *right;
        return r->error->status == TBD_OK;
    }
    if (operation == OR_ELSE || operation == AND_THEN) {
        bool x = a.is_float ? a.real != 0 : a.number != 0;
        bool y = b.is_float ? b.real != 0 : b.number != 0;

        give_int(operation == OR_ELSE ? x || y : x && y, left);
        return true;
    }
    if (a.is_float || b.is_float)
        return combine_floats(r, operation, as_float(&a), as_float(&b), left);
    if (a.is_pointer || b.is_pointer)
        return combine_pointers(r, operation, &a, &b, left);
    return combine_integers(r, operation, &a, &b, left);
}

/* `a && b` with a false left side is decided, whatever the right side is. */
static bool is_decided(struct reader *r, enum operation operation, struct tbd_data *left)
{
    struct tbd_data copy = *left;
    struct operand a;
    bool truth;

    if ((operation != OR_ELSE && operation != AND_THEN) || !take_operand(r, &copy, &a))
        return false;
    truth = a.is_float ? a.real != 0 : a.number != 0;
    if (truth != (operation == OR_ELSE))
        return false;
    give_int(truth, left);
    return true;
}

static bool read_binary(struct reader *r, unsigned level, struct tbd_data *out)
{
    struct tbd_data right;
    int found;

    if (level == LEVEL_UNARY)
        return read_unary(r, out);
    if (!read_binary(r, level + 1, out))
        return false;
    while ((found = operator_here(r)) >= 0 && operators[found].level == level) {
        size_t at = r->at;

        r->at += strlen(operators[found].sign);
        if (!read_binary(r, level + 1, &right))
            return false;
        if (is_decided(r, operators[found].operation, out))
            continue;
        if (!combine(r, operators[found].operation, out, &right)) {
            if (r->error->length == 0) {
                r->error->at = at;
                r->error->length = strlen(operators[found].sign);
            }
            return false;
        }
    }
    return true;
}

/* ---- types ---- */

static bool is_type_word(const char *word)
{
    static const char *const words[] = { "unsigned", "signed", "long", "short", "char", "int" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], word) == 0)
            return true;
    }
    return false;
}

/* "unsigned long int" -> "unsigned long" and the like. */
static bool read_basic(struct reader *r, struct tbd_type *out)
{
    char name[NAME_BYTES] = "", word[NAME_BYTES];
    unsigned longs = 0, shorts = 0;
    bool is_unsigned = false, is_char = false, any = false;
    size_t length;

    while ((length = word_at(r, word)) != 0 && (is_type_word(word) || strcmp(word, "const") == 0)) {
        r->at += length;
        longs += strcmp(word, "long") == 0;
        shorts += strcmp(word, "short") == 0;
        is_unsigned |= strcmp(word, "unsigned") == 0;
        is_char |= strcmp(word, "char") == 0;
        any |= is_type_word(word);
    }
    if (!any)
        return false;
    snprintf(name, sizeof(name), "%s%s", is_unsigned ? "unsigned " : "",
             is_char       ? "char"
             : longs != 0  ? "long"
             : shorts != 0 ? "short"
                           : "int");
    return tbd_type_made_find(name, out);
}

static bool find_type(struct reader *r, const char *name, struct tbd_type *out)
{
    const struct tbd_place_of *place = r->scope->place;
    const Dwarf_Die *unit = place->scopes.count != 0 ? &place->scopes.unit : NULL;

    if (place->dwarf != NULL && tbd_type_find(place->dwarf, unit, name, out))
        return true;
    if (r->scope->type != NULL && r->scope->type(r->scope->context, name, out))
        return true;
    return tbd_type_made_find(name, out);
}

/* A type name with pointers; leaves r->at alone if there is none. */
static bool read_type(struct reader *r, struct tbd_type *out)
{
    char word[NAME_BYTES], name[NAME_BYTES * 2 + 2];
    size_t start = r->at, length;

    while (accept_word(r, "const") || accept_word(r, "volatile"))
        ;
    if (!read_basic(r, out)) {
        length = word_at(r, word);
        if (length == 0)
            goto none;
        r->at += length;
        snprintf(name, sizeof(name), "%s", word);
        if (strcmp(word, "struct") == 0 || strcmp(word, "union") == 0 ||
            strcmp(word, "enum") == 0 || strcmp(word, "class") == 0) {
            char second[NAME_BYTES];

            length = word_at(r, second);
            r->at += length;
            snprintf(name, sizeof(name), "%s %s", word, second);
        }
        if (!find_type(r, name, out))
            goto none;
    }
    while (accept_word(r, "const") || accept_word(r, "volatile") || accept(r, "*")) {
        if (r->text[r->at - 1] == '*')
            *out = tbd_type_pointer_to(out);
    }
    return true;
none:
    r->at = start;
    return false;
}

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

static bool dereference(struct reader *r, size_t at, struct tbd_data *data)
{
    struct tbd_type target;
    struct operand a;
    enum tbd_type_kind kind;

    follow_reference(r, data);
    decay(data);
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

static bool negate(struct reader *r, char sign, struct tbd_data *data)
{
    struct operand a;
    struct tbd_type type;

    if (!take_operand(r, data, &a))
        return r->error->status == TBD_OK;
    if (sign == '!') {
        give_int(a.is_float ? a.real == 0 : a.number == 0, data);
        return true;
    }
    if (a.is_pointer || (a.is_float && sign == '~'))
        return wrong(r, TBD_TYPE, r->at, 0, "'%c' takes a number", sign);
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

static bool size_of(struct reader *r, struct tbd_data *out)
{
    struct tbd_type result = tbd_type_made(DW_ATE_unsigned, 8), type;
    size_t start = r->at;

    if (accept(r, "(") && read_type(r, &type) && accept(r, ")")) {
        tbd_data_number(tbd_type_look(&type).bytes, &result, out);
        return true;
    }
    r->at = start;
    if (!read_unary(r, out))
        return false;
    tbd_data_number(tbd_type_look(&out->type).bytes, &result, out);
    return true;
}

/* ---- postfix and primary ---- */

static bool member(struct reader *r, size_t at, struct tbd_data *data)
{
    struct tbd_type_view view;
    struct tbd_member found;
    char name[NAME_BYTES];
    size_t length = word_at(r, name);
    Dwarf_Die of;

    if (length == 0)
        return wrong(r, TBD_SYNTAX, r->at, 1, "expected the name of a member");
    view = tbd_type_look(&data->type);
    if (view.kind != TBD_TYPE_STRUCT)
        return wrong(r, TBD_TYPE, at, 1, "this is not a struct or union");
    of = tbd_type_complete(r->scope->place->dwarf, &view.die);
    if (!tbd_type_find_member(&of, name, length, &found))
        return wrong(r, TBD_NAME, r->at, length, "there is no member '%s'", name);
    r->at += length;
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

static bool element(struct reader *r, size_t at, struct tbd_data *data)
{
    struct tbd_data index;
    struct tbd_type_view view = tbd_type_look(&data->type);
    struct tbd_type type;
    struct operand number;

    if (!read_binary(r, 0, &index) || !expect(r, "]"))
        return false;
    /* An array in registers has no address. */
    if (view.kind == TBD_TYPE_ARRAY && data->is_known && !data->in_memory) {
        if (!take_operand(r, &index, &number))
            return r->error->status == TBD_OK;
        (void)tbd_type_target(&data->type, &type);
        tbd_data_part(data, number.number * tbd_type_look(&type).bytes, &type, data);
        return true;
    }
    return combine(r, PLUS, data, &index) && dereference(r, at, data);
}

static bool read_postfix(struct reader *r, struct tbd_data *out)
{
    for (;;) {
        size_t at = r->at;

        if (accept(r, "->")) {
            if (!dereference(r, at, out) || !member(r, at, out))
                return false;
        } else if (accept(r, "[")) {
            if (!element(r, at, out))
                return false;
        } else if (peek(r) == '.') {
            r->at++;
            follow_reference(r, out);
            if (!member(r, at, out))
                return false;
        } else {
            return true;
        }
    }
}

static bool read_number(struct reader *r, struct tbd_data *out)
{
    const char *s = r->text + r->at;
    char *rest;
    unsigned long long value = strtoull(s, &rest, 0);
    struct tbd_type type;

    if (*rest == '.' || ((*rest == 'e' || *rest == 'E') && s[1] != 'x' && s[1] != 'X')) {
        give_float(strtod(s, &rest), out);
        r->at = (size_t)(rest - r->text);
        return r->at <= r->end;
    }
    type = tbd_type_made(value > INT64_MAX ? DW_ATE_unsigned : DW_ATE_signed,
                         value > INT32_MAX ? 8 : 4);
    while (*rest == 'u' || *rest == 'U' || *rest == 'l' || *rest == 'L') {
        if (*rest == 'u' || *rest == 'U')
            type.encoding = DW_ATE_unsigned;
        else
            type.bytes = 8;
        rest++;
    }
    if (is_name_start(*rest) && (size_t)(rest - r->text) < r->end)
        return wrong(r, TBD_SYNTAX, r->at, (size_t)(rest - s) + 1, "not a number");
    tbd_data_number(value, &type, out);
    r->at = (size_t)(rest - r->text);
    return true;
}

static bool read_character(struct reader *r, struct tbd_data *out)
{
    static const char from[] = "ntr0\\'\"", to[] = "\n\t\r\0\\'\"";
    const char *s = r->text + r->at;
    size_t left = r->end - r->at;
    const char *found;

    if (left >= 3 && s[1] != '\\' && s[2] == '\'') {
        give_int((uint64_t)(int64_t)(signed char)s[1], out);
        r->at += 3;
        return true;
    }
    if (left >= 4 && s[1] == '\\' && s[3] == '\'' && s[2] != '\0' &&
        (found = strchr(from, s[2])) != NULL) {
        give_int((uint64_t)(unsigned char)to[found - from], out);
        r->at += 4;
        return true;
    }
    return wrong(r, TBD_SYNTAX, r->at, 1, "not a character");
}

static bool read_register(struct reader *r, const char *name, size_t length, struct tbd_data *out)
{
    const struct tbd_frame *frame = r->scope->place->frame;
    struct tbd_type type = tbd_type_made(DW_ATE_unsigned, 8);
    struct tbd_register_name reg;
    uint64_t value;

    if (strcmp(name, "$pc") == 0)
        reg = (struct tbd_register_name){ TBD_EXPR_RIP, 0, 64 };
    else if (strcmp(name, "$sp") == 0)
        reg = (struct tbd_register_name){ TBD_RSP, 0, 64 };
    else if (!tbd_register_find(name + 1, length - 1, &reg) || reg.which > TBD_EXPR_RIP)
        return wrong(r, TBD_NAME, r->at, length, "there is no register '%s'", name);
    r->at += length;
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

static bool read_name(struct reader *r, struct tbd_data *out)
{
    char name[NAME_BYTES];
    size_t length = word_at(r, name);

    if (length == 0)
        return wrong(r, TBD_SYNTAX, r->at, 1,
                     r->at >= r->end ? "the expression ends too early" : "expected a value");
    if (name[0] == '$')
        return read_register(r, name, length, out);
    if (!tbd_c_find(r->scope->place, name, out) &&
        (r->scope->variable == NULL || !r->scope->variable(r->scope->context, name, out)))
        return wrong(r, TBD_NAME, r->at, length, "there is no variable '%s' here", name);
    r->at += length;
    return true;
}

static bool read_primary(struct reader *r, struct tbd_data *out)
{
    char c = peek(r);

    if (accept(r, "("))
        return read_binary(r, 0, out) && expect(r, ")");
    if (isdigit((unsigned char)c))
        return read_number(r, out);
    return c == '\'' ? read_character(r, out) : read_name(r, out);
}

/* "(TYPE) value"; *is_cast false: what stands here is something else. */
static bool read_cast(struct reader *r, struct tbd_data *out, bool *is_cast)
{
    size_t start = r->at;
    struct tbd_type type;

    *is_cast = accept(r, "(") && read_type(r, &type) && accept(r, ")");
    if (!*is_cast) {
        r->at = start;
        return true;
    }
    return read_unary(r, out) && cast(r, start, &type, out);
}

static bool read_prefix(struct reader *r, struct tbd_data *out)
{
    bool is_cast;
    char c = peek(r);
    size_t at = r->at;

    if (c != '\0' && strchr("*&-+!~", c) != NULL) {
        r->at++;
        if (!read_unary(r, out))
            return false;
        return c == '*'   ? dereference(r, at, out)
               : c == '&' ? address_of(r, at, out)
                          : negate(r, c, out);
    }
    if (accept_word(r, "sizeof"))
        return size_of(r, out);
    if (!read_cast(r, out, &is_cast))
        return false;
    return is_cast || (read_primary(r, out) && read_postfix(r, out));
}

static bool read_unary(struct reader *r, struct tbd_data *out)
{
    bool good;

    if (r->depth >= DEPTH_MAX)
        return wrong(r, TBD_SYNTAX, r->at, 1, "the expression is nested too deeply");
    r->depth++;
    good = read_prefix(r, out);
    r->depth--;
    return good;
}

enum tbd_status tbd_c_evaluate(const struct tbd_c_scope *scope, const char *text, size_t from,
                               size_t to, struct tbd_data *out, struct tbd_query_error *error)
{
    struct reader r = { .scope = scope, .text = text, .at = from, .end = to, .error = error };

    *error = (struct tbd_query_error){ .status = TBD_OK };
    memset(out, 0, sizeof(*out));
    if (read_binary(&r, 0, out) && peek(&r) != '\0')
        (void)wrong(&r, TBD_SYNTAX, r.at, 1, "'%c' is not expected here", r.text[r.at]);
    return error->status;
}

enum tbd_status tbd_c_type(const struct tbd_c_scope *scope, const char *text, struct tbd_type *out)
{
    struct tbd_query_error error = { .status = TBD_OK };
    struct reader r = { .scope = scope, .text = text, .end = strlen(text), .error = &error };

    return read_type(&r, out) && peek(&r) == '\0' ? TBD_OK : TBD_NAME;
}
