// SPDX-License-Identifier: MIT
/* expr_lower.c - see expr_lower.h
 *
 * One walk over the tree, operands first.  A value that has no C type (numbers, an event's fields,
 * registers, mem[...]) takes the type of the other operand, if that is a C integer, so that `newval
 * == count` compares like with like.
 *
 * EXPR_LOWER-1  Nodes made here have operands with smaller indices, as tbd_expr_eval() needs. (not
 *     checked: nodes are added by tbd_expr_add(): EXPR_NODES-1)
 * EXPR_LOWER-2  A value that is not available is a NOWHERE node; the walk goes on after it. (not
 *     checked: it is about what is not done) */
#include "query/condition/expr_lower.h"

#include "query/condition/field_names.h"
#include "query/text/lexer.h"
#include "query/values/cxx_cast.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

int32_t tbd_lowering_nowhere(struct tbd_lowering *l)
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

/* The struct at *place becomes its member; false if no member has this name. */
static bool take_member(struct tbd_lowering *l, struct tbd_lowered *place, const char *name)
{
    struct tbd_type_view view = tbd_type_look(&place->type);
    Dwarf_Die die = tbd_type_complete(l->at->scope->place->dwarf, &view.die);
    struct tbd_member found;
    struct tbd_data data;

    if (!tbd_type_find_member(&die, name, strlen(name), &found))
        return false;
    if (found.is_static) {
        (void)tbd_c_static_member(l->at->scope->place, &found, &data);
        *place = from_data(l, &data);
        return true;
    }
    if (found.is_virtual) {
        *place =
            tbd_lowering_gone(l, TBD_TYPE, "members of virtual base classes are not supported");
        return true;
    }
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

/* A name in a C++ method may be a member of the object: this->NAME. */
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
    if (tbd_c_find(scope, name, &data)) {
        l->from->symbol_found[l->node->which] = 1;
        return from_data(l, &data);
    }
    return tbd_lowering_gone(l, TBD_NAME, TBD_LOWER_NO_VARIABLE, name, tbd_field_meant(name));
}

static struct tbd_lowered lower(struct tbd_lowering *l, int32_t index);

static struct tbd_lowered lower_place(struct tbd_lowering *l, int32_t index)
{
    const struct tbd_expr_node *node = l->node;
    struct tbd_lowered v = lower(l, index);

    l->node = node;
    return v;
}

struct tbd_lowered tbd_lower_value(struct tbd_lowering *l, int32_t index)
{
    struct tbd_lowered v = lower_place(l, index);

    return tbd_lowered_load(l, &v);
}

/* The object that a pointer points to, or an array's first element. */
static struct tbd_lowered follow(struct tbd_lowering *l, const struct tbd_lowered *v)
{
    struct tbd_lowered place;
    struct tbd_type target;

    if (v->kind == TBD_LOWERED_GONE)
        return *v;
    if (v->is_address && v->type.die.addr != NULL) { /* *&x, (&x)->member */
        place = tbd_lowered_place(v->node, &v->type);
        place.is_unset = v->is_unset;
        return place;
    }
    if (!tbd_lowered_is_pointer(v) || !tbd_type_target(&v->type, &target))
        return tbd_lowering_gone(l, TBD_TYPE, "this is not a pointer");
    place = tbd_lowered_place(v->node, &target);
    place.is_unset = v->is_unset;
    return place;
}

/* The object to which a C++ reference in memory refers. */
static void through_reference(struct tbd_lowering *l, struct tbd_lowered *place)
{
    struct tbd_type target;

    if (tbd_type_look(&place->type).kind != TBD_TYPE_REFERENCE ||
        !tbd_type_target(&place->type, &target))
        return;
    if (place->is_unset)
        *place = tbd_lowering_unset(l);
    else
        *place = tbd_lowered_place(tbd_lowering_memory(l, place->node, 8), &target);
}

static struct tbd_lowered lower_member(struct tbd_lowering *l)
{
    const char *name = l->from->symbols[l->node->which];
    struct tbd_lowered of =
        l->node->value != 0 ? tbd_lower_value(l, l->node->left) : lower_place(l, l->node->left);
    struct tbd_type_view view;

    if (l->node->value != 0)
        of = follow(l, &of);
    if (of.kind == TBD_LOWERED_GONE)
        return of;
    if (of.kind == TBD_LOWERED_PLACE && of.has_type)
        through_reference(l, &of);
    if (of.kind == TBD_LOWERED_GONE)
        return of;
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

static struct tbd_lowered lower_index(struct tbd_lowering *l)
{
    struct tbd_lowered base = tbd_lower_value(l, l->node->left);
    struct tbd_lowered number = tbd_lower_value(l, l->node->right);

    if (base.kind == TBD_LOWERED_GONE || number.kind == TBD_LOWERED_GONE)
        return base.kind == TBD_LOWERED_GONE ? base : number;
    if (!tbd_lowered_is_pointer(&base) || tbd_lowered_is_pointer(&number) ||
        tbd_lowered_is_real(&number))
        return tbd_lowering_gone(l, TBD_TYPE, "this cannot be indexed");
    base = tbd_lowering_step(l, TBD_EXPR_ADD, &base, &number);
    return follow(l, &base);
}

static struct tbd_lowered lower_address(struct tbd_lowering *l)
{
    struct tbd_lowered v = lower_place(l, l->node->left);
    struct tbd_type object;

    if (v.kind == TBD_LOWERED_PLACE && v.has_type)
        through_reference(l, &v);
    if (v.kind == TBD_LOWERED_GONE)
        return v;
    if (v.kind != TBD_LOWERED_PLACE || v.bits != 0)
        return tbd_lowering_gone(l, TBD_TYPE, "it has no address here");
    object = v.type;
    v = tbd_lowered_untyped(v.node); /* counted in bytes, as &NAME is */
    v.is_address = v.is_wide = true;
    v.type = object;
    return v;
}

/* ---- types ---- */

static bool find_type(struct tbd_lowering *l, const char *text, struct tbd_type *out)
{
    return tbd_c_type(l->at->scope, text, out) == TBD_OK;
}

/* A pointer to a class, cast to one to a base class or back: 0 stays 0. */
static bool cast_class(struct tbd_lowering *l, struct tbd_lowered *v, const struct tbd_type *type)
{
    struct tbd_expr_node sides = { .op = TBD_EXPR_SIDES }, choice = { .op = TBD_EXPR_CHOICE };
    struct tbd_type from, to;
    uint64_t step = 0;

    from = v->type; /* of &x: the object's */
    if ((!v->is_address && !tbd_type_target(&v->type, &from)) || !tbd_type_target(type, &to))
        return true;
    if (!tbd_object_cast_step(l->at->scope->place, &from, &to, &step))
        return false;
    if (step == 0)
        return true;
    sides.left = tbd_lowering_binary(l, TBD_EXPR_ADD, v->node, tbd_lowering_number(l, step));
    sides.right = tbd_lowering_number(l, 0);
    choice.left = v->node;
    choice.right = tbd_lowering_add(l, &sides);
    v->node = tbd_lowering_add(l, &choice);
    return true;
}

static struct tbd_lowered convert(struct tbd_lowering *l, struct tbd_lowered v,
                                  const struct tbd_type *type)
{
    struct tbd_type_view view = tbd_type_look(type);

    if (v.kind == TBD_LOWERED_GONE)
        return v;
    if (view.kind == TBD_TYPE_FLOAT)
        return tbd_lowered_made(tbd_lowered_to_real(l, &v, view.bytes == 4), DW_ATE_float,
                                view.bytes == 4 ? 4 : 8);
    if (tbd_lowered_is_real(&v) && view.kind != TBD_TYPE_INTEGER && view.kind != TBD_TYPE_ENUM)
        return tbd_lowering_gone(l, TBD_TYPE, "a floating-point number cannot be cast to this");
    if (tbd_lowered_is_real(&v))
        v.node = view.encoding == DW_ATE_boolean
                     ? tbd_lowered_truth(l, &v)
                     : tbd_lowering_binary(l, TBD_EXPR_TO_INTEGER, v.node, -1);
    if (view.kind != TBD_TYPE_INTEGER && view.kind != TBD_TYPE_ENUM &&
        view.kind != TBD_TYPE_POINTER)
        return tbd_lowering_gone(l, TBD_TYPE, "a value cannot be cast to this type");
    if (view.kind == TBD_TYPE_POINTER && (tbd_lowered_is_pointer(&v) || v.is_address) &&
        !cast_class(l, &v, type))
        return tbd_lowering_gone(l, TBD_TYPE,
                                 "casts through virtual base classes are not supported");
    if (view.encoding == DW_ATE_boolean)
        v.node = tbd_lowering_binary(l, TBD_EXPR_NE, v.node, tbd_lowering_number(l, 0));
    else if (view.bytes < 8 && view.bytes != 0)
        v.node = tbd_lowering_extend(l, v.node, (uint32_t)view.bytes * 8, view.is_signed);
    v.has_type = true;
    v.is_literal = v.is_wide = v.is_address = false;
    v.type = *type;
    return v;
}

static struct tbd_lowered lower_cast(struct tbd_lowering *l)
{
    const char *text = l->from->symbols[l->node->which];
    struct tbd_type type;

    if (!find_type(l, text, &type))
        return tbd_lowering_gone(l, TBD_NAME, "there is no type '%.100s' here", text);
    return convert(l, tbd_lower_value(l, l->node->left), &type);
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

/* The address of a string: the address of a char array, or a pointer's value. *out_capacity: the bytes
 * of an array; *out_length: the node of a std::string's length, else -1. */
static struct tbd_lowered string_at(struct tbd_lowering *l, int32_t index, uint64_t *out_capacity,
                                    int32_t *out_length)
{
    struct tbd_lowered v = lower_place(l, index);
    struct tbd_type_view view;

    *out_capacity = UINT64_MAX;
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
        *out_capacity = view.bytes;
    v = tbd_lowered_load(l, &v);
    if (v.is_unset)
        return tbd_lowering_unset(l);
    if (v.kind != TBD_LOWERED_GONE && !tbd_lowered_is_pointer(&v))
        return tbd_lowering_gone(l, TBD_TYPE, "this is not a string");
    return v;
}

/* Compares the bytes of `text` and its terminating NUL, eight at a time. */
struct tbd_lowered tbd_lower_compare_string(struct tbd_lowering *l, int32_t index, const char *text,
                                            bool unequal)
{
    uint64_t capacity, bytes = strlen(text) + 1;
    int32_t length;
    struct tbd_lowered at = string_at(l, index, &capacity, &length);
    int32_t all = -1;

    if (at.kind == TBD_LOWERED_GONE)
        return at;
    if (bytes - 1 > capacity)
        return tbd_lowered_made(tbd_lowering_number(l, unequal), DW_ATE_signed, 4);
    if (length >= 0)
        all = tbd_lowering_binary(l, TBD_EXPR_EQ, length, tbd_lowering_number(l, bytes - 1));
    bytes = length >= 0 ? bytes - 1 : bytes > capacity ? capacity : bytes;
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
    uint64_t capacity;
    int32_t length;
    struct tbd_lowered at = string_at(l, l->node->left, &capacity, &length);
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

/* ---- kept values ---- */

/* The node for a value that the compiler did not keep here.  Another problem is one of the whole condition. */
static struct tbd_lowered keep_nothing(struct tbd_lowering *l, uint32_t number,
                                       const struct tbd_query_error *problem)
{
    struct tbd_expr_node node = { .op = TBD_EXPR_KEEP, .which = number, .right = -1, .value = 1 };

    if (l->problem->status == TBD_OK)
        *l->problem = *problem;
    if (problem->status != TBD_UNMAPPED)
        return (struct tbd_lowered){ .kind = TBD_LOWERED_GONE };
    node.left = tbd_lowering_nowhere(l);
    return tbd_lowered_made(tbd_lowering_add(l, &node), DW_ATE_signed, 4);
}

/* With problems of its own: one value that was optimized out says nothing of the next. */
static struct tbd_lowered lower_keep(struct tbd_lowering *l)
{
    struct tbd_expr_node node = { .op = TBD_EXPR_KEEP, .which = l->node->which, .right = -1 };
    struct tbd_query_error own = { .status = TBD_OK }, *problem = l->problem;
    struct tbd_lowered v;

    l->problem = &own;
    v = tbd_lower_value(l, l->node->left);
    l->problem = problem;
    if (v.kind == TBD_LOWERED_GONE)
        return keep_nothing(l, node.which, &own);
    node.left = v.node;
    node.is_real = tbd_lowered_is_real(&v);
    return tbd_lowered_made(tbd_lowering_add(l, &node), DW_ATE_signed, 4);
}

/* A number without a type is the address of a string. */
static struct tbd_lowered text_at(struct tbd_lowering *l, uint64_t *out_capacity,
                                  int32_t *out_length)
{
    struct tbd_lowered v = lower_place(l, l->node->left);

    if (v.kind != TBD_LOWERED_NUMBER || v.has_type)
        return string_at(l, l->node->left, out_capacity, out_length);
    *out_capacity = UINT64_MAX;
    *out_length = -1;
    return v;
}

static struct tbd_lowered lower_keep_text(struct tbd_lowering *l)
{
    struct tbd_expr_node node = { .op = TBD_EXPR_KEEP_TEXT, .value = l->node->which };
    struct tbd_query_error own = { .status = TBD_OK }, *problem = l->problem;
    struct tbd_lowered at;
    uint64_t capacity;

    l->problem = &own;
    at = text_at(l, &capacity, &node.right);
    l->problem = problem;
    if (at.kind == TBD_LOWERED_GONE)
        return keep_nothing(l, (uint32_t)node.value, &own);
    if (node.right < 0 && capacity != UINT64_MAX)
        node.right = tbd_lowering_number(l, capacity);
    node.left = at.node;
    node.which = l->out->memory_count;
    l->out->memory_count += TBD_EXPR_MATCH_SLOTS;
    l->out->uses |= TBD_USES_MEMORY;
    return tbd_lowered_made(tbd_lowering_add(l, &node), DW_ATE_signed, 4);
}

/* ---- nodes that have no variables ---- */

static struct tbd_lowered lower_memory(struct tbd_lowering *l)
{
    struct tbd_lowered address = tbd_lower_value(l, l->node->left);
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
    return l->node->is_real ? tbd_lowered_made(index, DW_ATE_float, (uint8_t)node.value)
                            : tbd_lowered_untyped(index);
}

static struct tbd_lowered lower_touches(struct tbd_lowering *l)
{
    struct tbd_lowered a = tbd_lower_value(l, l->node->left);
    struct tbd_lowered b = tbd_lower_value(l, l->node->right);

    if (a.kind == TBD_LOWERED_GONE || b.kind == TBD_LOWERED_GONE)
        return a.kind == TBD_LOWERED_GONE ? a : b;
    return tbd_lowered_untyped(tbd_lowering_operator(l, a.node, b.node, false, false));
}

/* What a call returned, as the type of its function's result; raw without debug information. */
static struct tbd_lowered lower_result(struct tbd_lowering *l)
{
    const struct tbd_place_of *place = l->at->scope->place;
    struct tbd_expr_node node = *l->node;
    struct tbd_lowered out;
    struct tbd_type_view view;

    node.is_typed = 0;
    out = tbd_lowered_untyped(tbd_lowering_add(l, &node));
    if (place->scopes.count == 0)
        return out;
    out.type = tbd_type_of(&place->scopes.dies[place->scopes.count - 1]);
    view = tbd_type_look(&out.type);
    if (view.kind == TBD_TYPE_VOID)
        return tbd_lowering_gone(l, TBD_TYPE, "this function returns nothing");
    if (view.bytes == 0 || view.bytes > 8 || view.kind == TBD_TYPE_STRUCT)
        return tbd_lowering_gone(l, TBD_TYPE, "what this function returns is no single number");
    out.has_type = true;
    if (view.kind == TBD_TYPE_FLOAT && view.bytes == 4)
        return tbd_lowered_made(tbd_lowering_binary(l, TBD_EXPR_WIDEN, out.node, -1), DW_ATE_float,
                                4);
    if (view.kind != TBD_TYPE_FLOAT)
        out.node = tbd_lowering_extend(l, out.node, (uint32_t)view.bytes * 8, view.is_signed);
    return out;
}

/* Fields that hold a value of the program's, which may be an int; the others are times, addresses, sizes. */
static bool is_program_value(uint32_t field)
{
    return field == TBD_FIELD_OLDVAL || field == TBD_FIELD_NEWVAL || field == TBD_FIELD_RETVAL ||
           (field >= TBD_FIELD_ARG0 && field <= TBD_FIELD_ARG5);
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
    if (node.op == TBD_EXPR_FIELD && node.is_typed)
        return lower_result(l);
    if (node.op == TBD_EXPR_REGISTER && node.width < 64) {
        out = tbd_lowered_untyped(tbd_lowering_add(l, &node));
        return out;
    }
    if (node.is_real)
        return tbd_lowered_made(tbd_lowering_add(l, &node), DW_ATE_float,
                                node.which == TBD_LITERAL_FLOAT ? 4 : 8);
    out = tbd_lowered_untyped(tbd_lowering_add(l, &node));
    out.is_literal = node.op == TBD_EXPR_NUMBER;
    out.is_wide = node.op == TBD_EXPR_FIELD && !is_program_value(node.which);
    return out;
}

static struct tbd_lowered lower_deref(struct tbd_lowering *l)
{
    struct tbd_lowered v = tbd_lower_value(l, l->node->left);

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
    case TBD_EXPR_KEEP: return lower_keep(l);
    case TBD_EXPR_KEEP_TEXT: return lower_keep_text(l);
    case TBD_EXPR_CHOICE: return tbd_lower_choice(l);
    case TBD_EXPR_STRING:
        return tbd_lowering_gone(l, TBD_TYPE, "a string can only be compared, by == != or =~");
    case TBD_EXPR_MEMORY: return lower_memory(l);
    case TBD_EXPR_TOUCHES: return lower_touches(l);
    case TBD_EXPR_AND:
    case TBD_EXPR_OR: return tbd_lower_logical(l);
    case TBD_EXPR_NOT:
    case TBD_EXPR_NEG:
    case TBD_EXPR_BITNOT:
    case TBD_EXPR_SIGNED: return tbd_lower_unary(l);
    case TBD_EXPR_NUMBER:
    case TBD_EXPR_SYMBOL:
    case TBD_EXPR_FIELD:
    case TBD_EXPR_REGISTER:
    case TBD_EXPR_FUNCTION:
    case TBD_EXPR_MODULE:
    case TBD_EXPR_CALLER:
    case TBD_EXPR_STACK: return lower_leaf(l);
    default: return tbd_lower_binary(l);
    }
}

/* ---- the whole condition ---- */

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
    root = tbd_lower_value(&l, expr->root);
    if (root.kind == TBD_LOWERED_GONE || (lower_at->is_value && tbd_lowered_is_real(&root)))
        root.node = tbd_lowering_nowhere(&l);
    else
        root.node = tbd_lowered_truth(&l, &root);
    if (!l.no_memory && l.out->levels > TBD_EXPR_MAX_LEVELS) {
        (void)tbd_lowering_gone(&l, TBD_TYPE,
                                "it needs too many reads of memory inside each other");
        l.out->node_count = l.out->memory_count = l.out->levels = 0;
        root.node = tbd_lowering_nowhere(&l);
    }
    if (l.no_memory) {
        tbd_expr_free(l.out);
        return TBD_NOMEM;
    }
    l.out->root = root.node;
    *out = l.out;
    return TBD_OK;
}
