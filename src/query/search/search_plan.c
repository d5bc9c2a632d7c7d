// SPDX-License-Identifier: MIT
/* search_plan.c - necessary conditions, tested against summaries
 *
 * Everything here may only err in one direction: a block that holds an answer is never left
 * out.  For windows see search_plan_windows.c. */
#include "query/search/search_plan.h"

#include "query/search/scan.h"
#include "query/search/seen_jumps.h"

#include <stdlib.h>
#include <string.h>

/* ---- the and-ed part ---- */

static void note_low(struct tbd_search_plan *plan, uint64_t time)
{
    if (time > plan->time_low)
        plan->time_low = time;
}

static void note_high(struct tbd_search_plan *plan, uint64_t time)
{
    if (time < plan->time_high)
        plan->time_high = time;
}

/* Nothing is before time 0. */
static void note_before(struct tbd_search_plan *plan, uint64_t time)
{
    note_high(plan, time == 0 ? 0 : time - 1);
    if (time == 0)
        note_low(plan, UINT64_MAX);
}

/* time < N and the like, with the name on the left. */
static void note_time(struct tbd_search_plan *plan, const struct tbd_expr *expr,
                      const struct tbd_expr_node *node)
{
    const struct tbd_expr_node *left = &expr->nodes[node->left];
    uint64_t value = expr->nodes[node->right].value;

    if (left->op != TBD_EXPR_FIELD || left->which != TBD_FIELD_TIME || node->is_signed ||
        expr->nodes[node->right].op != TBD_EXPR_NUMBER)
        return;
    switch (node->op) {
    case TBD_EXPR_LT: note_before(plan, value); break;
    case TBD_EXPR_LE: note_high(plan, value); break;
    case TBD_EXPR_GT: note_low(plan, value == UINT64_MAX ? value : value + 1); break;
    case TBD_EXPR_GE: note_low(plan, value); break;
    case TBD_EXPR_EQ:
        note_low(plan, value);
        note_high(plan, value);
        break;
    default: break;
    }
}

/* touches[N,SIZE], or addr == N, of a store or a load. If there are several, the last one is
 * used. */
static void note_range(struct tbd_search_plan *plan, const struct tbd_expr *expr, int32_t index)
{
    const struct tbd_expr_node *node = &expr->nodes[index];
    uint64_t start, bytes = 1;

    if (plan->type != TBD_EVENT_STORE && plan->type != TBD_EVENT_LOAD)
        return;
    if (node->op == TBD_EXPR_TOUCHES) {
        if (expr->nodes[node->left].op != TBD_EXPR_NUMBER ||
            expr->nodes[node->right].op != TBD_EXPR_NUMBER)
            return;
        start = expr->nodes[node->left].value;
        bytes = expr->nodes[node->right].value;
    } else if (!tbd_expr_is_field_equals(expr, index, TBD_FIELD_ADDR, &start)) {
        return;
    }
    if (bytes == 0 || bytes > UINT64_MAX - start)
        return;
    plan->has_range = true;
    plan->range_start = start;
    plan->range_end = start + bytes;
}

static void note_conjunct(void *context, const struct tbd_expr *expr, int32_t index)
{
    struct tbd_search_plan *plan = context;
    const struct tbd_expr_node *node = &expr->nodes[index];
    uint64_t value;

    note_range(plan, expr, index);
    if (tbd_expr_is_field_equals(expr, index, TBD_FIELD_PC, &value)) {
        plan->has_pc = true;
        plan->pc = value;
    } else if (tbd_expr_is_field_equals(expr, index, TBD_FIELD_THREAD, &value)) {
        plan->has_thread = true;
        plan->thread = value;
    } else if (node->op >= TBD_EXPR_EQ && node->op <= TBD_EXPR_GE) {
        note_time(plan, expr, node);
    }
}

/* ---- what a block alone tells about a condition ---- */

enum answer { NO, PERHAPS, YES };

struct block_subject {
    const struct tbd_search_plan *plan;
    uint64_t start, end; /* the block's events have their pc in this range */
};

static enum answer negate(enum answer answer)
{
    return answer == NO ? YES : answer == YES ? NO : PERHAPS;
}

static bool overlaps(const struct tbd_expr_name *name, uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < name->count; i++) {
        if (start < name->ranges[i].end && end > name->ranges[i].start)
            return true;
    }
    return false;
}

static enum answer ask_block(const struct block_subject *subject, const struct tbd_expr *expr,
                             int32_t index)
{
    const struct tbd_expr_node *node = &expr->nodes[index];
    uint64_t pc;

    if (node->op == TBD_EXPR_FUNCTION || node->op == TBD_EXPR_MODULE)
        return overlaps(&expr->names[node->which], subject->start, subject->end) ? PERHAPS : NO;
    if (tbd_expr_is_field_equals(expr, index, TBD_FIELD_PC, &pc))
        return pc >= subject->start && pc < subject->end ? PERHAPS : NO;
    return PERHAPS;
}

static enum answer ask(const struct block_subject *subject, const struct tbd_expr *expr,
                       int32_t index)
{
    const struct tbd_expr_node *node = &expr->nodes[index];
    enum answer left;
    enum answer right;

    if (node->op == TBD_EXPR_NOT)
        return negate(ask(subject, expr, node->left));
    if (node->op == TBD_EXPR_AND || node->op == TBD_EXPR_OR) {
        left = ask(subject, expr, node->left);
        right = ask(subject, expr, node->right);
        if (node->op == TBD_EXPR_AND)
            return left < right ? left : right;
        return left > right ? left : right;
    }
    return ask_block(subject, expr, index);
}

/* ---- blocks ---- */

/* The addresses of accesses that touch the same memory each time are known. */
static bool may_touch(const struct tbd_search_plan *plan, const struct tbd_block *block)
{
    if (plan->type != TBD_EVENT_STORE || block->def.end == TBD_END_SYSCALL ||
        block->def.end == TBD_END_SPECIAL)
        return true;
    for (uint16_t i = 0; i < block->def.op_count; i++) {
        const struct tbd_op *op = &block->ops[i];
        uint64_t address = (uint64_t)op->add;

        if (op->kind == TBD_OP_STORE &&
            (op->base != TBD_BASE_NONE ||
             (address < plan->range_end &&
              (address >= plan->range_start || plan->range_start - address < op->size))))
            return true;
    }
    return false;
}

static bool is_possible_block(const struct tbd_search_plan *plan, const struct tbd_block *block)
{
    struct block_subject subject = { .plan = plan, .start = block->def.start };

    subject.end = subject.start + (block->def.code_bytes == 0 ? 1 : block->def.code_bytes);
    if (!tbd_scan_block_has(block, plan->type))
        return false;
    if (plan->has_range && !plan->has_blocks && !may_touch(plan, block))
        return false;
    if (plan->type == TBD_EVENT_SIGNAL) /* the signal's handler may be entered in the next window */
        return true;
    if (plan->type == TBD_EVENT_FUNC_ENTER || plan->type == TBD_EVENT_THREAD_SWITCH ||
        (plan->type == TBD_EVENT_BLOCK_ENTRY && !plan->has_pc))
        subject.end = subject.start + 1; /* the event's pc is the block's start */
    return plan->where == NULL || ask(&subject, plan->where, plan->where->root) != NO;
}

/* What it holds of tbd_question.own_returns, for the function that is the condition's first name. */
static uint8_t own_of(const struct tbd_search_plan *plan, const struct tbd_block *block)
{
    const struct tbd_expr_name *name = &plan->where->names[0];
    uint64_t start = block->def.start, end = start + block->def.code_bytes;
    uint8_t what = 0;

    if (tbd_tails_begin(&plan->tails, start) && !tbd_expr_in_ranges(name, start))
        what |= TBD_PLAN_OTHER;
    if (tbd_scan_block_has(block, TBD_EVENT_FUNC_EXIT) &&
        (overlaps(name, start, end) || tbd_tails_return(&plan->tails, start)))
        what |= TBD_PLAN_RETURN;
    if (block->def.end == TBD_END_JUMP_INDIRECT && tbd_tails_return(&plan->tails, start))
        what |= TBD_PLAN_LEADS;
    return what;
}

bool tbd_plan_is_access(const struct tbd_search_plan *plan, int32_t index, uint64_t *out)
{
    return plan->type != TBD_EVENT_SIGNAL &&
           tbd_expr_is_field_equals(plan->where, index, TBD_FIELD_ADDR, out);
}

/* Does the condition name addresses that summaries of words or of blocks hold? */
static void note_leaves(struct tbd_search_plan *plan)
{
    const struct tbd_expr *expr = plan->where;
    uint64_t value;

    for (uint32_t i = 0; i < expr->node_count; i++) {
        uint8_t op = expr->nodes[i].op;

        if (op == TBD_EXPR_FUNCTION || op == TBD_EXPR_MODULE ||
            tbd_expr_is_field_equals(expr, (int32_t)i, TBD_FIELD_PC, &value))
            plan->has_blocks = true;
        if (op == TBD_EXPR_TOUCHES || tbd_plan_is_access(plan, (int32_t)i, &value) ||
            tbd_expr_is_field_equals(expr, (int32_t)i, TBD_FIELD_SYSCALL, &value))
            plan->has_words = true;
    }
}

/* An import stub is no function of its own. */
static bool may_be_jumped_to(const struct tbd_search_plan *plan, struct tbd_session *session,
                             uint32_t window, const struct tbd_block *block)
{
    struct tbd_symbol symbol;

    return plan->type == TBD_EVENT_FUNC_ENTER &&
           tbd_symbols_at(session->symbols, window, block->def.start, &symbol) &&
           symbol.start == block->def.start && symbol.is_function && !symbol.is_part &&
           !symbol.is_stub;
}

enum tbd_status tbd_plan_make(const struct tbd_question *question, struct tbd_session *session,
                              uint32_t window, struct tbd_search_plan *out)
{
    *out = (struct tbd_search_plan){ .type = question->type,
                                     .where = question->where,
                                     .time_high = UINT64_MAX,
                                     .has_threads = tbd_trace_thread_count(session->trace) > 1 ||
                                                    question->every_return };
    note_low(out, question->since);
    if (question->has_until)
        note_before(out, question->until);
    if (out->where != NULL) {
        tbd_expr_conjuncts(out->where, out->where->root, note_conjunct, out);
        note_leaves(out);
    }
    out->block_count = tbd_trace_block_count(session->trace) + 1;
    out->blocks = calloc(out->block_count, 1);
    if (out->blocks == NULL)
        return TBD_NOMEM;
    for (uint32_t id = 1; id < out->block_count; id++) {
        const struct tbd_block *block = tbd_trace_block(session->trace, id);

        if (block == NULL)
            continue;
        out->blocks[id] = is_possible_block(out, block) ? TBD_PLAN_EVENT : 0;
        if (out->blocks[id] != 0 && !question->only_calls &&
            may_be_jumped_to(out, session, window, block)) {
            out->blocks[id] |= TBD_PLAN_JUMPED;
            out->has_jumped = true;
        }
        if (question->own_returns &&
            tbd_tails_is_stub(session, window, &out->where->names[0], block))
            out->blocks[id] |= TBD_PLAN_STUB;
    }
    if (question->own_returns && tbd_plan_see(question, session, window, out) != TBD_OK)
        return TBD_NOMEM;
    return tbd_plan_make_keys(out, session->trace) ? TBD_OK : TBD_NOMEM;
}

enum tbd_status tbd_plan_see(const struct tbd_question *question, struct tbd_session *session,
                             uint32_t window, struct tbd_search_plan *plan)
{
    const uint8_t own = TBD_PLAN_OTHER | TBD_PLAN_RETURN | TBD_PLAN_LEADS;
    uint64_t seen[TBD_SEEN_MOST];

    plan->seen = tbd_seen_jumps_get(question->seen_jumps, seen);
    if (tbd_tails_find(session, window, &plan->where->names[0], seen, plan->seen, &plan->tails) !=
        TBD_OK)
        return TBD_NOMEM;
    for (uint32_t id = 1; id < plan->block_count; id++) {
        const struct tbd_block *block = tbd_trace_block(session->trace, id);

        if (block != NULL)
            plan->blocks[id] = (uint8_t)((plan->blocks[id] & ~own) | own_of(plan, block));
    }
    return TBD_OK;
}

void tbd_plan_free(struct tbd_search_plan *plan)
{
    free(plan->blocks);
    free(plan->wanted);
    free(plan->segments);
    plan->blocks = NULL;
    plan->wanted = NULL;
    plan->segments = NULL;
}
