// SPDX-License-Identifier: MIT
/* expr_values.c - nodes and values of a condition while it is lowered
 *
 * A value is a number, or a place in memory that holds the number; tbd_lowered_load() turns a place
 * into its number as C does: arrays become addresses, small integers are extended by their sign,
 * floating-point numbers become doubles. */
#include "query/condition/expr_lower.h"
#include "query/condition/expr_needs.h"

#include "base/array.h"

#include <dwarf.h>
#include <stdarg.h>
#include <stdio.h>

#define NODES_MAX 16384u
#define DEREF_MAX 8u /* bytes of a scalar */

/* ---- nodes ---- */

int32_t tbd_lowering_add(struct tbd_lowering *l, const struct tbd_expr_node *node)
{
    struct tbd_expr *out = l->out;

    if (out->node_count >= NODES_MAX ||
        !tbd_array_double(&out->nodes, out->node_count, sizeof(*node))) {
        l->no_memory = true;
        return 0;
    }
    out->nodes[out->node_count] = *node;
    out->nodes[out->node_count].at = l->node->at;
    out->nodes[out->node_count].length = l->node->length;
    out->nodes[out->node_count].is_typed = 0;
    tbd_expr_note_level(out, &out->nodes[out->node_count]);
    return (int32_t)out->node_count++;
}

int32_t tbd_lowering_number(struct tbd_lowering *l, uint64_t value)
{
    struct tbd_expr_node node = { .op = TBD_EXPR_NUMBER, .left = -1, .right = -1, .value = value };

    return tbd_lowering_add(l, &node);
}

int32_t tbd_lowering_binary(struct tbd_lowering *l, enum tbd_expr_op op, int32_t left,
                            int32_t right)
{
    struct tbd_expr_node node = { .op = (uint8_t)op, .left = left, .right = right };
    const struct tbd_expr_node *a = left < 0 ? NULL : &l->out->nodes[left];
    const struct tbd_expr_node *b = right < 0 ? NULL : &l->out->nodes[right];

    if (a != NULL && b != NULL && a->op == TBD_EXPR_NUMBER && b->op == TBD_EXPR_NUMBER &&
        op == TBD_EXPR_ADD)
        return tbd_lowering_number(l, a->value + b->value);
    return tbd_lowering_add(l, &node);
}

int32_t tbd_lowering_memory(struct tbd_lowering *l, int32_t address, uint64_t bytes)
{
    struct tbd_expr_node node = { .op = TBD_EXPR_MEMORY,
                                  .left = address,
                                  .right = -1,
                                  .value = bytes,
                                  .which = l->out->memory_count++ };

    l->out->uses |= TBD_USES_MEMORY;
    return tbd_lowering_add(l, &node);
}

int32_t tbd_lowering_register(struct tbd_lowering *l, uint32_t which)
{
    struct tbd_expr_node node = {
        .op = TBD_EXPR_REGISTER, .left = -1, .right = -1, .which = which, .width = 64
    };
    struct tbd_event probe = { .type = l->at->type, .flags = TBD_EVENT_HAS_SP };
    uint64_t value;

    if (l->at->type != TBD_EVENT_FUNC_ENTER && l->at->type != TBD_EVENT_FUNC_EXIT &&
        l->at->type != TBD_EVENT_CALL)
        probe.flags = 0;
    if (which >= TBD_REG_COUNT || !tbd_event_register(&probe, which, &value))
        tbd_expr_note_register(l->out, which);
    return tbd_lowering_add(l, &node);
}

int32_t tbd_lowering_extend(struct tbd_lowering *l, int32_t value, uint32_t bits, bool is_signed)
{
    struct tbd_expr_node node = {
        .op = TBD_EXPR_EXTEND, .left = value, .right = -1, .value = bits, .is_signed = is_signed
    };

    return bits >= 64 ? value : tbd_lowering_add(l, &node);
}

struct tbd_lowered tbd_lowering_gone(struct tbd_lowering *l, enum tbd_status status,
                                     const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)tbd_query_wrong_list(l->problem, status, l->node->at, l->node->length, format, args);
    va_end(args);
    return (struct tbd_lowered){ .kind = TBD_LOWERED_GONE };
}

struct tbd_lowered tbd_lowering_unset(struct tbd_lowering *l)
{
    return tbd_lowering_gone(l, TBD_UNMAPPED,
                             "its value is not known here: nothing is stored to it yet");
}

/* ---- values ---- */

struct tbd_lowered tbd_lowered_made(int32_t node, uint8_t encoding, uint8_t bytes)
{
    return (struct tbd_lowered){ .kind = TBD_LOWERED_NUMBER,
                                 .node = node,
                                 .has_type = true,
                                 .type = tbd_type_made(encoding, bytes) };
}

struct tbd_lowered tbd_lowered_untyped(int32_t node)
{
    return (struct tbd_lowered){ .kind = TBD_LOWERED_NUMBER, .node = node };
}

struct tbd_lowered tbd_lowered_place(int32_t address, const struct tbd_type *type)
{
    return (struct tbd_lowered){
        .kind = TBD_LOWERED_PLACE, .node = address, .has_type = true, .type = *type
    };
}

/* ---- values in pieces ---- */

/* The piece that holds all of [offset, offset + bytes); *out_at is the piece's own offset. */
static const struct tbd_piece *piece_of(const struct tbd_lowered *v, uint64_t bytes,
                                        uint64_t *out_at)
{
    uint64_t start = 0;

    for (uint32_t i = 0; i < v->piece_count; start += v->pieces[i++].bytes) {
        if (v->offset < start || v->offset + bytes > start + v->pieces[i].bytes)
            continue;
        *out_at = v->offset - start;
        return &v->pieces[i];
    }
    return NULL;
}

/* Reads `bytes` bytes as an unsigned number; -1: they are nowhere, or in more than one piece. */
static int32_t load_piece(struct tbd_lowering *l, const struct tbd_lowered *v, uint64_t bytes)
{
    uint64_t at;
    const struct tbd_piece *piece = piece_of(v, bytes, &at);
    int32_t node;

    if (piece == NULL || piece->node < 0 || bytes > 8)
        return -1;
    if (piece->in_memory)
        return tbd_lowering_memory(
            l, tbd_lowering_binary(l, TBD_EXPR_ADD, piece->node, tbd_lowering_number(l, at)),
            bytes);
    if (at / 8 != (at + bytes - 1) / 8 || (at >= 8 && piece->upper_node < 0))
        return -1;
    node = at < 8 ? piece->node : piece->upper_node;
    if (at % 8 != 0)
        node = tbd_lowering_binary(l, TBD_EXPR_SHR, node, tbd_lowering_number(l, at % 8 * 8));
    return tbd_lowering_extend(l, node, (uint32_t)bytes * 8, false);
}

static struct tbd_lowered load_from_pieces(struct tbd_lowering *l, const struct tbd_lowered *v,
                                           const struct tbd_type_view *view)
{
    struct tbd_lowered out = *v;
    uint64_t first = v->bit_offset / 8,
             bits = v->bits == 0 ? view->bytes * 8 : v->bit_offset % 8 + v->bits;

    out.kind = TBD_LOWERED_NUMBER;
    out.offset += v->bits == 0 ? 0 : first;
    out.node = bits == 0 || bits > 64 ? -1 : load_piece(l, &out, (bits + 7) / 8);
    if (out.node < 0)
        return tbd_lowering_gone(l, TBD_UNMAPPED, "it is in several places");
    if (view->kind == TBD_TYPE_FLOAT) {
        if (view->bytes == 4)
            out.node = tbd_lowering_binary(l, TBD_EXPR_WIDEN, out.node, -1);
        return tbd_lowered_made(out.node, DW_ATE_float, view->bytes == 4 ? 4 : 8);
    }
    if (v->bits != 0)
        out.node = tbd_lowering_binary(l, TBD_EXPR_SHR, out.node,
                                       tbd_lowering_number(l, v->bit_offset % 8));
    out.node = tbd_lowering_extend(l, out.node, v->bits != 0 ? v->bits : (uint32_t)view->bytes * 8,
                                   view->is_signed);
    if (v->bits != 0 && v->bits < 32 && view->kind == TBD_TYPE_INTEGER)
        return tbd_lowered_made(out.node, DW_ATE_signed, 4);
    out.bits = 0;
    return out;
}

static struct tbd_lowered load_bits(struct tbd_lowering *l, const struct tbd_lowered *v,
                                    bool is_signed)
{
    uint64_t first = v->bit_offset / 8, bits = v->bit_offset % 8 + v->bits;
    int32_t node;

    if (v->bits > 64 || bits > 64)
        return tbd_lowering_gone(l, TBD_TYPE, "the bit-field is too wide");
    node = tbd_lowering_binary(l, TBD_EXPR_ADD, v->node, tbd_lowering_number(l, first));
    node = tbd_lowering_memory(l, node, (bits + 7) / 8);
    node = tbd_lowering_binary(l, TBD_EXPR_SHR, node, tbd_lowering_number(l, v->bit_offset % 8));
    node = tbd_lowering_extend(l, node, v->bits, is_signed);
    if (v->bits < 32 && tbd_type_look(&v->type).kind == TBD_TYPE_INTEGER)
        return tbd_lowered_made(node, DW_ATE_signed, 4); /* an int holds all of its values */
    return (struct tbd_lowered){
        .kind = TBD_LOWERED_NUMBER, .node = node, .has_type = true, .type = v->type
    };
}

static struct tbd_lowered load_real(struct tbd_lowering *l, int32_t address, uint64_t bytes)
{
    int32_t node;

    if (bytes != 4 && bytes != 8)
        return tbd_lowering_gone(l, TBD_TYPE, "long double is not supported in conditions");
    node = tbd_lowering_memory(l, address, bytes);
    if (bytes == 4)
        node = tbd_lowering_binary(l, TBD_EXPR_WIDEN, node, -1);
    return tbd_lowered_made(node, DW_ATE_float, (uint8_t)bytes);
}

/* The value that a C expression takes from a place; for an array the address. */
struct tbd_lowered tbd_lowered_load(struct tbd_lowering *l, const struct tbd_lowered *v)
{
    struct tbd_type_view view;
    struct tbd_type target;
    struct tbd_lowered out = *v;

    view = tbd_type_look(&v->type);
    if (v->kind == TBD_LOWERED_PIECES && view.kind == TBD_TYPE_REFERENCE &&
        tbd_type_target(&v->type, &target)) {
        out = tbd_lowered_place(load_piece(l, v, 8), &target);
        return out.node < 0 ? tbd_lowering_gone(l, TBD_UNMAPPED, "it is in several places")
                            : tbd_lowered_load(l, &out);
    }
    if (v->kind == TBD_LOWERED_PIECES && view.kind != TBD_TYPE_STRUCT &&
        view.kind != TBD_TYPE_ARRAY)
        return load_from_pieces(l, v, &view);
    if (v->kind != TBD_LOWERED_PLACE && v->kind != TBD_LOWERED_PIECES)
        return out;
    if (v->kind == TBD_LOWERED_PIECES)
        return tbd_lowering_gone(l, TBD_TYPE, "it is in registers, and no single value");
    if (v->is_unset && view.kind != TBD_TYPE_ARRAY)
        return tbd_lowering_unset(l);
    out.kind = TBD_LOWERED_NUMBER;
    if (v->bits != 0)
        return load_bits(l, v, view.is_signed);
    switch (view.kind) {
    case TBD_TYPE_FLOAT: return load_real(l, v->node, view.bytes);
    case TBD_TYPE_ARRAY:
        if (tbd_type_target(&v->type, &target))
            out.type = tbd_type_pointer_to(&target);
        return out;
    case TBD_TYPE_FUNCTION: out.type = tbd_type_pointer_to(&v->type); return out;
    case TBD_TYPE_REFERENCE:
        if (!tbd_type_target(&v->type, &target))
            break;
        out = tbd_lowered_place(tbd_lowering_memory(l, v->node, 8), &target);
        return tbd_lowered_load(l, &out);
    case TBD_TYPE_INTEGER:
    case TBD_TYPE_ENUM:
    case TBD_TYPE_POINTER:
        if (view.bytes < 1 || view.bytes > DEREF_MAX)
            break;
        out.node = tbd_lowering_memory(l, v->node, view.bytes);
        if (view.is_signed && view.bytes < 8)
            out.node = tbd_lowering_extend(l, out.node, (uint32_t)view.bytes * 8, true);
        return out;
    default: break;
    }
    return tbd_lowering_gone(l, TBD_TYPE,
                             view.kind == TBD_TYPE_STRUCT ? "a struct is no single value"
                                                          : "the size of this value is not known");
}

bool tbd_lowered_is_real(const struct tbd_lowered *v)
{
    return v->has_type && tbd_type_look(&v->type).kind == TBD_TYPE_FLOAT;
}

bool tbd_lowered_is_pointer(const struct tbd_lowered *v)
{
    return v->has_type && tbd_type_look(&v->type).kind == TBD_TYPE_POINTER;
}

int32_t tbd_lowered_truth(struct tbd_lowering *l, const struct tbd_lowered *v)
{
    struct tbd_expr_node node = { .op = TBD_EXPR_NE, .left = v->node, .is_real = 1 };

    if (v->kind == TBD_LOWERED_GONE || !tbd_lowered_is_real(v))
        return v->node;
    node.right = tbd_lowering_number(l, 0); /* the bits of 0.0 */
    return tbd_lowering_add(l, &node);
}

static bool is_double(const struct tbd_lowered *v)
{
    return tbd_lowered_is_real(v) && tbd_type_look(&v->type).bytes != 4;
}

bool tbd_lowered_are_narrow(const struct tbd_lowered *a, const struct tbd_lowered *b)
{
    return !is_double(a) && !is_double(b);
}

int32_t tbd_lowered_to_real(struct tbd_lowering *l, const struct tbd_lowered *v, bool narrow)
{
    struct tbd_expr_node node = { .op = TBD_EXPR_TO_REAL, .left = v->node, .right = -1 };

    if (tbd_lowered_is_real(v))
        return narrow && is_double(v) ? tbd_lowering_binary(l, TBD_EXPR_NARROW, v->node, -1)
                                      : v->node;
    node.is_signed = !v->has_type || tbd_type_look(&v->type).is_signed;
    node.value = narrow ? 4 : 8;
    return tbd_lowering_add(l, &node);
}
