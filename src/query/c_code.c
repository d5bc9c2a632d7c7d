// SPDX-License-Identifier: MIT
/* c_code.c - from trees of C expressions to code (c_code.h)
 *
 * Types are known here, so every conversion becomes an instruction or nothing.
 *
 * I1  An item on the compiler's stack stands for exactly one word on the machine's.
 * I2  What is not supported ends the compilation with TBD_UNSUPPORTED; what is wrong in the text
 *     with an error that points at it. Nothing is compiled to something else. */
#include "query/c_code.h"

#include "query/names.h"

#include <dwarf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSNS_MAX   2048u
#define STRINGS_MAX 4096u

enum item_kind {
    MEMORY, /* the word is where it lies */
    WORD,   /* the word is the object's bytes, from the first on */
    NUMBER, /* an integer or pointer, extended to 64 bits */
    REAL,   /* a double's bits */
};

struct item {
    enum item_kind kind;
    struct tbd_type type;
    uint32_t bits, bit_offset; /* MEMORY, WORD: a bit-field */
};

struct compiler {
    struct tbd_c_emitter e;
    const struct tbd_c_scope *scope;
    const struct tbd_c_fields *fields;
    const struct tbd_c_tree *tree;
    const char *text;
    size_t string_bytes;
    struct tbd_query_error *error;
};

static bool compile(struct compiler *c, int32_t index, struct item *out);

static bool wrong(struct compiler *c, enum tbd_status status, const struct tbd_c_node *node,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
static bool wrong(struct compiler *c, enum tbd_status status, const struct tbd_c_node *node,
                  const char *format, ...)
{
    va_list args;

    if (c->error->status != TBD_OK)
        return false;
    *c->error =
        (struct tbd_query_error){ .status = status, .at = node->at, .length = node->length };
    va_start(args, format);
    vsnprintf(c->error->message, sizeof(c->error->message), format, args);
    va_end(args);
    return false;
}

/* ---- instructions ---- */

static int pushes(enum tbd_c_insn_op op)
{
    if (op <= TBD_CI_FIELD || op == TBD_CI_DUP)
        return 1;
    if (op == TBD_CI_LOAD || op == TBD_CI_SIGN || op == TBD_CI_ZERO || op == TBD_CI_ADD_VALUE ||
        (op >= TBD_CI_NEGATE && op <= TBD_CI_SWAP) ||
        (op >= TBD_CI_FLOAT_WIDEN && op <= TBD_CI_TO_SIGNED) || op == TBD_CI_F_NEGATE ||
        op == TBD_CI_F_BOOL || op == TBD_CI_STRING_EQ || op == TBD_CI_JUMP)
        return 0;
    return op == TBD_CI_UNKNOWN ? 1 : -1; /* it stands for a value */
}

/* register + value in one, and its load. */
static bool merges(struct tbd_c_code *code, enum tbd_c_insn_op op, unsigned size, uint64_t value)
{
    struct tbd_c_insn *last = code->count == 0 ? NULL : &code->insns[code->count - 1];

    if (last == NULL)
        return false;
    if (op == TBD_CI_ADD_VALUE &&
        (last->op == TBD_CI_REG || last->op == TBD_CI_PUSH || last->op == TBD_CI_ADD_VALUE)) {
        last->value += value;
        return true;
    }
    if (op != TBD_CI_LOAD || last->op != TBD_CI_REG)
        return false;
    last->op = TBD_CI_REG_LOAD;
    last->size = (uint16_t)size;
    return true;
}

void tbd_c_emit(struct tbd_c_emitter *e, enum tbd_c_insn_op op, unsigned size, uint32_t reg,
                uint64_t value)
{
    struct tbd_c_code *code = e->code;
    int change = pushes(op);

    if (op == TBD_CI_DUP && e->depth == 0)
        e->failed = true;
    if (change < 0 && e->depth < (op == TBD_CI_DROP || op == TBD_CI_JUMP_ZERO ? 1u : 2u))
        e->failed = true;
    if (change == 0 && e->depth < (op == TBD_CI_SWAP ? 2u : 1u) && op != TBD_CI_JUMP)
        e->failed = true;
    if (code->count >= INSNS_MAX || e->depth + 1 >= TBD_C_CODE_STACK)
        e->failed = true;
    if (e->failed)
        return;
    e->depth = (size_t)((int)e->depth + change);
    if (merges(code, op, size, value))
        return;
    code->insns[code->count++] = (struct tbd_c_insn){
        .op = (uint16_t)op, .size = (uint16_t)size, .reg = reg, .value = value
    };
}

static void emit(struct compiler *c, enum tbd_c_insn_op op)
{
    tbd_c_emit(&c->e, op, 8, 0, 0);
}

/* A jump whose target comes later; the next instruction must not be merged across it. */
static size_t emit_jump(struct compiler *c, enum tbd_c_insn_op op)
{
    emit(c, op);
    return c->e.code->count - 1;
}

static void land(struct compiler *c, size_t jump)
{
    if (!c->e.failed)
        c->e.code->insns[jump].value = c->e.code->count;
}

/* ---- items ---- */

static struct item number_of(const struct tbd_type *type)
{
    return (struct item){ .kind = NUMBER, .type = *type };
}

static struct item integer_item(void)
{
    struct tbd_type type = tbd_type_made(DW_ATE_signed, 4);

    return number_of(&type);
}

static bool too_hard(struct compiler *c, const struct tbd_c_node *node, const char *what)
{
    return wrong(c, TBD_UNSUPPORTED, node, "%s", what);
}

static void emit_extension(struct compiler *c, const struct tbd_type_view *view)
{
    if (view->bytes < 8)
        tbd_c_emit(&c->e, view->is_signed ? TBD_CI_SIGN : TBD_CI_ZERO, (unsigned)view->bytes * 8, 0,
                   0);
}

static bool load_bits(struct compiler *c, const struct tbd_c_node *node, struct item *item,
                      const struct tbd_type_view *view)
{
    uint32_t bytes = (item->bit_offset + item->bits + 7) / 8;

    if (bytes > 8 || item->bits == 0)
        return too_hard(c, node, "the bit-field spans nine bytes");
    if (item->kind == MEMORY)
        tbd_c_emit(&c->e, TBD_CI_LOAD, bytes, 0, 0);
    if (item->bit_offset != 0) {
        tbd_c_emit(&c->e, TBD_CI_PUSH, 8, 0, item->bit_offset);
        emit(c, TBD_CI_SHR);
    }
    tbd_c_emit(&c->e, view->is_signed ? TBD_CI_SIGN : TBD_CI_ZERO, item->bits, 0, 0);
    *item = number_of(&item->type);
    return true;
}

static bool load_real(struct compiler *c, const struct tbd_c_node *node, struct item *item,
                      const struct tbd_type_view *view)
{
    if (view->bytes != 4 && view->bytes != 8)
        return too_hard(c, node, "long double");
    if (item->kind == MEMORY)
        tbd_c_emit(&c->e, TBD_CI_LOAD, (unsigned)view->bytes, 0, 0);
    if (view->bytes == 4)
        emit(c, TBD_CI_FLOAT_WIDEN);
    item->kind = REAL;
    return true;
}

/* Arrays and functions become pointers to their first element, to themselves. */
static bool decay(struct compiler *c, const struct tbd_c_node *node, struct item *item,
                  const struct tbd_type_view *view)
{
    struct tbd_type target = item->type, pointer;

    if (item->kind != MEMORY)
        return too_hard(c, node, "an array in a register");
    if (view->kind == TBD_TYPE_ARRAY)
        (void)tbd_type_target(&item->type, &target);
    pointer = tbd_type_pointer_to(&target);
    *item = number_of(&pointer);
    return true;
}

/* What a C++ reference refers to. */
static void follow_reference(struct compiler *c, struct item *item)
{
    struct tbd_type target;

    if ((item->kind != MEMORY && item->kind != WORD) ||
        tbd_type_look(&item->type).kind != TBD_TYPE_REFERENCE ||
        !tbd_type_target(&item->type, &target))
        return;
    if (item->kind == MEMORY)
        tbd_c_emit(&c->e, TBD_CI_LOAD, 8, 0, 0);
    *item = (struct item){ .kind = MEMORY, .type = target };
}

/* The word becomes a number or a double. */
static bool load(struct compiler *c, const struct tbd_c_node *node, struct item *item)
{
    struct tbd_type_view view;

    if (item->kind == NUMBER || item->kind == REAL)
        return true;
    follow_reference(c, item);
    view = tbd_type_look(&item->type);
    if (view.kind == TBD_TYPE_ARRAY || view.kind == TBD_TYPE_FUNCTION)
        return decay(c, node, item, &view);
    if (view.kind == TBD_TYPE_FLOAT)
        return load_real(c, node, item, &view);
    if (view.kind != TBD_TYPE_INTEGER && view.kind != TBD_TYPE_ENUM &&
        view.kind != TBD_TYPE_POINTER)
        return wrong(c, TBD_TYPE, node, "this kind of value cannot be calculated with");
    if (view.bytes == 0 || view.bytes > 8)
        return too_hard(c, node, "a number of more than 64 bits");
    if (item->bits != 0)
        return load_bits(c, node, item, &view);
    if (item->kind == MEMORY)
        tbd_c_emit(&c->e, TBD_CI_LOAD, (unsigned)view.bytes, 0, 0);
    if (item->kind == WORD || view.is_signed)
        emit_extension(c, &view);
    item->kind = NUMBER;
    return true;
}

static bool is_pointer(const struct item *item)
{
    return item->kind == NUMBER && tbd_type_look(&item->type).kind == TBD_TYPE_POINTER;
}

static void make_real(struct compiler *c, struct item *item)
{
    if (item->kind == NUMBER)
        emit(c, tbd_type_look(&item->type).is_signed ? TBD_CI_FROM_SIGNED : TBD_CI_FROM_UNSIGNED);
    *item = (struct item){ .kind = REAL, .type = tbd_type_made(DW_ATE_float, 8) };
}

static void make_bool(struct compiler *c, const struct item *item)
{
    emit(c, item->kind == REAL ? TBD_CI_F_BOOL : TBD_CI_BOOL);
}

/* ---- names ---- */

static bool take_variable(struct compiler *c, const struct tbd_place_of *place,
                          const Dwarf_Die *die, const struct tbd_c_node *node, struct item *out)
{
    const struct tbd_place_of *own = c->e.place;
    size_t depth = c->e.depth;
    struct tbd_data data;
    enum tbd_c_place_kind kind;

    c->e.place = place;
    kind = tbd_c_emit_location(&c->e, die);
    c->e.place = own;
    if (kind <= TBD_C_IN_WORD && !c->e.failed && c->e.depth != depth + 1)
        return wrong(c, TBD_UNSUPPORTED, node, "its location is damaged");
    *out = (struct item){ .kind = kind == TBD_C_IN_WORD ? WORD : MEMORY, .type = tbd_type_of(die) };
    if (kind == TBD_C_TOO_HARD)
        return too_hard(c, node, "a value in several pieces or of the caller's");
    if (kind != TBD_C_NOWHERE)
        return true;
    tbd_location_value(place, die, &data);
    snprintf(c->e.code->why, sizeof(c->e.code->why), "%s", data.why);
    emit(c, TBD_CI_UNKNOWN);
    return true;
}

/* What needs no frame: functions, variables of other modules. */
static bool take_address(struct compiler *c, const struct tbd_c_node *node,
                         const struct tbd_data *data, struct item *out)
{
    uint64_t word = 0;

    *out = (struct item){ .kind = MEMORY, .type = data->type };
    if (!data->is_known)
        return too_hard(c, node, "a variable of another module that is not in memory");
    if (data->in_memory) {
        tbd_c_emit(&c->e, TBD_CI_PUSH, 8, 0, data->address);
        return true;
    }
    if (data->byte_count > 8)
        return too_hard(c, node, "a large constant");
    memcpy(&word, data->bytes, data->byte_count);
    tbd_c_emit(&c->e, TBD_CI_PUSH, 8, 0, word);
    out->kind = WORD;
    return true;
}

static bool take_register(struct compiler *c, const struct tbd_c_node *node, struct item *out)
{
    struct tbd_type type = tbd_type_made(DW_ATE_unsigned, 8);
    const char *name = c->text + node->at + 1;
    size_t length = node->length - 1;
    struct tbd_register_name reg = { TBD_RSP, 0, 64 };

    *out = number_of(&type);
    if (length == 2 && memcmp(name, "pc", 2) == 0)
        reg.which = TBD_EXPR_RIP;
    else if ((length != 2 || memcmp(name, "sp", 2) != 0) &&
             (!tbd_register_find(name, length, &reg) || reg.which > TBD_EXPR_RIP))
        return wrong(c, TBD_NAME, node, "there is no register '%.*s'", (int)node->length, name - 1);
    tbd_c_emit(&c->e, reg.which == TBD_EXPR_RIP ? TBD_CI_PC : TBD_CI_REG, 8, reg.which, 0);
    if (reg.shift != 0) {
        tbd_c_emit(&c->e, TBD_CI_PUSH, 8, 0, reg.shift);
        emit(c, TBD_CI_SHR);
    }
    if (reg.width != 64)
        tbd_c_emit(&c->e, TBD_CI_ZERO, reg.width, 0, 0);
    return true;
}

/* ---- unary operators ---- */

static bool dereference(struct compiler *c, const struct tbd_c_node *node, struct item *item)
{
    struct tbd_type target;

    if (!load(c, node, item))
        return false;
    if (!is_pointer(item) || !tbd_type_target(&item->type, &target))
        return wrong(c, TBD_TYPE, node, "this is not a pointer");
    if (tbd_type_look(&target).kind == TBD_TYPE_VOID)
        return wrong(c, TBD_TYPE, node, "a void pointer must be cast to the type it points to");
    *item = (struct item){ .kind = MEMORY, .type = target };
    return true;
}

static bool member(struct compiler *c, const struct tbd_c_node *node, struct item *item)
{
    const char *name = c->text + node->at;
    struct tbd_type_view view;
    struct tbd_member found;
    Dwarf_Die of;

    follow_reference(c, item);
    view = tbd_type_look(&item->type);
    if (view.kind != TBD_TYPE_STRUCT)
        return wrong(c, TBD_TYPE, node, "this is not a struct or union");
    of = tbd_type_complete(c->scope->place->dwarf, &view.die);
    if (!tbd_type_find_member(&of, name, node->length, &found))
        return wrong(c, TBD_NAME, node, "there is no member '%.*s'", (int)node->length, name);
    if (found.is_static || (item->kind == WORD && found.offset >= 8))
        return too_hard(c, node, "a static member, or a struct in several registers");
    if (item->kind == WORD && found.offset != 0) {
        tbd_c_emit(&c->e, TBD_CI_PUSH, 8, 0, found.offset * 8);
        emit(c, TBD_CI_SHR);
    } else if (found.offset != 0) {
        tbd_c_emit(&c->e, TBD_CI_ADD_VALUE, 8, 0, found.offset);
    }
    item->type = found.type;
    item->bits = found.bits;
    item->bit_offset = found.bit_offset;
    return true;
}

static bool take_name(struct compiler *c, const struct tbd_c_node *node, struct item *out)
{
    char name[TBD_C_NAME_BYTES];
    struct tbd_place_of place;
    struct tbd_type type;
    struct tbd_data data;
    uint32_t slot;
    Dwarf_Die die;

    memcpy(name, c->text + node->at, node->length);
    name[node->length] = '\0';
    if (c->fields != NULL && c->fields->find(c->fields->context, name, &slot, &type)) {
        tbd_c_emit(&c->e, TBD_CI_FIELD, 8, slot, 0);
        *out = number_of(&type);
        return true;
    }
    if (tbd_c_find_this(c->scope->place, name, &die))
        return take_variable(c, c->scope->place, &die, node, out) && dereference(c, node, out) &&
               member(c, node, out);
    if (tbd_c_find_entry(c->scope->place, name, &place, &die)) {
        if (dwarf_tag(&die) != DW_TAG_subprogram)
            return take_variable(c, &place, &die, node, out);
        tbd_c_take(&place, &die, &data);
        return take_address(c, node, &data, out);
    }
    if (c->scope->variable != NULL && c->scope->variable(c->scope->context, name, &data))
        return take_address(c, node, &data, out);
    return wrong(c, TBD_NAME, node, "there is no variable '%s' here", name);
}

static bool address_of(struct compiler *c, const struct tbd_c_node *node, struct item *item)
{
    struct tbd_type pointer;

    follow_reference(c, item);
    if (item->kind != MEMORY || item->bits != 0)
        return wrong(c, TBD_TYPE, node, "it has no address: it is in a register or a bit-field");
    pointer = tbd_type_pointer_to(&item->type);
    *item = number_of(&pointer);
    return true;
}

/* To the width of a type, as if stored and loaded again. */
static void narrow(struct compiler *c, const struct tbd_type *type)
{
    struct tbd_type_view view = tbd_type_look(type);

    if (view.bytes != 0)
        emit_extension(c, &view);
}

static bool cast(struct compiler *c, const struct tbd_c_node *node, struct item *item)
{
    struct tbd_type_view view = tbd_type_look(&node->type);

    if (item->kind == MEMORY && tbd_type_look(&item->type).kind == TBD_TYPE_VOID) {
        item->type = node->type;
        return true;
    }
    if (view.kind == TBD_TYPE_STRUCT || view.kind == TBD_TYPE_ARRAY)
        return wrong(c, TBD_TYPE, node, "a value cannot be cast to a struct or an array");
    if (!load(c, node, item))
        return false;
    if (view.kind == TBD_TYPE_FLOAT) {
        if (view.bytes != 8)
            return too_hard(c, node, "a cast to float");
        make_real(c, item);
        item->type = node->type;
        return true;
    }
    if (view.encoding == DW_ATE_boolean)
        make_bool(c, item);
    else if (item->kind == REAL)
        emit(c, TBD_CI_TO_SIGNED);
    narrow(c, &node->type);
    *item = number_of(&node->type);
    return true;
}

/* The common type of two integers (C17, 6.3.1.8). */
static struct tbd_type common(const struct item *a, const struct item *b)
{
    struct tbd_type_view x = tbd_type_look(&a->type), y = tbd_type_look(&b->type);
    uint8_t bytes = x.bytes > 4 || y.bytes > 4 ? 8 : 4;
    bool is_unsigned = (x.bytes == bytes && !x.is_signed) || (y.bytes == bytes && !y.is_signed);

    return tbd_type_made(is_unsigned ? DW_ATE_unsigned : DW_ATE_signed, bytes);
}

static bool negate(struct compiler *c, const struct tbd_c_node *node, struct item *item)
{
    struct tbd_type type;

    if (!load(c, node, item))
        return false;
    if (node->op == TBD_C_NOT) {
        make_bool(c, item);
        emit(c, TBD_CI_NOT);
        *item = integer_item();
        return true;
    }
    if (is_pointer(item) || (item->kind == REAL && node->op == TBD_C_COMPLEMENT))
        return wrong(c, TBD_TYPE, node, "this operator takes a number");
    if (item->kind == REAL) {
        if (node->op == TBD_C_MINUS_SIGN)
            emit(c, TBD_CI_F_NEGATE);
        return true;
    }
    type = common(item, item);
    if (node->op != TBD_C_PLUS_SIGN)
        emit(c, node->op == TBD_C_MINUS_SIGN ? TBD_CI_NEGATE : TBD_CI_COMPLEMENT);
    narrow(c, &type);
    *item = number_of(&type);
    return true;
}

/* ---- binary operators ---- */

static enum tbd_c_insn_op comparison(enum tbd_c_op op, bool is_signed)
{
    switch (op) {
    case TBD_C_EQUAL: return TBD_CI_EQ;
    case TBD_C_UNEQUAL: return TBD_CI_NE;
    case TBD_C_LESS:
    case TBD_C_GREATER: return is_signed ? TBD_CI_LT_SIGNED : TBD_CI_LT;
    default: return is_signed ? TBD_CI_LE_SIGNED : TBD_CI_LE;
    }
}

/* a > b is b < a. */
static void emit_comparison(struct compiler *c, enum tbd_c_op op, bool is_signed, bool is_real)
{
    enum tbd_c_insn_op insn = comparison(op, is_signed);

    if (op == TBD_C_GREATER || op == TBD_C_GREATER_EQUAL)
        emit(c, TBD_CI_SWAP);
    if (is_real)
        insn = insn == TBD_CI_EQ   ? TBD_CI_F_EQ
               : insn == TBD_CI_NE ? TBD_CI_F_NE
               : insn == TBD_CI_LT ? TBD_CI_F_LT
                                   : TBD_CI_F_LE;
    emit(c, insn);
}

static enum tbd_c_insn_op arithmetic(enum tbd_c_op op, bool is_signed)
{
    switch (op) {
    case TBD_C_PLUS: return TBD_CI_ADD;
    case TBD_C_MINUS: return TBD_CI_SUB;
    case TBD_C_TIMES: return TBD_CI_MUL;
    case TBD_C_BIT_OR: return TBD_CI_OR;
    case TBD_C_BIT_XOR: return TBD_CI_XOR;
    case TBD_C_BIT_AND: return TBD_CI_AND;
    case TBD_C_LEFT: return TBD_CI_SHL;
    case TBD_C_RIGHT: return is_signed ? TBD_CI_SAR : TBD_CI_SHR;
    case TBD_C_DIVIDED: return is_signed ? TBD_CI_DIV_SIGNED : TBD_CI_DIV;
    default: return is_signed ? TBD_CI_MOD_SIGNED : TBD_CI_MOD;
    }
}

static bool combine_reals(struct compiler *c, const struct tbd_c_node *node, struct item *left,
                          struct item *right)
{
    if (left->kind != REAL) {
        emit(c, TBD_CI_SWAP);
        make_real(c, left);
        emit(c, TBD_CI_SWAP);
    }
    make_real(c, right);
    *left = *right;
    if (tbd_c_is_comparison(node->op)) {
        emit_comparison(c, node->op, false, true);
        *left = integer_item();
        return true;
    }
    switch (node->op) {
    case TBD_C_PLUS: emit(c, TBD_CI_F_ADD); return true;
    case TBD_C_MINUS: emit(c, TBD_CI_F_SUB); return true;
    case TBD_C_TIMES: emit(c, TBD_CI_F_MUL); return true;
    case TBD_C_DIVIDED: emit(c, TBD_CI_F_DIV); return true;
    default: return wrong(c, TBD_TYPE, node, "this operator takes integers");
    }
}

static uint64_t step_of(const struct item *item)
{
    struct tbd_type target;
    uint64_t bytes = 0;

    if (tbd_type_target(&item->type, &target))
        bytes = tbd_type_look(&target).bytes;
    return bytes == 0 ? 1 : bytes;
}

static void emit_scale(struct compiler *c, enum tbd_c_insn_op op, uint64_t by)
{
    if (by == 1)
        return;
    tbd_c_emit(&c->e, TBD_CI_PUSH, 8, 0, by);
    emit(c, op);
}

static bool combine_pointers(struct compiler *c, const struct tbd_c_node *node, struct item *left,
                             struct item *right)
{
    struct tbd_type difference = tbd_type_made(DW_ATE_signed, 8);
    bool a = is_pointer(left), b = is_pointer(right);

    if (tbd_c_is_comparison(node->op)) {
        emit_comparison(c, node->op, false, false);
        *left = integer_item();
    } else if (node->op == TBD_C_MINUS && a && b) {
        emit(c, TBD_CI_SUB);
        emit_scale(c, TBD_CI_DIV_SIGNED, step_of(left));
        *left = number_of(&difference);
    } else if ((node->op == TBD_C_PLUS || node->op == TBD_C_MINUS) && a && !b) {
        emit_scale(c, TBD_CI_MUL, step_of(left));
        emit(c, node->op == TBD_C_PLUS ? TBD_CI_ADD : TBD_CI_SUB);
    } else if (node->op == TBD_C_PLUS && b) {
        emit(c, TBD_CI_SWAP);
        emit_scale(c, TBD_CI_MUL, step_of(right));
        emit(c, TBD_CI_ADD);
        *left = *right;
    } else {
        return wrong(c, TBD_TYPE, node, "this operator does not take pointers");
    }
    return true;
}

/* Only a narrower type has other bits in its word. */
static void convert(struct compiler *c, const struct item *item, const struct tbd_type *to)
{
    struct tbd_type_view from = tbd_type_look(&item->type), view = tbd_type_look(to);

    if (view.bytes < 8 && (from.bytes > view.bytes ||
                           (from.bytes == view.bytes && from.is_signed != view.is_signed) ||
                           (from.is_signed && !view.is_signed)))
        narrow(c, to);
}

static bool combine_integers(struct compiler *c, const struct tbd_c_node *node, struct item *left,
                             struct item *right)
{
    struct tbd_type type = common(left, right);
    bool is_signed = type.encoding == DW_ATE_signed;

    convert(c, right, &type);
    if (tbd_type_look(&left->type).is_signed && !is_signed && type.bytes < 8) {
        emit(c, TBD_CI_SWAP);
        convert(c, left, &type);
        emit(c, TBD_CI_SWAP);
    }
    if (tbd_c_is_comparison(node->op)) {
        emit_comparison(c, node->op, is_signed, false);
        *left = integer_item();
        return true;
    }
    emit(c, arithmetic(node->op, is_signed));
    narrow(c, &type);
    *left = number_of(&type);
    return true;
}

/* The right side runs only if the left does not decide. */
static bool compile_logic(struct compiler *c, const struct tbd_c_node *node, struct item *out)
{
    struct item right;
    size_t decided, end;

    if (!compile(c, node->left, out) || !load(c, node, out))
        return false;
    make_bool(c, out);
    if (node->op == TBD_C_OR_ELSE)
        emit(c, TBD_CI_NOT);
    decided = emit_jump(c, TBD_CI_JUMP_ZERO);
    if (!compile(c, node->right, &right) || !load(c, node, &right))
        return false;
    make_bool(c, &right);
    end = emit_jump(c, TBD_CI_JUMP);
    land(c, decided);
    c->e.depth--; /* the other way */
    tbd_c_emit(&c->e, TBD_CI_PUSH, 8, 0, node->op == TBD_C_OR_ELSE);
    land(c, end);
    emit(c, TBD_CI_BOOL); /* nothing merges across where ways meet */
    *out = integer_item();
    return true;
}

static bool compile_choice(struct compiler *c, const struct tbd_c_node *node, struct item *out)
{
    struct item third;
    size_t other, end;

    if (!compile(c, node->left, out) || !load(c, node, out))
        return false;
    make_bool(c, out);
    other = emit_jump(c, TBD_CI_JUMP_ZERO);
    if (!compile(c, node->right, out) || !load(c, node, out))
        return false;
    end = emit_jump(c, TBD_CI_JUMP);
    land(c, other);
    c->e.depth--;
    if (!compile(c, node->third, &third) || !load(c, node, &third))
        return false;
    if (third.kind != out->kind || is_pointer(&third) != is_pointer(out))
        return too_hard(c, node, "two kinds of value");
    land(c, end);
    if (out->kind == NUMBER && !is_pointer(out))
        out->type = common(out, &third);
    tbd_c_emit(&c->e, TBD_CI_ZERO, 64, 0, 0); /* as above */
    return true;
}

/* The characters of a std::string. */
static void take_characters(struct compiler *c, struct item *item)
{
    static const char *const path[] = { "_M_dataplus", "_M_p" };
    struct item start = *item;
    uint64_t offset = 0;

    for (size_t i = 0; i < 2; i++) {
        struct tbd_type_view view = tbd_type_look(&start.type);
        struct tbd_member found;
        Dwarf_Die of;

        if (start.kind != MEMORY || view.kind != TBD_TYPE_STRUCT)
            return;
        of = tbd_type_complete(c->scope->place->dwarf, &view.die);
        if (!tbd_type_find_member(&of, path[i], strlen(path[i]), &found) || found.is_static)
            return;
        offset += found.offset;
        start.type = found.type;
    }
    if (offset != 0)
        tbd_c_emit(&c->e, TBD_CI_ADD_VALUE, 8, 0, offset);
    *item = start;
}

static bool compile_string(struct compiler *c, const struct tbd_c_node *node,
                           const struct tbd_c_node *string, int32_t other, struct item *out)
{
    size_t left = STRINGS_MAX - c->string_bytes, length;
    char *to = c->e.code->strings + c->string_bytes;

    if (!compile(c, other, out))
        return false;
    follow_reference(c, out);
    take_characters(c, out);
    if (!load(c, node, out))
        return false;
    if (!is_pointer(out))
        return wrong(c, TBD_TYPE, node, "a string is compared with pointers and arrays");
    if (string->length >= left || string->length > 1000)
        return too_hard(c, node, "a long string");
    length = tbd_c_unescape(c->text + string->at, string->length, to, left - 1);
    to[length] = '\0';
    tbd_c_emit(&c->e, TBD_CI_STRING_EQ, (unsigned)length + 1, 0, c->string_bytes);
    c->string_bytes += length + 1;
    if (node->op == TBD_C_UNEQUAL)
        emit(c, TBD_CI_NOT);
    *out = integer_item();
    return true;
}

static bool compile_binary(struct compiler *c, const struct tbd_c_node *node, struct item *out)
{
    const struct tbd_c_node *a = &c->tree->nodes[node->left], *b = &c->tree->nodes[node->right];
    struct item right;

    if (node->op == TBD_C_OR_ELSE || node->op == TBD_C_AND_THEN)
        return compile_logic(c, node, out);
    if (node->op == TBD_C_EQUAL || node->op == TBD_C_UNEQUAL) {
        if (b->op == TBD_C_STRING && a->op != TBD_C_STRING)
            return compile_string(c, node, b, node->left, out);
        if (a->op == TBD_C_STRING && b->op != TBD_C_STRING)
            return compile_string(c, node, a, node->right, out);
    }
    if (!compile(c, node->left, out) || !load(c, node, out) || !compile(c, node->right, &right) ||
        !load(c, node, &right))
        return false;
    if (out->kind == REAL || right.kind == REAL)
        return combine_reals(c, node, out, &right);
    if (is_pointer(out) || is_pointer(&right))
        return combine_pointers(c, node, out, &right);
    return combine_integers(c, node, out, &right);
}

static bool compile_index(struct compiler *c, const struct tbd_c_node *node, struct item *out)
{
    struct tbd_c_node plus = *node;
    struct item index;

    plus.op = TBD_C_PLUS;
    if (!compile(c, node->left, out) || !load(c, node, out) || !compile(c, node->right, &index) ||
        !load(c, node, &index))
        return false;
    if (index.kind == REAL || (!is_pointer(out) && !is_pointer(&index)))
        return wrong(c, TBD_TYPE, node, "this is not a pointer");
    return combine_pointers(c, &plus, out, &index) && dereference(c, node, out);
}

/* ---- trees ---- */

static bool compile_leaf(struct compiler *c, const struct tbd_c_node *node, struct item *out)
{
    struct tbd_type real = tbd_type_made(DW_ATE_float, 8);
    uint64_t bits;

    switch (node->op) {
    case TBD_C_NUMBER:
        tbd_c_emit(&c->e, TBD_CI_PUSH, 8, 0, node->number);
        *out = number_of(&node->type);
        return true;
    case TBD_C_REAL:
        memcpy(&bits, &node->real, sizeof(bits));
        tbd_c_emit(&c->e, TBD_CI_PUSH, 8, 0, bits);
        *out = (struct item){ .kind = REAL, .type = real };
        return true;
    case TBD_C_REGISTER: return take_register(c, node, out);
    case TBD_C_STRING: return wrong(c, TBD_TYPE, node, "a string is compared with == or != only");
    default: return take_name(c, node, out);
    }
}

static bool compile_unary(struct compiler *c, const struct tbd_c_node *node, struct item *out)
{
    if (!compile(c, node->left, out))
        return false;
    switch (node->op) {
    case TBD_C_MEMBER: return member(c, node, out);
    case TBD_C_ARROW: return dereference(c, node, out) && member(c, node, out);
    case TBD_C_CAST: return cast(c, node, out);
    case TBD_C_DEREF: return dereference(c, node, out);
    case TBD_C_ADDRESS: return address_of(c, node, out);
    default: return negate(c, node, out);
    }
}

/* The operand is compiled for its type and dropped. */
static bool compile_sizeof(struct compiler *c, const struct tbd_c_node *node, struct item *out)
{
    struct tbd_type result = tbd_type_made(DW_ATE_unsigned, 8);
    size_t mark = c->e.code->count, depth = c->e.depth;
    uint64_t bytes;

    if (!compile(c, node->left, out))
        return false;
    bytes = tbd_type_look(&out->type).bytes;
    c->e.code->count = mark;
    c->e.depth = depth;
    tbd_c_emit(&c->e, TBD_CI_PUSH, 8, 0, bytes);
    *out = number_of(&result);
    return true;
}

static bool compile(struct compiler *c, int32_t index, struct item *out)
{
    const struct tbd_c_node *node = &c->tree->nodes[index];

    if (node->op == TBD_C_SIZEOF)
        return compile_sizeof(c, node, out);
    if (node->op == TBD_C_INDEX)
        return compile_index(c, node, out);
    if (node->op == TBD_C_CHOICE)
        return compile_choice(c, node, out);
    if (node->left < 0)
        return compile_leaf(c, node, out);
    return node->right < 0 ? compile_unary(c, node, out) : compile_binary(c, node, out);
}

/* The value of the whole; an object that is none is given by its address. */
static bool finish(struct compiler *c, struct item *item)
{
    const struct tbd_c_node *root = &c->tree->nodes[c->tree->root];
    struct tbd_type_view view;

    follow_reference(c, item);
    view = tbd_type_look(&item->type);
    c->e.code->type = item->type;
    if (item->kind == MEMORY && (view.kind == TBD_TYPE_STRUCT || view.kind == TBD_TYPE_ARRAY ||
                                 view.kind == TBD_TYPE_FUNCTION)) {
        c->e.code->is_address = true;
        return true;
    }
    if (!load(c, root, item))
        return false;
    c->e.code->type = item->type;
    c->e.code->is_float = item->kind == REAL;
    return true;
}

static void note_needs(struct tbd_c_code *code)
{
    for (size_t i = 0; i < code->count; i++) {
        const struct tbd_c_insn *insn = &code->insns[i];

        if (insn->op == TBD_CI_REG || insn->op == TBD_CI_REG_LOAD)
            code->needs |= 1u << insn->reg;
        if (insn->op == TBD_CI_FS)
            code->needs |= TBD_C_CODE_NEEDS_FS;
        if (insn->op == TBD_CI_XMM)
            code->needs |= TBD_C_CODE_NEEDS_XSAVE;
        if (insn->op == TBD_CI_PC)
            code->needs |= TBD_C_CODE_NEEDS_PC;
        code->needs_memory |=
            insn->op == TBD_CI_LOAD || insn->op == TBD_CI_REG_LOAD || insn->op == TBD_CI_STRING_EQ;
    }
}

static struct tbd_c_code *new_code(void)
{
    struct tbd_c_code *code = calloc(1, sizeof(*code));

    if (code == NULL)
        return NULL;
    code->insns = calloc(INSNS_MAX, sizeof(*code->insns));
    code->strings = calloc(STRINGS_MAX, 1);
    if (code->insns != NULL && code->strings != NULL)
        return code;
    tbd_c_code_free(code);
    return NULL;
}

/* Only the room that is used. */
static void trim(struct tbd_c_code *code, size_t string_bytes)
{
    struct tbd_c_insn *insns = realloc(code->insns, code->count * sizeof(*insns) + 1);
    char *strings = realloc(code->strings, string_bytes + 1);

    code->insns = insns != NULL ? insns : code->insns;
    code->strings = strings != NULL ? strings : code->strings;
}

enum tbd_status tbd_c_compile(const struct tbd_c_scope *scope, struct tbd_elf_file *file,
                              const struct tbd_c_fields *fields, const char *text, size_t from,
                              size_t to, struct tbd_c_code **out, struct tbd_query_error *error)
{
    struct tbd_c_types types = tbd_c_types_of(scope);
    struct tbd_c_tree tree;
    struct compiler c = {
        .scope = scope, .fields = fields, .tree = &tree, .text = text, .error = error
    };
    struct tbd_elf_range range;
    struct item item;

    *out = NULL;
    if (tbd_c_parse(&types, text, from, to, &tree, error) != TBD_OK)
        return error->status;
    c.e = (struct tbd_c_emitter){ .code = new_code(), .place = scope->place, .file = file };
    if (c.e.code == NULL) {
        error->status = TBD_NOMEM;
    } else {
        tbd_dwarf_scope_range(scope->place->dwarf, &scope->place->scopes, scope->place->address,
                              &range);
        c.e.code->start = range.start + scope->place->bias;
        c.e.code->end = range.end > UINT64_MAX - scope->place->bias
                            ? UINT64_MAX
                            : range.end + scope->place->bias;
        if (compile(&c, tree.root, &item) && finish(&c, &item) && c.e.failed)
            (void)too_hard(&c, &tree.nodes[tree.root], "the expression is too long");
    }
    tbd_c_tree_free(&tree);
    if (error->status != TBD_OK) {
        tbd_c_code_free(c.e.code);
        return error->status;
    }
    note_needs(c.e.code);
    trim(c.e.code, c.string_bytes);
    *out = c.e.code;
    return TBD_OK;
}

void tbd_c_code_free(struct tbd_c_code *code)
{
    if (code == NULL)
        return;
    free(code->insns);
    free(code->strings);
    free(code);
}
