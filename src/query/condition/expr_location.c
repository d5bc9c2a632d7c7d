// SPDX-License-Identifier: MIT
/* expr_location.c - translates a local variable's location into nodes of a condition
 *
 * Each DWARF operation of the location becomes the node that computes it. Variables of unoptimized
 * code lie at a fixed distance from the function's frame, which the walk over a window knows from
 * its calls; variables of optimized code lie in registers.
 *
 * At a function's first instructions unoptimized code has not stored its parameters yet: they are
 * taken from the registers in which the calling convention passes them. Other variables have no
 * value before the first store to them.
 *
 * EXPR_LOCATION-1  Everything is bounded: operations by STEPS_MAX, the stack by DEPTH_MAX. */
#include "query/condition/expr_lower.h"

#include "base/assert.h"
#include "query/debuginfo/dwarf_parameter.h"
#include "query/debuginfo/frame_unset.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#define XMM_FIRST 17u /* DWARF's number of the first vector register */
#define STEPS_MAX 256u
#define DEPTH_MAX 32u

struct translator {
    struct tbd_lowering *l;
    const Dwarf_Die *function;
    int32_t stack[DEPTH_MAX];
    unsigned depth;
    bool in_register, is_value;
    bool is_entry; /* at the function's first instruction */
    enum tbd_unset unset;
    uint32_t written; /* one bit for each register that was set since the function's entry */
    uint64_t reg;
    struct tbd_piece pieces[TBD_PIECES_MAX];
    uint32_t piece_count;
    const char *why; /* NULL: all is well */
};

static bool fail(struct translator *t, const char *why)
{
    if (t->why == NULL)
        t->why = why;
    return false;
}

static bool push(struct translator *t, int32_t node)
{
    if (t->depth >= DEPTH_MAX || node < 0)
        return fail(t, "its location is too complicated");
    t->stack[t->depth++] = node;
    return true;
}

static bool pop(struct translator *t, int32_t *out)
{
    if (t->depth == 0)
        return fail(t, "its location is damaged");
    *out = t->stack[--t->depth];
    return true;
}

/* DWARF's numbers of the registers (System V ABI, figure 3.36). */
static bool general_register(uint64_t number, uint32_t *out)
{
    static const uint8_t order[16] = {
        TBD_RAX, TBD_RDX, TBD_RCX, TBD_RBX, TBD_RSI, TBD_RDI, TBD_RBP, TBD_RSP,
        TBD_R8,  TBD_R9,  TBD_R10, TBD_R11, TBD_R12, TBD_R13, TBD_R14, TBD_R15,
    };

    if (number >= 16)
        return false;
    *out = order[number];
    return true;
}

/* Makes a whole register a piece of the variable; false: conditions do not know this register. */
static bool register_piece(struct tbd_lowering *l, uint64_t number, struct tbd_piece *out)
{
    uint32_t reg;

    *out = (struct tbd_piece){ .node = -1, .upper_node = -1, .bytes = 8 };
    if (general_register(number, &reg)) {
        out->node = tbd_lowering_register(l, reg);
        return true;
    }
    if (number < XMM_FIRST || number >= XMM_FIRST + 16)
        return false;
    reg = TBD_REGISTER_XMM0 + (uint32_t)(number - XMM_FIRST);
    out->bytes = 16;
    out->node = tbd_lowering_register(l, reg);
    out->upper_node = tbd_lowering_register(l, reg);
    l->out->nodes[out->upper_node].value = 64;
    return true;
}

static bool push_register(struct translator *t, uint64_t number, uint64_t offset)
{
    uint32_t reg;

    if (!general_register(number, &reg))
        return fail(t, "it is in a vector register");
    return push(t, tbd_lowering_binary(t->l, TBD_EXPR_ADD, tbd_lowering_register(t->l, reg),
                                       tbd_lowering_number(t->l, offset)));
}

static bool push_cfa(struct translator *t)
{
    struct tbd_expr_node node = { .op = TBD_EXPR_FRAME, .left = -1, .right = -1 };

    t->l->out->uses |= TBD_USES_FRAME;
    return push(t, tbd_lowering_add(t->l, &node));
}

/* The location description that is valid at the place. */
static bool choose(struct translator *t, Dwarf_Attribute *attribute, Dwarf_Op **ops, size_t *count)
{
    int found = dwarf_getlocation_addr(attribute, t->l->at->scope->place->address, ops, count, 1);

    if (found < 0)
        return fail(t, "its location is damaged");
    return found > 0 && *count != 0 ? true : fail(t, "it has no location at this instruction");
}

static bool push_frame_base(struct translator *t, uint64_t offset)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;

    if (t->function == NULL || !tbd_die_attribute(t->function, DW_AT_frame_base, &attribute) ||
        !choose(t, &attribute, &ops, &count) || count != 1)
        return fail(t, "its function has no frame base");
    if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
        return push_register(t, (uint64_t)(ops[0].atom - DW_OP_reg0), offset);
    if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31)
        return push_register(t, (uint64_t)(ops[0].atom - DW_OP_breg0), ops[0].number + offset);
    if (ops[0].atom != DW_OP_call_frame_cfa)
        return fail(t, "its function's frame base is too complicated");
    if (!push_cfa(t))
        return false;
    t->depth--;
    return push(t, tbd_lowering_binary(t->l, TBD_EXPR_ADD, t->stack[t->depth],
                                       tbd_lowering_number(t->l, offset)));
}

/* ---- operations ---- */

static int binary_of(uint8_t atom)
{
    switch (atom) {
    case DW_OP_plus: return TBD_EXPR_ADD;
    case DW_OP_minus: return TBD_EXPR_SUB;
    case DW_OP_mul: return TBD_EXPR_MUL;
    case DW_OP_and: return TBD_EXPR_BITAND;
    case DW_OP_or: return TBD_EXPR_BITOR;
    case DW_OP_xor: return TBD_EXPR_BITXOR;
    case DW_OP_shl: return TBD_EXPR_SHL;
    case DW_OP_shr: return TBD_EXPR_SHR;
    default: return -1;
    }
}

static bool combine(struct translator *t, int op)
{
    int32_t left = -1, right = -1;

    return pop(t, &right) && pop(t, &left) &&
           push(t, tbd_lowering_binary(t->l, (enum tbd_expr_op)op, left, right));
}

static bool change(struct translator *t, const Dwarf_Op *op)
{
    int32_t value = -1;

    if (!pop(t, &value))
        return false;
    switch (op->atom) {
    case DW_OP_plus_uconst:
        return push(t, tbd_lowering_binary(t->l, TBD_EXPR_ADD, value,
                                           tbd_lowering_number(t->l, op->number)));
    case DW_OP_deref: return push(t, tbd_lowering_memory(t->l, value, 8));
    case DW_OP_deref_size:
        return op->number >= 1 && op->number <= 8
                   ? push(t, tbd_lowering_memory(t->l, value, op->number))
                   : fail(t, "its location is damaged");
    case DW_OP_neg: return push(t, tbd_lowering_binary(t->l, TBD_EXPR_NEG, value, -1));
    default: return push(t, tbd_lowering_binary(t->l, TBD_EXPR_BITNOT, value, -1));
    }
}

/* The operations translated since the last piece make the next piece. */
static bool end_piece(struct translator *t, uint64_t bytes)
{
    struct tbd_piece piece = { .node = -1, .upper_node = -1 };

    if (t->piece_count == TBD_PIECES_MAX || bytes == 0 || bytes > UINT16_MAX)
        return fail(t, "it is in too many places");
    if (t->in_register && !register_piece(t->l, t->reg, &piece))
        return fail(t, "it is in a register that conditions do not know");
    if (!t->in_register && t->depth != 0) {
        piece.node = t->stack[t->depth - 1];
        piece.in_memory = !t->is_value;
    }
    piece.bytes = (uint32_t)bytes;
    t->pieces[t->piece_count++] = piece;
    t->depth = 0;
    t->in_register = t->is_value = false;
    return true;
}

static bool translate_other(struct translator *t, const Dwarf_Op *op)
{
    switch (op->atom) {
    case DW_OP_addr:
        return push(t, tbd_lowering_number(t->l, op->number + t->l->at->scope->place->bias));
    case DW_OP_bregx: return push_register(t, op->number, op->number2);
    case DW_OP_fbreg: return push_frame_base(t, op->number);
    case DW_OP_call_frame_cfa: return push_cfa(t);
    case DW_OP_plus_uconst:
    case DW_OP_deref:
    case DW_OP_deref_size:
    case DW_OP_neg:
    case DW_OP_not: return change(t, op);
    case DW_OP_stack_value: t->is_value = true; return true;
    case DW_OP_entry_value:
    case DW_OP_GNU_entry_value:
        return fail(t, "only the caller may know it: print it at the position instead");
    case DW_OP_piece: return end_piece(t, op->number);
    case DW_OP_bit_piece: return fail(t, "it is in several places");
    default: return fail(t, "its location is too complicated for a condition");
    }
}

static bool translate(struct translator *t, const Dwarf_Op *op)
{
    if (binary_of(op->atom) >= 0)
        return combine(t, binary_of(op->atom));
    if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts)
        return push(t, tbd_lowering_number(t->l, op->number));
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
        return push(t, tbd_lowering_number(t->l, (uint64_t)(op->atom - DW_OP_lit0)));
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
        return push_register(t, (uint64_t)(op->atom - DW_OP_breg0), op->number);
    if ((op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) || op->atom == DW_OP_regx) {
        t->in_register = true;
        t->reg = op->atom == DW_OP_regx ? op->number : (uint64_t)(op->atom - DW_OP_reg0);
        return true;
    }
    return translate_other(t, op);
}

static bool translate_all(struct translator *t, Dwarf_Attribute *attribute)
{
    Dwarf_Op *ops;
    size_t count;

    if (!choose(t, attribute, &ops, &count))
        return false;
    if (count > STEPS_MAX)
        return fail(t, "its location is too complicated");
    for (size_t i = 0; i < count; i++) {
        if (!translate(t, &ops[i]))
            return false;
        TBD_INVARIANT("EXPR_LOCATION-1", i < STEPS_MAX && t->depth <= DEPTH_MAX);
    }
    return t->in_register || t->depth != 0 || t->piece_count != 0
               ? true
               : fail(t, "its location is damaged");
}

/* ---- before the first store to the variable ---- */

static bool is_parameter(const Dwarf_Die *variable)
{
    return dwarf_tag((Dwarf_Die *)(uintptr_t)variable) == DW_TAG_formal_parameter;
}

/* The parameter is still where the calling convention passes it. */
static bool take_parameter(struct translator *t, const Dwarf_Die *variable)
{
    struct tbd_type type;
    int number;

    if ((!t->is_entry && t->unset == TBD_UNSET_NO) || t->function == NULL ||
        !is_parameter(variable))
        return false;
    number = tbd_parameter_register(t->function, variable);
    if (number < 0 || (t->written >> tbd_parameter_gpr(number) & 1) != 0)
        return false;
    type = tbd_type_of(variable);
    t->depth = 0;
    t->is_value = !tbd_parameter_is_address(&type);
    t->in_register = false;
    return push(t, tbd_lowering_register(t->l, tbd_parameter_gpr(number)));
}

static bool take_real_parameter(struct translator *t, const Dwarf_Die *variable)
{
    int number = is_parameter(variable) ? tbd_parameter_vector(t->function, variable) : -1;

    if (number < 0 || (t->written & TBD_UNSET_XMM0 << number) != 0)
        return false;
    t->in_register = true;
    t->reg = XMM_FIRST + (unsigned)number;
    t->piece_count = 0;
    return true;
}

/* True for a place below the frame at a function's first instruction: unoptimized code has not
 * stored the parameter there yet. */
static bool is_below_frame(const struct translator *t)
{
    const struct tbd_expr *out = t->l->out;
    const struct tbd_expr_node *node = t->depth == 0 ? NULL : &out->nodes[t->stack[t->depth - 1]];

    return t->is_entry && node != NULL && !t->is_value && node->op == TBD_EXPR_ADD &&
           out->nodes[node->left].op == TBD_EXPR_FRAME &&
           (int64_t)out->nodes[node->right].value < 0;
}

/* True if the variable lies in the frame and nothing was stored to it yet. */
static bool is_unset(const struct translator *t)
{
    return !t->in_register && t->piece_count == 0 &&
           (t->unset != TBD_UNSET_NO || is_below_frame(t));
}

/* ---- the result ---- */

static struct tbd_lowered in_pieces(const struct tbd_type *type, const struct tbd_piece *pieces,
                                    uint32_t count)
{
    struct tbd_lowered out = {
        .kind = TBD_LOWERED_PIECES, .has_type = true, .type = *type, .piece_count = count
    };

    memcpy(out.pieces, pieces, count * sizeof(*pieces));
    return out;
}

static struct tbd_lowered number_of(struct tbd_lowering *l, const struct tbd_type *type,
                                    int32_t node)
{
    struct tbd_type_view view = tbd_type_look(type);
    struct tbd_piece whole = { .node = node, .upper_node = -1, .bytes = 8 };
    struct tbd_type target;

    if (view.kind == TBD_TYPE_REFERENCE && tbd_type_target(type, &target))
        return tbd_lowered_place(node, &target);
    if (view.kind == TBD_TYPE_FLOAT || view.kind == TBD_TYPE_STRUCT || view.kind == TBD_TYPE_ARRAY)
        return in_pieces(type, &whole, 1);
    if (view.bytes != 0 && view.bytes < 8)
        node = tbd_lowering_extend(l, node, (uint32_t)view.bytes * 8, view.is_signed);
    return (struct tbd_lowered){
        .kind = TBD_LOWERED_NUMBER, .node = node, .has_type = true, .type = *type
    };
}

static struct tbd_lowered result_of(struct translator *t, const struct tbd_type *type)
{
    struct tbd_piece whole;
    uint32_t reg;

    if (t->in_register && general_register(t->reg, &reg))
        return number_of(t->l, type, tbd_lowering_register(t->l, reg));
    if (t->in_register)
        return register_piece(t->l, t->reg, &whole)
                   ? in_pieces(type, &whole, 1)
                   : tbd_lowering_gone(t->l, TBD_UNMAPPED,
                                       "it is in a register that conditions do not know");
    if (t->piece_count != 0)
        return in_pieces(type, t->pieces, t->piece_count);
    if (t->is_value)
        return number_of(t->l, type, t->stack[t->depth - 1]);
    return tbd_lowered_place(t->stack[t->depth - 1], type);
}

/* Fills in what is known about the place before the variable's description is read. */
static void look_at_function(struct translator *t, const Dwarf_Die *variable)
{
    const struct tbd_place_of *place = t->l->at->scope->place;

    t->is_entry = t->l->at->is_entry;
    if (place->scopes.count == 0)
        return;
    t->function = &place->scopes.dies[place->scopes.count - 1];
    t->is_entry = t->is_entry || tbd_parameter_is_entry(place, t->function);
    t->unset = tbd_frame_unset(place, t->function, variable, &t->written);
}

struct tbd_lowered tbd_lowering_local(struct tbd_lowering *l, const Dwarf_Die *variable)
{
    struct translator t = { .l = l };
    struct tbd_type type = tbd_type_of(variable);
    struct tbd_lowered result;
    Dwarf_Attribute attribute;
    bool good = false, unset = false;

    look_at_function(&t, variable);
    if (tbd_die_attribute(variable, DW_AT_location, &attribute))
        good = translate_all(&t, &attribute);
    else
        (void)fail(&t, "it has no location");
    if (!(good && (t.in_register || t.piece_count != 0)) && take_parameter(&t, variable))
        good = true;
    else
        unset = good && is_unset(&t) && !take_real_parameter(&t, variable);
    if (unset && t.unset == TBD_UNSET_PLACE)
        good = fail(&t, "its function has no frame yet");
    if (!good)
        return tbd_lowering_gone(l, TBD_UNMAPPED, "its value is not known here: %s", t.why);
    result = result_of(&t, &type);
    result.is_unset = unset;
    return result;
}
