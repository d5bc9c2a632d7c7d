// SPDX-License-Identifier: MIT
/* expr_keep.c - see expr_keep.h
 *
 * EXPR_KEEP-1  A record can hold all of its texts: each value is taken once in an evaluation. (not checked:
 *     tbd_kept_take_text() cuts a text that does not fit)
 * EXPR_KEEP-2  A kept expression is lowered before it has a value (its node is typed), because only that tells
 *     numbers from texts. (not checked: tbd_expr_eval() leaves typed nodes open) */
#include "query/condition/expr_keep.h"

#include "query/condition/expr_nodes.h"

#include <stdlib.h>
#include <string.h>

struct tbd_expr *tbd_expr_keep(struct tbd_expr *expr, uint32_t number, bool as_text)
{
    struct tbd_expr_node node = { .op = as_text ? TBD_EXPR_KEEP_TEXT : TBD_EXPR_KEEP,
                                  .is_boolean = 1,
                                  .is_typed = 1,
                                  .which = number,
                                  .right = TBD_PARSER_NONE };
    int32_t root;

    if (expr == NULL || number >= TBD_KEPT_MAX) {
        tbd_expr_free(expr);
        return NULL;
    }
    node.left = expr->root;
    node.at = expr->nodes[expr->root].at;
    node.length = expr->nodes[expr->root].length;
    expr->uses |= TBD_USES_TYPES;
    root = tbd_expr_add(expr, &node);
    if (root == TBD_PARSER_NONE) {
        tbd_expr_free(expr);
        return NULL;
    }
    expr->root = root;
    return expr;
}

void tbd_kept_reset(struct tbd_kept *kept)
{
    kept->used = kept->count * sizeof(kept->record.values[0]);
    memset(kept->record.bytes, 0, kept->used);
}

size_t tbd_kept_bytes(const struct tbd_kept_value *record, uint32_t count)
{
    size_t bytes = count * sizeof(*record);

    for (uint32_t i = 0; i < count; i++) {
        if (record[i].state >= TBD_KEPT_TEXT && record[i].text + (size_t)record[i].bytes > bytes)
            bytes = record[i].text + (size_t)record[i].bytes;
    }
    return bytes;
}

struct tbd_kept_value *tbd_kept_copy(const struct tbd_kept_value *record, uint32_t count)
{
    size_t bytes = tbd_kept_bytes(record, count);
    struct tbd_kept_value *copy = malloc(bytes);

    return copy == NULL ? NULL : memcpy(copy, record, bytes);
}

/* ---- evaluation ---- */

static struct tbd_value taken(void)
{
    return (struct tbd_value){ .v = 1, .state = TBD_VALUE_OK };
}

struct tbd_value tbd_kept_take(struct tbd_kept *kept, const struct tbd_expr_node *node,
                               struct tbd_value value)
{
    struct tbd_kept_value *out;

    if (kept == NULL || node->which >= kept->count)
        return taken();
    if (value.state == TBD_VALUE_UNKNOWN && !kept->is_final)
        return value;
    out = &kept->record.values[node->which];
    *out = (struct tbd_kept_value){ .v = value.v };
    if (value.state == TBD_VALUE_OK)
        out->state = node->is_real ? TBD_KEPT_REAL : TBD_KEPT_NUMBER;
    else if (node->value != 0)
        out->state = TBD_KEPT_OPTIMIZED;
    return taken();
}

/* Puts bytes after the values. */
static void put_bytes(struct tbd_kept *kept, struct tbd_kept_value *value, const void *from,
                      size_t bytes)
{
    value->text = (uint32_t)kept->used;
    value->bytes = (uint16_t)bytes;
    memcpy(kept->record.bytes + kept->used, from, bytes);
    kept->used += bytes;
}

/* As many of these bytes as fit. */
static size_t fitting(const struct tbd_kept *kept, size_t bytes)
{
    size_t space = sizeof(kept->record) - kept->used;

    space = space < TBD_KEPT_TEXT_MAX ? space : TBD_KEPT_TEXT_MAX;
    return bytes < space ? bytes : space;
}

struct tbd_value tbd_kept_take_text(struct tbd_kept *kept, const struct tbd_expr_node *node,
                                    struct tbd_value state, const char *text, size_t bytes)
{
    struct tbd_kept_value *out;

    if (state.state != TBD_VALUE_OK || kept == NULL || node->value >= kept->count)
        return state;
    out = &kept->record.values[node->value];
    *out = (struct tbd_kept_value){ .v = state.v, .state = TBD_KEPT_TEXT };
    put_bytes(kept, out, text, fitting(kept, bytes));
    return taken();
}

void tbd_kept_take_frames(struct tbd_kept *kept, const uint64_t *pcs, size_t count)
{
    struct tbd_kept_value *out = &kept->record.values[kept->count - 1];
    size_t taking = fitting(kept, count * sizeof(*pcs)) / sizeof(*pcs);

    *out = (struct tbd_kept_value){ .v = taking < count, .state = TBD_KEPT_FRAMES };
    put_bytes(kept, out, pcs, taking * sizeof(*pcs));
}
