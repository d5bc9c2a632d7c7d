// SPDX-License-Identifier: MIT
/* expr_lower_operators.c - lowers C's operators at one instruction: integers, pointers, floating
 * point
 *
 * Keeps EXPR_LOWER-1 and EXPR_LOWER-2.  An arithmetic result has no value if one operand has none;
 * `and`, `or` and ?: may still have one. */
#include "query/condition/expr_lower.h"
#include "query/text/lexer.h"

#include <dwarf.h>
#include <string.h>

static bool is_comparison(uint8_t op)
{
    return op >= TBD_EXPR_EQ && op <= TBD_EXPR_GE;
}

int32_t tbd_lowering_operator(struct tbd_lowering *l, int32_t left, int32_t right, bool is_signed,
                              bool real)
{
    struct tbd_expr_node node = { .op = l->node->op, .left = left, .right = right };

    node.is_signed = is_signed;
    node.is_real = real;
    return tbd_lowering_add(l, &node);
}

struct tbd_lowered tbd_lowering_step(struct tbd_lowering *l, enum tbd_expr_op op,
                                     const struct tbd_lowered *pointer,
                                     const struct tbd_lowered *number)
{
    struct tbd_lowered out = *pointer;
    int32_t by = tbd_lowering_binary(l, TBD_EXPR_MUL, number->node,
                                     tbd_lowering_number(l, tbd_type_step(&pointer->type)));

    out.node = tbd_lowering_binary(l, op, pointer->node, by);
    return out;
}

/* Gives a literal, or a time or an address, the type that it has in C. */
static void type_number(const struct tbd_lowering *l, struct tbd_lowered *v)
{
    const struct tbd_expr_node *number;
    bool is_long;

    if (v->has_type || (!v->is_literal && !v->is_wide))
        return;
    v->has_type = true;
    v->type = tbd_type_made(DW_ATE_unsigned, 8);
    if (v->is_wide)
        return;
    number = &l->out->nodes[v->node]; /* -1 is a literal here */
    is_long =
        number->which >= TBD_LITERAL_LONG ||
        (number->which == TBD_LITERAL_SIGNED && number->value != (uint64_t)(int32_t)number->value);
    v->type = tbd_type_made(number->which == TBD_LITERAL_SIGNED || number->which == TBD_LITERAL_LONG
                                ? DW_ATE_signed
                                : DW_ATE_unsigned,
                            is_long ? 8 : 4);
}

/* An untyped value combined with a C integer takes its type: the new value of a 4-byte store,
 * compared with an int. */
static void adopt(struct tbd_lowering *l, struct tbd_lowered *v, const struct tbd_lowered *other)
{
    struct tbd_type_view view;

    if (v->has_type || !other->has_type || tbd_lowered_is_real(other))
        return;
    type_number(l, v);
    if (v->has_type)
        return;
    view = tbd_type_look(&other->type);
    if (view.bytes < 8 && view.bytes != 0)
        v->node = tbd_lowering_extend(l, v->node, (uint32_t)view.bytes * 8, view.is_signed);
    v->has_type = true;
    v->type = other->type;
}

/* A shift has the type of its left side alone. */
static struct tbd_lowered combine_integers(struct tbd_lowering *l, const struct tbd_lowered *a,
                                           const struct tbd_lowered *b)
{
    bool is_shift = l->node->op == TBD_EXPR_SHL || l->node->op == TBD_EXPR_SHR;
    struct tbd_type_view x = tbd_type_look(&a->type);
    struct tbd_type_view y = is_shift ? x : tbd_type_look(&b->type);
    uint8_t bytes = x.bytes > 4 || y.bytes > 4 ? 8 : 4;
    bool is_unsigned = (x.bytes == bytes && !x.is_signed) || (y.bytes == bytes && !y.is_signed);
    int32_t left = a->node, right = b->node;

    if (bytes == 4 && is_unsigned) {
        left = tbd_lowering_extend(l, left, 32, false);
        right = is_shift ? right : tbd_lowering_extend(l, right, 32, false);
    }
    left = tbd_lowering_operator(l, left, right, !is_unsigned, false);
    if (is_comparison(l->node->op))
        return tbd_lowered_made(left, DW_ATE_signed, 4);
    if (bytes == 4)
        left = tbd_lowering_extend(l, left, 32, !is_unsigned);
    return tbd_lowered_made(left, is_unsigned ? DW_ATE_unsigned : DW_ATE_signed, bytes);
}

static struct tbd_lowered combine_pointers(struct tbd_lowering *l, const struct tbd_lowered *a,
                                           const struct tbd_lowered *b)
{
    uint8_t op = l->node->op;
    int32_t node;

    if (is_comparison(op))
        return tbd_lowered_made(tbd_lowering_operator(l, a->node, b->node, false, false),
                                DW_ATE_signed, 4);
    if (op == TBD_EXPR_SUB && (tbd_lowered_is_pointer(a) || a->is_address) &&
        (tbd_lowered_is_pointer(b) || b->is_address)) {
        struct tbd_expr_node divide = { .op = TBD_EXPR_DIV, .is_signed = 1 };

        node = tbd_lowering_operator(l, a->node, b->node, true, false);
        divide.left = node;
        divide.right =
            tbd_lowering_number(l, tbd_type_step(tbd_lowered_is_pointer(a) ? &a->type : &b->type));
        return tbd_lowered_made(tbd_lowering_add(l, &divide), DW_ATE_signed, 8);
    }
    if (op == TBD_EXPR_ADD && !(tbd_lowered_is_pointer(a) && tbd_lowered_is_pointer(b)))
        return tbd_lowered_is_pointer(a) ? tbd_lowering_step(l, TBD_EXPR_ADD, a, b)
                                         : tbd_lowering_step(l, TBD_EXPR_ADD, b, a);
    if (op == TBD_EXPR_SUB && tbd_lowered_is_pointer(a))
        return tbd_lowering_step(l, TBD_EXPR_SUB, a, b);
    return tbd_lowering_gone(l, TBD_TYPE, "this operator does not take pointers");
}

static struct tbd_lowered combine_reals(struct tbd_lowering *l, const struct tbd_lowered *a,
                                        const struct tbd_lowered *b)
{
    uint8_t op = l->node->op;
    bool narrow = tbd_lowered_are_narrow(a, b);
    int32_t node;

    if (!is_comparison(op) && (op < TBD_EXPR_ADD || op > TBD_EXPR_DIV))
        return tbd_lowering_gone(l, TBD_TYPE, "this operator takes integers");
    node = tbd_lowering_operator(l, tbd_lowered_to_real(l, a, narrow),
                                 tbd_lowered_to_real(l, b, narrow), true, true);
    if (is_comparison(op))
        return tbd_lowered_made(node, DW_ATE_signed, 4);
    if (narrow)
        node = tbd_lowering_binary(l, TBD_EXPR_NARROW, node, -1);
    return tbd_lowered_made(node, DW_ATE_float, narrow ? 4 : 8);
}

/* `kind == RED`: an enumerator of the other side's type. */
static bool lower_enumerator(struct tbd_lowering *l, int32_t index, const struct tbd_lowered *other,
                             struct tbd_lowered *out)
{
    const struct tbd_expr_node *node = &l->from->nodes[index];
    struct tbd_type_view view = tbd_type_look(&other->type);
    Dwarf_Die die;

    if (node->op != TBD_EXPR_VARIABLE || !other->has_type || view.kind != TBD_TYPE_ENUM)
        return false;
    for (bool more = tbd_die_child(&view.die, &die); more; more = tbd_die_next(&die, &die)) {
        const char *name = tbd_die_name(&die);
        uint64_t value = 0;

        if (name == NULL || strcmp(name, l->from->symbols[node->which]) != 0 ||
            !tbd_die_number(&die, DW_AT_const_value, &value))
            continue;
        l->from->symbol_found[node->which] = 1;
        *out = (struct tbd_lowered){ .kind = TBD_LOWERED_NUMBER,
                                     .node = tbd_lowering_number(l, value),
                                     .has_type = true,
                                     .type = other->type };
        return true;
    }
    return false;
}

/* Lowers both operands; a name that is no variable may be an enumerator of the other operand's
 * type. */
static void lower_operands(struct tbd_lowering *l, struct tbd_lowered *a, struct tbd_lowered *b)
{
    struct tbd_query_error before = *l->problem;

    *a = tbd_lower_value(l, l->node->left);
    if (a->kind != TBD_LOWERED_GONE && lower_enumerator(l, l->node->right, a, b))
        return;
    *b = tbd_lower_value(l, l->node->right);
    if (a->kind == TBD_LOWERED_GONE && b->kind != TBD_LOWERED_GONE &&
        lower_enumerator(l, l->node->left, b, a))
        *l->problem = before;
}

static const char *string_of(const struct tbd_lowering *l, int32_t index)
{
    const struct tbd_expr_node *node = &l->from->nodes[index];

    return node->op == TBD_EXPR_STRING ? l->from->symbols[node->which] : NULL;
}

struct tbd_lowered tbd_lower_binary(struct tbd_lowering *l)
{
    const struct tbd_expr_node *node = l->node;
    bool equality = node->op == TBD_EXPR_EQ || node->op == TBD_EXPR_NE;
    struct tbd_lowered a, b;

    if (equality && string_of(l, node->right) != NULL)
        return tbd_lower_compare_string(l, node->left, string_of(l, node->right),
                                        node->op == TBD_EXPR_NE);
    if (equality && string_of(l, node->left) != NULL)
        return tbd_lower_compare_string(l, node->right, string_of(l, node->left),
                                        node->op == TBD_EXPR_NE);
    lower_operands(l, &a, &b);
    if (a.kind == TBD_LOWERED_GONE || b.kind == TBD_LOWERED_GONE)
        return a.kind == TBD_LOWERED_GONE ? a : b;
    if (tbd_lowered_is_real(&a) || tbd_lowered_is_real(&b)) {
        type_number(l, &a);
        type_number(l, &b);
        return combine_reals(l, &a, &b);
    }
    if ((tbd_lowered_is_pointer(&a) && a.has_type) || (tbd_lowered_is_pointer(&b) && b.has_type))
        return combine_pointers(l, &a, &b);
    if (a.has_type || b.has_type) {
        adopt(l, &a, &b);
        adopt(l, &b, &a);
        return combine_integers(l, &a, &b);
    }
    return tbd_lowered_untyped(tbd_lowering_operator(l, a.node, b.node, node->is_signed, false));
}

struct tbd_lowered tbd_lower_unary(struct tbd_lowering *l)
{
    struct tbd_lowered v = tbd_lower_value(l, l->node->left);
    uint8_t op = l->node->op;
    struct tbd_type_view view;

    if (v.kind == TBD_LOWERED_GONE)
        return v;
    if (op == TBD_EXPR_NOT && tbd_lowered_is_real(&v))
        v = tbd_lowered_made(tbd_lowered_truth(l, &v), DW_ATE_signed, 4);
    if (tbd_lowered_is_real(&v) && op != TBD_EXPR_NEG)
        return tbd_lowering_gone(l, TBD_TYPE, "this operator takes integers");
    if (!v.has_type || op == TBD_EXPR_SIGNED)
        return tbd_lowered_untyped(tbd_lowering_operator(l, v.node, -1, l->node->is_signed, false));
    if (op == TBD_EXPR_NOT)
        return tbd_lowered_made(tbd_lowering_operator(l, v.node, -1, false, false), DW_ATE_signed,
                                4);
    view = tbd_type_look(&v.type);
    v.node = tbd_lowering_operator(l, v.node, -1, view.is_signed, tbd_lowered_is_real(&v));
    if (!tbd_lowered_is_real(&v) && view.bytes <= 4)
        v.node = tbd_lowering_extend(l, v.node, 32, view.is_signed || view.bytes < 4);
    if (!tbd_lowered_is_real(&v) && view.bytes < 4)
        v.type = tbd_type_made(DW_ATE_signed, 4);
    return v;
}

/* and, or: each side can decide alone, so a side without a value leaves the other its value. */
struct tbd_lowered tbd_lower_logical(struct tbd_lowering *l)
{
    struct tbd_lowered sides[2];

    for (int i = 0; i < 2; i++) {
        sides[i] = tbd_lower_value(l, i == 0 ? l->node->left : l->node->right);
        if (sides[i].kind == TBD_LOWERED_GONE)
            sides[i].node = tbd_lowering_nowhere(l);
        sides[i].node = tbd_lowered_truth(l, &sides[i]);
    }
    return tbd_lowered_made(tbd_lowering_operator(l, sides[0].node, sides[1].node, false, false),
                            DW_ATE_signed, 4);
}

/* `node` chooses `a` or `b`; the result has the common type that C gives to both. */
static struct tbd_lowered as_common(struct tbd_lowering *l, const struct tbd_lowered *a,
                                    const struct tbd_lowered *b, int32_t node)
{
    struct tbd_lowered out = a->kind == TBD_LOWERED_GONE || tbd_lowered_is_pointer(b) ? *b : *a;
    struct tbd_type_view x, y;
    bool is_unsigned;

    out.kind = TBD_LOWERED_NUMBER;
    out.node = node;
    out.is_literal = false;
    if (a->kind == TBD_LOWERED_GONE || b->kind == TBD_LOWERED_GONE || !a->has_type ||
        !b->has_type || tbd_lowered_is_pointer(&out))
        return out;
    x = tbd_type_look(&a->type);
    y = tbd_type_look(&b->type);
    if (x.bytes > 4 || y.bytes > 4) {
        is_unsigned = (x.bytes > 4 && !x.is_signed) || (y.bytes > 4 && !y.is_signed);
        return tbd_lowered_made(node, is_unsigned ? DW_ATE_unsigned : DW_ATE_signed, 8);
    }
    is_unsigned = (x.bytes == 4 && !x.is_signed) || (y.bytes == 4 && !y.is_signed);
    return tbd_lowered_made(tbd_lowering_extend(l, node, 32, !is_unsigned),
                            is_unsigned ? DW_ATE_unsigned : DW_ATE_signed, 4);
}

static int32_t side_node(struct tbd_lowering *l, const struct tbd_lowered *side, bool real,
                         bool narrow)
{
    if (side->kind == TBD_LOWERED_GONE)
        return tbd_lowering_nowhere(l);
    return real ? tbd_lowered_to_real(l, side, narrow) : side->node;
}

/* The side that is not chosen need not have a value. */
struct tbd_lowered tbd_lower_choice(struct tbd_lowering *l)
{
    const struct tbd_expr_node *sides = &l->from->nodes[l->node->right];
    struct tbd_lowered truth = tbd_lower_value(l, l->node->left), a, b;
    struct tbd_expr_node node = { .op = TBD_EXPR_SIDES };
    bool real, narrow;

    if (truth.kind == TBD_LOWERED_GONE)
        return truth;
    a = tbd_lower_value(l, sides->left);
    b = tbd_lower_value(l, sides->right);
    real = tbd_lowered_is_real(&a) || tbd_lowered_is_real(&b);
    narrow = tbd_lowered_are_narrow(&a, &b);
    if (!real && a.kind != TBD_LOWERED_GONE && b.kind != TBD_LOWERED_GONE) {
        adopt(l, &a, &b);
        adopt(l, &b, &a);
    }
    node.left = side_node(l, &a, real, narrow);
    node.right = side_node(l, &b, real, narrow);
    node = (struct tbd_expr_node){ .op = TBD_EXPR_CHOICE,
                                   .left = tbd_lowered_truth(l, &truth),
                                   .right = tbd_lowering_add(l, &node) };
    return real ? tbd_lowered_made(tbd_lowering_add(l, &node), DW_ATE_float, narrow ? 4 : 8)
                : as_common(l, &a, &b, tbd_lowering_add(l, &node));
}
