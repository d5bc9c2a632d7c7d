// SPDX-License-Identifier: MIT
/* expr_lower.c - see expr_lower.h
 *
 * One walk over the tree, operands first.  A value that has no C type (numbers, an event's fields,
 * registers, mem[...]) takes the type of what it is combined with, if that is a C integer, so that
 * `newval == count` compares like with like.
 *
 * I1  Nodes made here have operands with smaller indices, as tbd_expr_eval() needs.
 * I2  What cannot be had is a NOWHERE node; the walk never stops for it. */
#include "query/expr_lower.h"

#include <dwarf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t nowhere(struct tbd_lowering *l)
{
    struct tbd_expr_node node = { .op = TBD_EXPR_NOWHERE, .left = -1, .right = -1 };

    node.value = l->problem->status == TBD_UNMAPPED;
    return tbd_lowering_add(l, &node);
}

/* ---- variables ---- */

static struct tbd_lowered from_data(struct tbd_lowering *l, const struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    struct tbd_lowered out = { .has_type = true, .type = data->type };
    uint64_t value = 0;

    if (!data->is_known)
        return tbd_lowering_gone(l, TBD_UNMAPPED, "its value is not known here: %s", data->why);
    if (view.kind == TBD_TYPE_VOID && data->in_memory)
        return tbd_lowering_gone(l, TBD_TYPE, "there is no debug information about its type");
    if (data->in_memory) {
        out.kind = TBD_LOWERED_PLACE;
        out.node = tbd_lowering_number(l, data->address);
        return out;
    }
    if (!tbd_data_scalar(l->at->scope->place, data, &value))
        return tbd_lowering_gone(l, TBD_TYPE, "a constant of this type is not supported");
    out.kind = TBD_LOWERED_NUMBER;
    out.node = tbd_lowering_number(l, value);
    return out;
}

/* The struct at *place becomes its member; false if there is none of this name. */
static bool take_member(struct tbd_lowering *l, struct tbd_lowered *place, const char *name)
{
    struct tbd_type_view view = tbd_type_look(&place->type);
    Dwarf_Die die = tbd_type_complete(l->at->scope->place->dwarf, &view.die);
    struct tbd_member found;

    if (!tbd_type_find_member(&die, name, strlen(name), &found) || found.is_static)
        return false;
    if (place->kind == TBD_LOWERED_PIECES)
        place->offset += found.offset;
    else
        place->node =
            tbd_lowering_binary(l, TBD_EXPR_ADD, place->node, tbd_lowering_number(l, found.offset));
    place->type = found.type;
    place->bits = found.bits;
    place->bit_offset = found.bit_offset;
    return true;
}

/* In a method of C++, a member of the object. */
static bool find_in_this(struct tbd_lowering *l, const char *name, struct tbd_lowered *out)
{
    struct tbd_type target;
    Dwarf_Die die;

    if (!tbd_c_find_local(l->at->scope->place, "this", &die))
        return false;
    *out = tbd_lowering_local(l, &die);
    *out = tbd_lowered_load(l, out);
    if (!tbd_lowered_is_pointer(out) || !tbd_type_target(&out->type, &target) ||
        tbd_type_look(&target).kind != TBD_TYPE_STRUCT)
        return false;
    *out = tbd_lowered_place(out->node, &target);
    return take_member(l, out, name);
}

static struct tbd_lowered lower_variable(struct tbd_lowering *l)
{
    const struct tbd_c_scope *scope = l->at->scope;
    const char *name = l->from->symbols[l->node->which];
    struct tbd_lowered member;
    struct tbd_data data;
    Dwarf_Die die;

    if (tbd_c_find_local(scope->place, name, &die)) {
        l->from->symbol_found[l->node->which] = 1;
        tbd_location_value(scope->place, &die, &data);
        return data.is_known ? from_data(l, &data) : tbd_lowering_local(l, &die);
    }
    if (find_in_this(l, name, &member)) {
        l->from->symbol_found[l->node->which] = 1;
        return member;
    }
    if ((scope->place->dwarf != NULL && tbd_c_find(scope->place, name, &data)) ||
        (scope->variable != NULL && scope->variable(scope->context, name, &data))) {
        l->from->symbol_found[l->node->which] = 1;
        return from_data(l, &data);
    }
    return tbd_lowering_gone(l, TBD_NAME, "there is no variable '%.100s' in scope", name);
}

static struct tbd_lowered lower(struct tbd_lowering *l, int32_t index);

static struct tbd_lowered lower_place(struct tbd_lowering *l, int32_t index)
{
    const struct tbd_expr_node *node = l->node;
    struct tbd_lowered v = lower(l, index);

    l->node = node;
    return v;
}

static struct tbd_lowered lower_value(struct tbd_lowering *l, int32_t index)
{
    struct tbd_lowered v = lower_place(l, index);

    return tbd_lowered_load(l, &v);
}

/* The thing that a pointer (or array) value leads to. */
static struct tbd_lowered follow(struct tbd_lowering *l, const struct tbd_lowered *v)
{
    struct tbd_type target;

    if (v->kind == TBD_LOWERED_GONE)
        return *v;
    if (!tbd_lowered_is_pointer(v) || !tbd_type_target(&v->type, &target))
        return tbd_lowering_gone(l, TBD_TYPE, "this is not a pointer");
    return tbd_lowered_place(v->node, &target);
}

/* What a reference of C++ in memory refers to. */
static void through_reference(struct tbd_lowering *l, struct tbd_lowered *place)
{
    struct tbd_type target;

    if (tbd_type_look(&place->type).kind == TBD_TYPE_REFERENCE &&
        tbd_type_target(&place->type, &target))
        *place = tbd_lowered_place(tbd_lowering_memory(l, place->node, 8), &target);
}

static struct tbd_lowered lower_member(struct tbd_lowering *l)
{
    const char *name = l->from->symbols[l->node->which];
    struct tbd_lowered of =
        l->node->value != 0 ? lower_value(l, l->node->left) : lower_place(l, l->node->left);
    struct tbd_type_view view;

    if (l->node->value != 0)
        of = follow(l, &of);
    if (of.kind == TBD_LOWERED_GONE)
        return of;
    if (of.kind == TBD_LOWERED_PLACE && of.has_type)
        through_reference(l, &of);
    if ((of.kind != TBD_LOWERED_PLACE && of.kind != TBD_LOWERED_PIECES) || !of.has_type)
        return tbd_lowering_gone(l, TBD_TYPE, "this is not a struct or union");
    view = tbd_type_look(&of.type);
    if (view.kind != TBD_TYPE_STRUCT)
        return tbd_lowering_gone(l, TBD_TYPE,
                                 view.kind == TBD_TYPE_POINTER
                                     ? "this is a pointer: write ->%s"
                                     : "this is not a struct or union, to have '%s'",
                                 name);
    return take_member(l, &of, name)
               ? of
               : tbd_lowering_gone(l, TBD_NAME, "there is no member '%s'", name);
}

static uint64_t step_of(const struct tbd_lowered *pointer)
{
    struct tbd_type target;
    uint64_t bytes = 0;

    if (tbd_type_target(&pointer->type, &target))
        bytes = tbd_type_look(&target).bytes;
    return bytes == 0 ? 1 : bytes;
}

/* pointer + number (or -), in steps of what it points to. */
static struct tbd_lowered step_pointer(struct tbd_lowering *l, enum tbd_expr_op op,
                                       const struct tbd_lowered *pointer,
                                       const struct tbd_lowered *number)
{
    struct tbd_lowered out = *pointer;
    int32_t by = tbd_lowering_binary(l, TBD_EXPR_MUL, number->node,
                                     tbd_lowering_number(l, step_of(pointer)));

    out.node = tbd_lowering_binary(l, op, pointer->node, by);
    return out;
}

static struct tbd_lowered lower_index(struct tbd_lowering *l)
{
    struct tbd_lowered base = lower_value(l, l->node->left);
    struct tbd_lowered number = lower_value(l, l->node->right);

    if (base.kind == TBD_LOWERED_GONE || number.kind == TBD_LOWERED_GONE)
        return base.kind == TBD_LOWERED_GONE ? base : number;
    if (!tbd_lowered_is_pointer(&base) || tbd_lowered_is_pointer(&number) ||
        tbd_lowered_is_real(&number))
        return tbd_lowering_gone(l, TBD_TYPE, "this cannot be indexed");
    base = step_pointer(l, TBD_EXPR_ADD, &base, &number);
    return follow(l, &base);
}

static struct tbd_lowered lower_address(struct tbd_lowering *l)
{
    struct tbd_lowered v = lower_place(l, l->node->left);

    if (v.kind == TBD_LOWERED_GONE)
        return v;
    if (v.kind != TBD_LOWERED_PLACE || v.bits != 0)
        return tbd_lowering_gone(l, TBD_TYPE, "it has no address here");
    v = tbd_lowered_untyped(v.node); /* counted in bytes, as &NAME is */
    v.is_address = true;
    return v;
}

/* ---- types ---- */

static bool find_type(struct tbd_lowering *l, const char *text, struct tbd_type *out)
{
    return tbd_c_type(l->at->scope, text, out) == TBD_OK;
}

static struct tbd_lowered convert(struct tbd_lowering *l, struct tbd_lowered v,
                                  const struct tbd_type *type)
{
    struct tbd_type_view view = tbd_type_look(type);

    if (v.kind == TBD_LOWERED_GONE)
        return v;
    if (view.kind == TBD_TYPE_FLOAT)
        return tbd_lowered_made(tbd_lowered_to_real(l, &v), DW_ATE_float, 8);
    if (tbd_lowered_is_real(&v))
        return tbd_lowering_gone(l, TBD_TYPE, "a floating-point number cannot be cast to this");
    if (view.kind != TBD_TYPE_INTEGER && view.kind != TBD_TYPE_ENUM &&
        view.kind != TBD_TYPE_POINTER)
        return tbd_lowering_gone(l, TBD_TYPE, "a value cannot be cast to this type");
    if (view.bytes < 8 && view.bytes != 0)
        v.node = tbd_lowering_extend(l, v.node, (uint32_t)view.bytes * 8, view.is_signed);
    v.has_type = true;
    v.is_literal = false;
    v.type = *type;
    return v;
}

static struct tbd_lowered lower_cast(struct tbd_lowering *l)
{
    const char *text = l->from->symbols[l->node->which];
    struct tbd_type type;

    if (!find_type(l, text, &type))
        return tbd_lowering_gone(l, TBD_NAME, "there is no type '%.100s' here", text);
    return convert(l, lower_value(l, l->node->left), &type);
}

static struct tbd_lowered lower_sizeof(struct tbd_lowering *l)
{
    struct tbd_lowered v = { .has_type = true };

    if (l->node->left < 0) {
        const char *text = l->from->symbols[l->node->which];

        if (!find_type(l, text, &v.type))
            return tbd_lowering_gone(l, TBD_NAME, "there is no type '%.100s' here", text);
    } else {
        v = lower_place(l, l->node->left);
        if (v.kind == TBD_LOWERED_GONE)
            return v;
    }
    return tbd_lowered_made(tbd_lowering_number(l, v.has_type ? tbd_type_look(&v.type).bytes : 8u),
                            DW_ATE_unsigned, 8);
}

/* ---- strings ---- */

/* A std::string or std::string_view becomes the pointer to its characters;
 * *out_length: its length. */
static void take_std_string(struct tbd_lowering *l, struct tbd_lowered *v, int32_t *out_length)
{
    struct tbd_lowered characters = *v, length = *v;

    if (tbd_type_look(&v->type).kind != TBD_TYPE_STRUCT)
        return;
    if (!(take_member(l, &characters, "_M_dataplus") && take_member(l, &characters, "_M_p") &&
          take_member(l, &length, "_M_string_length")) &&
        !(take_member(l, &characters, "_M_str") && take_member(l, &length, "_M_len")))
        return;
    *v = characters;
    length = tbd_lowered_load(l, &length);
    if (length.kind == TBD_LOWERED_NUMBER)
        *out_length = length.node;
}

/* The address of a string: of a char array, or a pointer's value.  *out_room: of an array;
 * *out_length: the node of a std::string's length, else -1. */
static struct tbd_lowered string_at(struct tbd_lowering *l, int32_t index, uint64_t *out_room,
                                    int32_t *out_length)
{
    struct tbd_lowered v = lower_place(l, index);
    struct tbd_type_view view;

    *out_room = UINT64_MAX;
    *out_length = -1;
    if (v.kind == TBD_LOWERED_PLACE && v.has_type)
        through_reference(l, &v);
    if ((v.kind == TBD_LOWERED_PLACE || v.kind == TBD_LOWERED_PIECES) && v.has_type)
        take_std_string(l, &v, out_length);
    if (v.kind == TBD_LOWERED_GONE || !v.has_type)
        return v.kind == TBD_LOWERED_GONE ? v
                                          : tbd_lowering_gone(l, TBD_TYPE, "this is not a string");
    view = tbd_type_look(&v.type);
    if (view.kind == TBD_TYPE_ARRAY && view.bytes != 0)
        *out_room = view.bytes;
    v = tbd_lowered_load(l, &v);
    if (v.kind != TBD_LOWERED_GONE && !tbd_lowered_is_pointer(&v))
        return tbd_lowering_gone(l, TBD_TYPE, "this is not a string");
    return v;
}

/* The bytes of `text` and its end, eight at a time. */
static struct tbd_lowered compare_string(struct tbd_lowering *l, int32_t index, const char *text,
                                         bool unequal)
{
    uint64_t room, bytes = strlen(text) + 1;
    int32_t length;
    struct tbd_lowered at = string_at(l, index, &room, &length);
    int32_t all = -1;

    if (at.kind == TBD_LOWERED_GONE)
        return at;
    if (bytes - 1 > room)
        return tbd_lowered_made(tbd_lowering_number(l, unequal), DW_ATE_signed, 4);
    if (length >= 0)
        all = tbd_lowering_binary(l, TBD_EXPR_EQ, length, tbd_lowering_number(l, bytes - 1));
    bytes = length >= 0 ? bytes - 1 : bytes > room ? room : bytes;
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t size = bytes - i < 8 ? bytes - i : 8, wanted = 0;
        int32_t part = tbd_lowering_binary(l, TBD_EXPR_ADD, at.node, tbd_lowering_number(l, i));

        memcpy(&wanted, text + i, size);
        part = tbd_lowering_memory(l, part, size);
        part = tbd_lowering_binary(l, TBD_EXPR_EQ, part, tbd_lowering_number(l, wanted));
        all = all < 0 ? part : tbd_lowering_binary(l, TBD_EXPR_AND, all, part);
    }
    if (unequal)
        all = tbd_lowering_binary(l, TBD_EXPR_NOT, all, -1);
    return tbd_lowered_made(all, DW_ATE_signed, 4);
}

static struct tbd_lowered lower_like(struct tbd_lowering *l)
{
    uint64_t room;
    int32_t length;
    struct tbd_lowered at = string_at(l, l->node->left, &room, &length);
    struct tbd_expr_node node = { .op = TBD_EXPR_MATCHES,
                                  .left = at.node,
                                  .right = length,
                                  .value = l->node->which,
                                  .which = l->out->memory_count };

    if (at.kind == TBD_LOWERED_GONE)
        return at;
    l->out->memory_count += TBD_EXPR_MATCH_SLOTS;
    l->out->uses |= TBD_USES_MEMORY;
    return tbd_lowered_made(tbd_lowering_add(l, &node), DW_ATE_signed, 4);
}

/* ---- operators ---- */

static bool is_comparison(uint8_t op)
{
    return op >= TBD_EXPR_EQ && op <= TBD_EXPR_GE;
}

static int32_t add_operator(struct tbd_lowering *l, int32_t left, int32_t right, bool is_signed,
                            bool real)
{
    struct tbd_expr_node node = { .op = l->node->op, .left = left, .right = right };

    node.is_signed = is_signed;
    node.is_real = real;
    return tbd_lowering_add(l, &node);
}

/* An untyped value beside a C integer is taken as that type: the field of a 4-byte store. */
static void adopt(struct tbd_lowering *l, struct tbd_lowered *v, const struct tbd_lowered *other)
{
    struct tbd_type_view view;

    if (v->has_type || !other->has_type || tbd_lowered_is_real(other))
        return;
    if (v->is_literal) {
        int64_t value = (int64_t)l->out->nodes[v->node].value; /* -1 is a literal here */

        v->has_type = true;
        v->type = tbd_type_made(DW_ATE_signed, value < INT32_MIN || value > INT32_MAX ? 8 : 4);
        return;
    }
    view = tbd_type_look(&other->type);
    if (view.bytes < 8 && view.bytes != 0)
        v->node = tbd_lowering_extend(l, v->node, (uint32_t)view.bytes * 8, view.is_signed);
    v->has_type = true;
    v->type = other->type;
}

static struct tbd_lowered combine_integers(struct tbd_lowering *l, const struct tbd_lowered *a,
                                           const struct tbd_lowered *b)
{
    struct tbd_type_view x = tbd_type_look(&a->type), y = tbd_type_look(&b->type);
    uint8_t bytes = x.bytes > 4 || y.bytes > 4 ? 8 : 4;
    bool is_unsigned = (x.bytes == bytes && !x.is_signed) || (y.bytes == bytes && !y.is_signed);
    int32_t left = a->node, right = b->node;

    if (bytes == 4 && is_unsigned) {
        left = tbd_lowering_extend(l, left, 32, false);
        right = tbd_lowering_extend(l, right, 32, false);
    }
    left = add_operator(l, left, right, !is_unsigned, false);
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
        return tbd_lowered_made(add_operator(l, a->node, b->node, false, false), DW_ATE_signed, 4);
    if (op == TBD_EXPR_SUB && tbd_lowered_is_pointer(a) &&
        (tbd_lowered_is_pointer(b) || b->is_address)) {
        struct tbd_expr_node divide = { .op = TBD_EXPR_DIV, .is_signed = 1 };

        node = add_operator(l, a->node, b->node, true, false);
        divide.left = node;
        divide.right = tbd_lowering_number(l, step_of(a));
        return tbd_lowered_made(tbd_lowering_add(l, &divide), DW_ATE_signed, 8);
    }
    if (op == TBD_EXPR_ADD && !(tbd_lowered_is_pointer(a) && tbd_lowered_is_pointer(b)))
        return tbd_lowered_is_pointer(a) ? step_pointer(l, TBD_EXPR_ADD, a, b)
                                         : step_pointer(l, TBD_EXPR_ADD, b, a);
    if (op == TBD_EXPR_SUB && tbd_lowered_is_pointer(a))
        return step_pointer(l, TBD_EXPR_SUB, a, b);
    return tbd_lowering_gone(l, TBD_TYPE, "this operator does not take pointers");
}

static struct tbd_lowered combine_reals(struct tbd_lowering *l, const struct tbd_lowered *a,
                                        const struct tbd_lowered *b)
{
    uint8_t op = l->node->op;
    int32_t node;

    if (!is_comparison(op) && (op < TBD_EXPR_ADD || op > TBD_EXPR_DIV))
        return tbd_lowering_gone(l, TBD_TYPE, "this operator takes integers");
    node = add_operator(l, tbd_lowered_to_real(l, a), tbd_lowered_to_real(l, b), true, true);
    return is_comparison(op) ? tbd_lowered_made(node, DW_ATE_signed, 4)
                             : tbd_lowered_made(node, DW_ATE_float, 8);
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

/* Both operands; what is no variable may be an enumerator of the other's type. */
static void lower_operands(struct tbd_lowering *l, struct tbd_lowered *a, struct tbd_lowered *b)
{
    struct tbd_query_error before = *l->problem;

    *a = lower_value(l, l->node->left);
    if (a->kind != TBD_LOWERED_GONE && lower_enumerator(l, l->node->right, a, b))
        return;
    *b = lower_value(l, l->node->right);
    if (a->kind == TBD_LOWERED_GONE && b->kind != TBD_LOWERED_GONE &&
        lower_enumerator(l, l->node->left, b, a))
        *l->problem = before;
}

static const char *string_of(const struct tbd_lowering *l, int32_t index)
{
    const struct tbd_expr_node *node = &l->from->nodes[index];

    return node->op == TBD_EXPR_STRING ? l->from->symbols[node->which] : NULL;
}

static struct tbd_lowered lower_binary(struct tbd_lowering *l)
{
    const struct tbd_expr_node *node = l->node;
    bool equality = node->op == TBD_EXPR_EQ || node->op == TBD_EXPR_NE;
    struct tbd_lowered a, b;

    if (equality && string_of(l, node->right) != NULL)
        return compare_string(l, node->left, string_of(l, node->right), node->op == TBD_EXPR_NE);
    if (equality && string_of(l, node->left) != NULL)
        return compare_string(l, node->right, string_of(l, node->left), node->op == TBD_EXPR_NE);
    lower_operands(l, &a, &b);
    if (a.kind == TBD_LOWERED_GONE || b.kind == TBD_LOWERED_GONE)
        return a.kind == TBD_LOWERED_GONE ? a : b;
    if (tbd_lowered_is_real(&a) || tbd_lowered_is_real(&b))
        return combine_reals(l, &a, &b);
    if ((tbd_lowered_is_pointer(&a) && a.has_type) || (tbd_lowered_is_pointer(&b) && b.has_type))
        return combine_pointers(l, &a, &b);
    adopt(l, &a, &b);
    adopt(l, &b, &a);
    if (a.has_type && b.has_type)
        return combine_integers(l, &a, &b);
    return tbd_lowered_untyped(add_operator(l, a.node, b.node, node->is_signed, false));
}

static struct tbd_lowered lower_unary(struct tbd_lowering *l)
{
    struct tbd_lowered v = lower_value(l, l->node->left);
    uint8_t op = l->node->op;
    struct tbd_type_view view;

    if (v.kind == TBD_LOWERED_GONE)
        return v;
    if (op == TBD_EXPR_NOT && tbd_lowered_is_real(&v))
        return tbd_lowering_gone(l, TBD_TYPE, "'!' takes an integer or a pointer: compare with 0");
    if (tbd_lowered_is_real(&v) && op != TBD_EXPR_NEG)
        return tbd_lowering_gone(l, TBD_TYPE, "this operator takes integers");
    if (!v.has_type || op == TBD_EXPR_SIGNED)
        return tbd_lowered_untyped(add_operator(l, v.node, -1, l->node->is_signed, false));
    if (op == TBD_EXPR_NOT)
        return tbd_lowered_made(add_operator(l, v.node, -1, false, false), DW_ATE_signed, 4);
    view = tbd_type_look(&v.type);
    v.node = add_operator(l, v.node, -1, view.is_signed, tbd_lowered_is_real(&v));
    if (!tbd_lowered_is_real(&v) && view.bytes <= 4)
        v.node = tbd_lowering_extend(l, v.node, 32, view.is_signed || view.bytes < 4);
    if (!tbd_lowered_is_real(&v) && view.bytes < 4)
        v.type = tbd_type_made(DW_ATE_signed, 4);
    return v;
}

/* and, or: each side decides for itself, so one without a value does not take the other along. */
static struct tbd_lowered lower_logical(struct tbd_lowering *l)
{
    struct tbd_lowered sides[2];

    for (int i = 0; i < 2; i++) {
        sides[i] = lower_value(l, i == 0 ? l->node->left : l->node->right);
        if (sides[i].kind == TBD_LOWERED_GONE)
            sides[i].node = nowhere(l);
        else if (tbd_lowered_is_real(&sides[i]))
            sides[i].node = nowhere(l);
    }
    return tbd_lowered_made(add_operator(l, sides[0].node, sides[1].node, false, false),
                            DW_ATE_signed, 4);
}

/* `node` is one of the two: it has the type that C gives to both. */
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

static int32_t side_node(struct tbd_lowering *l, const struct tbd_lowered *side, bool real)
{
    if (side->kind == TBD_LOWERED_GONE)
        return nowhere(l);
    return real ? tbd_lowered_to_real(l, side) : side->node;
}

/* The side that is not chosen need not have a value. */
static struct tbd_lowered lower_choice(struct tbd_lowering *l)
{
    const struct tbd_expr_node *sides = &l->from->nodes[l->node->right];
    struct tbd_lowered truth = lower_value(l, l->node->left), a, b;
    struct tbd_expr_node node = { .op = TBD_EXPR_SIDES };
    bool real;

    if (truth.kind == TBD_LOWERED_GONE)
        return truth;
    if (tbd_lowered_is_real(&truth))
        return tbd_lowering_gone(l, TBD_TYPE, "what stands before '?' is compared with 0");
    a = lower_value(l, sides->left);
    b = lower_value(l, sides->right);
    real = tbd_lowered_is_real(&a) || tbd_lowered_is_real(&b);
    if (!real && a.kind != TBD_LOWERED_GONE && b.kind != TBD_LOWERED_GONE) {
        adopt(l, &a, &b);
        adopt(l, &b, &a);
    }
    node.left = side_node(l, &a, real);
    node.right = side_node(l, &b, real);
    node = (struct tbd_expr_node){ .op = TBD_EXPR_CHOICE, .left = truth.node,
                                   .right = tbd_lowering_add(l, &node) };
    return real ? tbd_lowered_made(tbd_lowering_add(l, &node), DW_ATE_float, 8)
                : as_common(l, &a, &b, tbd_lowering_add(l, &node));
}

/* ---- what conditions have without variables ---- */

static struct tbd_lowered lower_memory(struct tbd_lowering *l)
{
    struct tbd_lowered address = lower_value(l, l->node->left);
    struct tbd_expr_node node = *l->node;
    int32_t index;

    if (address.kind == TBD_LOWERED_GONE)
        return address;
    node.left = address.node;
    node.which = l->out->memory_count++;
    node.is_real = 0;
    l->out->uses |= TBD_USES_MEMORY;
    index = tbd_lowering_add(l, &node);
    if (l->node->is_real && node.value == 4)
        index = tbd_lowering_binary(l, TBD_EXPR_WIDEN, index, -1);
    return l->node->is_real ? tbd_lowered_made(index, DW_ATE_float, 8) : tbd_lowered_untyped(index);
}

static struct tbd_lowered lower_touches(struct tbd_lowering *l)
{
    struct tbd_lowered a = lower_value(l, l->node->left);
    struct tbd_lowered b = lower_value(l, l->node->right);

    if (a.kind == TBD_LOWERED_GONE || b.kind == TBD_LOWERED_GONE)
        return a.kind == TBD_LOWERED_GONE ? a : b;
    return tbd_lowered_untyped(add_operator(l, a.node, b.node, false, false));
}

static struct tbd_lowered lower_leaf(struct tbd_lowering *l)
{
    struct tbd_expr_node node = *l->node;
    struct tbd_lowered out;

    node.left = node.right = -1; /* a folded number keeps its operands */
    if (node.op == TBD_EXPR_FIELD && node.which == TBD_FIELD_LINE)
        return l->at->line == 0
                   ? tbd_lowering_gone(l, TBD_TYPE, "the source line is not known here")
                   : tbd_lowered_made(tbd_lowering_number(l, l->at->line), DW_ATE_unsigned, 4);
    if (node.op == TBD_EXPR_REGISTER && node.width < 64) {
        out = tbd_lowered_untyped(tbd_lowering_add(l, &node));
        return out;
    }
    if (node.is_real)
        return tbd_lowered_made(tbd_lowering_add(l, &node), DW_ATE_float, 8);
    out = tbd_lowered_untyped(tbd_lowering_add(l, &node));
    out.is_literal = node.op == TBD_EXPR_NUMBER;
    return out;
}

static struct tbd_lowered lower_deref(struct tbd_lowering *l)
{
    struct tbd_lowered v = lower_value(l, l->node->left);

    return follow(l, &v);
}

static struct tbd_lowered lower(struct tbd_lowering *l, int32_t index)
{
    l->node = &l->from->nodes[index];
    switch ((enum tbd_expr_op)l->node->op) {
    case TBD_EXPR_VARIABLE: return lower_variable(l);
    case TBD_EXPR_MEMBER: return lower_member(l);
    case TBD_EXPR_INDEX: return lower_index(l);
    case TBD_EXPR_DEREF: return lower_deref(l);
    case TBD_EXPR_ADDRESS: return lower_address(l);
    case TBD_EXPR_CAST: return lower_cast(l);
    case TBD_EXPR_SIZEOF: return lower_sizeof(l);
    case TBD_EXPR_LIKE: return lower_like(l);
    case TBD_EXPR_CHOICE: return lower_choice(l);
    case TBD_EXPR_STRING:
        return tbd_lowering_gone(l, TBD_TYPE, "a string can only be compared, by == != or =~");
    case TBD_EXPR_MEMORY: return lower_memory(l);
    case TBD_EXPR_TOUCHES: return lower_touches(l);
    case TBD_EXPR_AND:
    case TBD_EXPR_OR: return lower_logical(l);
    case TBD_EXPR_NOT:
    case TBD_EXPR_NEG:
    case TBD_EXPR_BITNOT:
    case TBD_EXPR_SIGNED: return lower_unary(l);
    case TBD_EXPR_NUMBER:
    case TBD_EXPR_SYMBOL:
    case TBD_EXPR_FIELD:
    case TBD_EXPR_REGISTER:
    case TBD_EXPR_FUNCTION:
    case TBD_EXPR_MODULE:
    case TBD_EXPR_STACK: return lower_leaf(l);
    default: return lower_binary(l);
    }
}

/* ---- the whole ---- */

static void borrow(struct tbd_expr *out, const struct tbd_expr *from)
{
    out->from = from;
    out->names = from->names;
    out->name_count = from->name_count;
    out->patterns = from->patterns;
    out->pattern_count = from->pattern_count;
    out->regexes = from->regexes;
    out->regex_count = from->regex_count;
    out->uses = from->uses & ~(uint32_t)(TBD_USES_MEMORY | TBD_USES_TYPES);
    out->registers = from->registers;
}

enum tbd_status tbd_expr_lower(struct tbd_expr *expr, const struct tbd_lower *lower_at,
                               struct tbd_expr **out, struct tbd_query_error *problem)
{
    struct tbd_lowering l = { .at = lower_at, .from = expr, .problem = problem };
    struct tbd_lowered root;

    *problem = (struct tbd_query_error){ .status = TBD_OK };
    *out = NULL;
    l.out = calloc(1, sizeof(*l.out));
    if (l.out == NULL)
        return TBD_NOMEM;
    borrow(l.out, expr);
    l.node = &expr->nodes[expr->root];
    root = lower_value(&l, expr->root);
    if (root.kind == TBD_LOWERED_GONE || tbd_lowered_is_real(&root))
        root.node = nowhere(&l);
    if (!l.no_memory && l.out->levels > TBD_EXPR_MAX_LEVELS) {
        (void)tbd_lowering_gone(&l, TBD_TYPE,
                                "it needs too many reads of memory inside each other");
        l.out->node_count = l.out->memory_count = l.out->levels = 0;
        root.node = nowhere(&l);
    }
    if (l.no_memory) {
        tbd_expr_free(l.out);
        return TBD_NOMEM;
    }
    l.out->root = root.node;
    *out = l.out;
    return TBD_OK;
}
