// SPDX-License-Identifier: MIT
/* plan.c - necessary conditions, tested against summaries
 *
 * Everything here may only err in one direction: a window or block that holds an answer is never
 * left out.  Function entries happen at the called block, also when the call ended the window
 * before: end_regs.rip. */
#include "query/plan.h"

#include "query/scan.h"

#include <stdlib.h>
#include <string.h>

/* ---- the and-ed part ---- */

/* time < N and the like, with the name on the left. */
static void note_time(struct tbd_plan *plan, const struct tbd_expr *expr,
                      const struct tbd_expr_node *node)
{
    const struct tbd_expr_node *left = &expr->nodes[node->left];
    uint64_t value = expr->nodes[node->right].value;

    if (left->op != TBD_EXPR_FIELD || left->which != TBD_FIELD_TIME || node->is_signed ||
        expr->nodes[node->right].op != TBD_EXPR_NUMBER)
        return;
    if ((node->op == TBD_EXPR_LT || node->op == TBD_EXPR_LE || node->op == TBD_EXPR_EQ) &&
        value < plan->time_high)
        plan->time_high = value;
    if ((node->op == TBD_EXPR_GT || node->op == TBD_EXPR_GE || node->op == TBD_EXPR_EQ) &&
        value > plan->time_low)
        plan->time_low = value;
}

static void note_conjunct(void *context, const struct tbd_expr *expr, int32_t index)
{
    struct tbd_plan *plan = context;
    const struct tbd_expr_node *node = &expr->nodes[index];
    uint64_t value;

    if (tbd_expr_is_field_equals(expr, index, TBD_FIELD_PC, &value)) {
        plan->has_pc = true;
        plan->pc = value;
    } else if (node->op >= TBD_EXPR_EQ && node->op <= TBD_EXPR_GE) {
        note_time(plan, expr, node);
    }
}

/* ---- what a block or a window alone says about a condition ---- */

enum answer { NO, PERHAPS, YES };

struct subject {
    const struct tbd_plan *plan;
    uint64_t start, end;             /* a block's events have their pc in here */
    const struct tbd_window *window; /* NULL: the subject is a block */
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

static enum answer ask_block(const struct subject *subject, const struct tbd_expr *expr,
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

static bool has_word(const struct tbd_window *window, uint64_t first, uint64_t last)
{
    size_t low = 0;
    size_t high = window->word_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (window->words[middle].word < (first & ~7ull))
            low = middle + 1;
        else
            high = middle;
    }
    return low < window->word_count && window->words[low].word <= last;
}

static bool has_read_page(const struct tbd_window *window, uint64_t first, uint64_t last)
{
    /* A load that begins on the page before may reach over. */
    uint64_t from = (first & ~4095ull) < 4096 ? 0 : (first & ~4095ull) - 4096;

    for (size_t i = 0; i < window->read_page_count; i++) {
        if (window->read_pages[i] >= from && window->read_pages[i] <= last)
            return true;
    }
    return false;
}

static enum answer ask_range(const struct subject *subject, uint64_t first, uint64_t last)
{
    bool is_there = subject->plan->type == TBD_EVENT_LOAD
                        ? has_read_page(subject->window, first, last)
                        : has_word(subject->window, first, last);

    return is_there ? PERHAPS : NO;
}

static enum answer ask_window(const struct subject *subject, const struct tbd_expr *expr,
                              int32_t index)
{
    const struct tbd_expr_node *node = &expr->nodes[index];
    const struct tbd_expr_node *left = node->left < 0 ? NULL : &expr->nodes[node->left];
    const struct tbd_expr_node *right = node->right < 0 ? NULL : &expr->nodes[node->right];
    uint64_t address;

    if (tbd_expr_is_field_equals(expr, index, TBD_FIELD_ADDR, &address))
        return ask_range(subject, address, address);
    if (node->op != TBD_EXPR_TOUCHES || left->op != TBD_EXPR_NUMBER ||
        right->op != TBD_EXPR_NUMBER || right->value == 0 ||
        right->value > UINT64_MAX - left->value)
        return PERHAPS;
    return ask_range(subject, left->value, left->value + right->value - 1);
}

static enum answer ask(const struct subject *subject, const struct tbd_expr *expr, int32_t index)
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
    return subject->window == NULL ? ask_block(subject, expr, index)
                                   : ask_window(subject, expr, index);
}

/* ---- blocks ---- */

static bool is_possible_block(const struct tbd_plan *plan, const struct tbd_block *block)
{
    struct subject subject = { .plan = plan, .start = block->def.start };

    subject.end = subject.start + (block->def.code_bytes == 0 ? 1 : block->def.code_bytes);
    if (!tbd_scan_block_has(block, plan->type))
        return false;
    if (plan->type == TBD_EVENT_FUNC_ENTER ||
        (plan->type == TBD_EVENT_BLOCK_ENTRY && !plan->has_pc))
        subject.end = subject.start + 1; /* pc of the event is the block's start */
    return plan->where == NULL || ask(&subject, plan->where, plan->where->root) != NO;
}

/* Does the condition name addresses that summaries of words, or of blocks, know of? */
static void note_leaves(struct tbd_plan *plan)
{
    const struct tbd_expr *expr = plan->where;
    uint64_t value;

    for (uint32_t i = 0; i < expr->node_count; i++) {
        uint8_t op = expr->nodes[i].op;

        if (op == TBD_EXPR_FUNCTION || op == TBD_EXPR_MODULE ||
            tbd_expr_is_field_equals(expr, (int32_t)i, TBD_FIELD_PC, &value))
            plan->has_blocks = true;
        if (op == TBD_EXPR_TOUCHES ||
            tbd_expr_is_field_equals(expr, (int32_t)i, TBD_FIELD_ADDR, &value))
            plan->has_words = true;
    }
}

enum tbd_status tbd_plan_make(const struct tbd_question *question, struct tbd_session *session,
                              struct tbd_plan *out)
{
    *out = (struct tbd_plan){ .type = question->type,
                              .where = question->where,
                              .time_high = UINT64_MAX };
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

        out->blocks[id] = block != NULL && is_possible_block(out, block);
    }
    return TBD_OK;
}

void tbd_plan_free(struct tbd_plan *plan)
{
    free(plan->blocks);
    plan->blocks = NULL;
}

/* ---- windows ---- */

/* Counts are 0 where only "happened or not" is kept (level 1). */
static bool may_hold_block(const struct tbd_plan *plan, const struct tbd_block_summary *summary)
{
    if (summary->id >= plan->block_count || plan->blocks[summary->id] == 0)
        return false;
    return plan->type != TBD_EVENT_FUNC_ENTER || summary->enters != 0 || summary->count == 0;
}

static bool has_block(const struct tbd_plan *plan, const struct tbd_window *window)
{
    for (size_t i = 0; i < window->block_summary_count; i++) {
        if (may_hold_block(plan, &window->block_summaries[i]))
            return true;
    }
    return false;
}

/* A call at the window's very end: is its target wanted? */
static bool enters_at_end(const struct tbd_plan *plan, const struct tbd_window *window)
{
    if (plan->type != TBD_EVENT_FUNC_ENTER || !window->complete)
        return false;
    for (uint32_t id = 1; id < plan->block_count; id++) {
        const struct tbd_block *block =
            plan->blocks[id] != 0 ? tbd_trace_block(window->trace, id) : NULL;

        if (block != NULL && block->def.start == window->end_regs.rip)
            return true;
    }
    return false;
}

bool tbd_plan_may_hold(const struct tbd_plan *plan, const struct tbd_window *window)
{
    struct subject subject = { .plan = plan, .window = window };

    if (plan->has_words && ask(&subject, plan->where, plan->where->root) == NO)
        return false;
    if (!plan->has_blocks || window->block_summary_count == 0)
        return true;
    return has_block(plan, window) || enters_at_end(plan, window);
}

bool tbd_plan_may_hold_summary(const struct tbd_plan *plan,
                               const struct tbd_window_summary *summary)
{
    uint64_t implicit = summary->syscalls + summary->specials + summary->signals;

    if (summary->first_time > plan->time_high ||
        (summary->blocks != 0 && summary->first_time + summary->blocks < plan->time_low))
        return false;
    switch (plan->type) {
    case TBD_EVENT_STORE: return summary->stores + implicit != 0;
    case TBD_EVENT_FUNC_ENTER: return summary->calls != 0;
    case TBD_EVENT_FUNC_EXIT: return summary->returns != 0;
    case TBD_EVENT_SYSCALL: return summary->syscalls != 0;
    case TBD_EVENT_POSITION:
    case TBD_EVENT_BLOCK_ENTRY:
    case TBD_EVENT_LOAD:
    case TBD_EVENT_TYPE_COUNT: break;
    }
    return true;
}
