// SPDX-License-Identifier: MIT
/* expr_needs.h - what a node needs that its event may not have: memory in steps, registers */
#ifndef TBD_QUERY_EXPR_NEEDS_H
#define TBD_QUERY_EXPR_NEEDS_H

#include "query/condition/expr.h"

static inline bool tbd_expr_reads_memory(const struct tbd_expr_node *node)
{
    return node->op == TBD_EXPR_MEMORY || node->op == TBD_EXPR_MATCHES ||
           (node->op == TBD_EXPR_KEEP_TEXT && !node->is_typed);
}

/* Fills in `level` of a new node whose operands are complete. */
static inline void tbd_expr_note_level(struct tbd_expr *expr, struct tbd_expr_node *node)
{
    uint32_t level = node->left < 0 ? 0 : expr->nodes[node->left].level;

    if (node->right >= 0 && expr->nodes[node->right].level > level)
        level = expr->nodes[node->right].level;
    level += tbd_expr_reads_memory(node);
    node->level = (uint8_t)(level > 255 ? 255 : level);
    if (level > expr->levels)
        expr->levels = level;
}

/* The condition reads a register that the event does not know. */
static inline void tbd_expr_note_register(struct tbd_expr *expr, uint32_t which)
{
    expr->uses |= TBD_USES_REGS;
    if (which < TBD_REG_COUNT)
        expr->registers |= 1u << which;
    else if (which >= TBD_REGISTER_XMM0)
        expr->registers |= 1u << (16 + which - TBD_REGISTER_XMM0);
    else
        expr->uses |= TBD_USES_STATE;
}

#endif
