// SPDX-License-Identifier: MIT
/* search_plan_windows.c - which windows can hold an answer: evaluates the condition on the index
 * over windows
 *
 * A segment of the index answers for up to 64 windows at once, in masks. The plan asks it when the
 * search reaches one of its windows, so a search that stops early asks no more segments than it
 * needs.
 *
 * Everything here may only err in one direction: a window that holds an answer is never left out.
 * Function entries happen at the called block, also when the call ended the previous window: then
 * the called address is where that window stopped (TBD_KEY_TARGET). The same holds for a signal's
 * handler. */
#include "query/search/search_plan.h"
#include "format/reading/trace_keys.h"

#include <stdlib.h>

/* ---- the condition ---- */

/* In which windows it may be true, and in which it may be false. */
struct masks {
    uint64_t may, may_not;
};

struct window_subject {
    const struct tbd_search_plan *plan;
    const struct tbd_keys *keys;
};

static uint64_t find_addresses(const struct window_subject *subject, uint64_t first, uint64_t last)
{
    /* A load that begins on the previous page may reach into this one. */
    uint64_t page = first / 4096 == 0 ? 0 : first / 4096 - 1;

    if (subject->plan->type == TBD_EVENT_LOAD)
        return tbd_keys_range(subject->keys, tbd_key(TBD_KEY_READ_PAGE, page),
                              tbd_key(TBD_KEY_READ_PAGE, last / 4096));
    return tbd_keys_range(subject->keys, tbd_key(TBD_KEY_WORD, first / 8),
                          tbd_key(TBD_KEY_WORD, last / 8)) |
           tbd_keys_range(subject->keys, tbd_key(TBD_KEY_ALL_WORDS, first / 4096),
                          tbd_key(TBD_KEY_ALL_WORDS, last / 4096));
}

static struct masks ask_leaf(const struct window_subject *subject, int32_t index)
{
    const struct tbd_expr *expr = subject->plan->where;
    const struct tbd_expr_node *node = &expr->nodes[index];
    const struct tbd_expr_node *left = node->left < 0 ? NULL : &expr->nodes[node->left];
    const struct tbd_expr_node *right = node->right < 0 ? NULL : &expr->nodes[node->right];
    struct masks masks = { tbd_keys_all(subject->keys), tbd_keys_all(subject->keys) };
    uint64_t value;

    if (tbd_plan_is_access(subject->plan, index, &value))
        masks.may = find_addresses(subject, value, value);
    else if (tbd_expr_is_field_equals(expr, index, TBD_FIELD_SYSCALL, &value))
        masks.may = tbd_keys_range(subject->keys, tbd_key(TBD_KEY_SYSCALL, value),
                                   tbd_key(TBD_KEY_SYSCALL, value));
    else if (node->op == TBD_EXPR_TOUCHES && left->op == TBD_EXPR_NUMBER &&
             right->op == TBD_EXPR_NUMBER && right->value != 0 &&
             right->value <= UINT64_MAX - left->value)
        masks.may = find_addresses(subject, left->value, left->value + right->value - 1);
    return masks;
}

static struct masks ask(const struct window_subject *subject, int32_t index)
{
    const struct tbd_expr_node *node = &subject->plan->where->nodes[index];
    struct masks left;
    struct masks right;

    if (node->op != TBD_EXPR_NOT && node->op != TBD_EXPR_AND && node->op != TBD_EXPR_OR)
        return ask_leaf(subject, index);
    left = ask(subject, node->left);
    if (node->op == TBD_EXPR_NOT)
        return (struct masks){ left.may_not, left.may };
    right = ask(subject, node->right);
    if (node->op == TBD_EXPR_AND)
        return (struct masks){ left.may & right.may, left.may_not | right.may_not };
    return (struct masks){ left.may | right.may, left.may_not & right.may_not };
}

static uint64_t ask_keys(const struct tbd_search_plan *plan, const struct tbd_keys *keys)
{
    struct window_subject subject = { plan, keys };
    uint64_t may = tbd_keys_all(keys);

    if (plan->has_words)
        may = ask(&subject, plan->where->root).may;
    if (plan->has_blocks && may != 0)
        may &= tbd_keys_any(keys, plan->wanted, plan->wanted_count);
    return may;
}

/* ---- blocks that are wanted, as keys ---- */

static int compare_keys(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

bool tbd_plan_make_keys(struct tbd_search_plan *plan, struct tbd_trace *trace)
{
    /* the entries of blocks by calls do not count those of signal handlers */
    bool enter = plan->type == TBD_EVENT_FUNC_ENTER && tbd_trace_info(trace)->signals == 0;

    plan->segment_count = tbd_trace_segment_count(trace);
    plan->segments = calloc(plan->segment_count + 1, sizeof(*plan->segments));
    plan->wanted_count = 0;
    plan->wanted = NULL;
    if (plan->has_blocks)
        plan->wanted = calloc(3 * (size_t)plan->block_count + 2, sizeof(*plan->wanted));
    if (plan->segments == NULL || (plan->has_blocks && plan->wanted == NULL))
        return false;
    for (uint32_t id = 1; plan->has_blocks && id < plan->block_count; id++) {
        if ((plan->blocks[id] & TBD_PLAN_EVENT) == 0)
            continue;
        plan->wanted[plan->wanted_count++] = tbd_key(enter ? TBD_KEY_ENTER : TBD_KEY_BLOCK, id);
        plan->wanted[plan->wanted_count++] =
            tbd_key(TBD_KEY_TARGET, tbd_trace_block(trace, id)->def.start);
        if (enter && (plan->blocks[id] & TBD_PLAN_JUMPED) != 0)
            plan->wanted[plan->wanted_count++] = tbd_key(TBD_KEY_BLOCK, id);
    }
    if (plan->has_blocks) { /* its block is in another window */
        plan->wanted[plan->wanted_count++] = tbd_key(TBD_KEY_CARRIED, 0);
        plan->wanted[plan->wanted_count++] = tbd_key(TBD_KEY_ALL_BLOCKS, 0);
    }
    if (plan->wanted_count != 0)
        qsort(plan->wanted, plan->wanted_count, sizeof(*plan->wanted), compare_keys);
    return true;
}

/* ---- windows ---- */

static const struct tbd_plan_segment *segment_at(struct tbd_search_plan *plan,
                                                 struct tbd_trace *trace, size_t index)
{
    struct tbd_plan_segment *segment = &plan->segments[index];

    if (!segment->made) {
        segment->keys = tbd_trace_segment(trace, index);
        segment->may = segment->keys == NULL ? 0 : ask_keys(plan, segment->keys);
        if (segment->keys != NULL)
            segment->uncounted = tbd_keys_range(segment->keys, tbd_key(TBD_KEY_ALL_BLOCKS, 0),
                                                tbd_key(TBD_KEY_ALL_BLOCKS, 0));
        segment->made = true;
    }
    return segment;
}

/* TBD_PLAN_NOT_IN_TOC: the index does not cover the window, or only as it was before it was counted.  A window that was merged
 * may lie in several segments. */
static enum tbd_plan_verdict ask_index(struct tbd_search_plan *plan, struct tbd_trace *trace,
                                       const struct tbd_window_summary *summary)
{
    uint64_t end = summary->first_time + summary->blocks;
    uint64_t known = 0;
    bool is_there = false;

    for (size_t i = tbd_trace_segment_from(trace, summary->first_time);
         tbd_trace_segment_begins_before(trace, i, end + 1) && i < plan->segment_count; i++) {
        const struct tbd_plan_segment *segment = segment_at(plan, trace, i);
        uint64_t blocks;
        uint64_t mask;

        if (segment->keys == NULL)
            continue;
        mask = tbd_keys_windows(segment->keys, summary->first_time, summary->blocks, &blocks);
        if ((segment->may & mask) != 0)
            return (segment->uncounted & mask) != 0 && !summary->is_uncounted ? TBD_PLAN_NOT_IN_TOC
                                                                              : TBD_PLAN_MAY_HOLD;
        known += blocks;
        is_there |= mask != 0;
    }
    return is_there && known >= summary->blocks ? TBD_PLAN_NOT_IN_INDEX : TBD_PLAN_NOT_IN_TOC;
}

static enum tbd_plan_verdict ask_toc(const struct tbd_search_plan *plan, struct tbd_trace *trace,
                                     uint32_t index)
{
    struct tbd_keys keys;
    uint64_t may;

    if (tbd_window_keys(trace, index, &keys) != TBD_OK)
        return TBD_PLAN_MAY_HOLD;
    may = ask_keys(plan, &keys);
    tbd_keys_free(&keys);
    return may != 0 ? TBD_PLAN_MAY_HOLD : TBD_PLAN_NOT_IN_TOC;
}

/* Does the window have the block in which a signal ended the program? */
static bool is_fatal_window(const struct tbd_trace *trace, const struct tbd_window_summary *summary)
{
    const struct tbd_trace_info *info = tbd_trace_info(trace);

    return info->finished && info->end.how == TBD_ENDED_SIGNAL &&
           summary->first_time < info->blocks &&
           summary->first_time + summary->blocks == info->blocks;
}

/* What comes after the window's last block may have the time of the next one: entries of functions that it calls, signals, turns, and
 * what they bring with them. */
static bool ends_before(const struct tbd_search_plan *plan,
                        const struct tbd_window_summary *summary)
{
    uint64_t end = summary->first_time + summary->blocks;
    bool is_of_blocks = plan->type == TBD_EVENT_STORE || plan->type == TBD_EVENT_LOAD ||
                        plan->type == TBD_EVENT_BLOCK_ENTRY;

    if (summary->blocks == 0)
        return false;
    return is_of_blocks && summary->signals + summary->switches == 0 ? end <= plan->time_low
                                                                     : end < plan->time_low;
}

/* Decides from what is in memory alone. */
static bool may_hold_summary(const struct tbd_search_plan *plan, const struct tbd_trace *trace,
                             const struct tbd_window_summary *summary)
{
    uint64_t implicit = summary->syscalls + summary->specials + summary->signals;

    if (summary->first_time > plan->time_high || ends_before(plan, summary))
        return false;
    if (summary->is_uncounted &&
        (plan->type == TBD_EVENT_STORE || plan->type == TBD_EVENT_FUNC_ENTER ||
         plan->type == TBD_EVENT_FUNC_EXIT))
        return true;
    switch (plan->type) {
    case TBD_EVENT_STORE: return summary->stores + implicit + summary->words != 0;
    case TBD_EVENT_FUNC_ENTER:
        return summary->calls + summary->signals != 0 || plan->has_threads || plan->has_jumped;
    case TBD_EVENT_FUNC_EXIT: return summary->returns != 0;
    case TBD_EVENT_SYSCALL: return summary->syscalls != 0;
    case TBD_EVENT_THREAD_SWITCH: return summary->switches != 0;
    case TBD_EVENT_SIGNAL: return summary->signals != 0 || is_fatal_window(trace, summary);
    case TBD_EVENT_LINE:
    case TBD_EVENT_STATE:
    case TBD_EVENT_POSITION:
    case TBD_EVENT_BLOCK_ENTRY:
    case TBD_EVENT_LOAD:
    case TBD_EVENT_TYPE_COUNT: break;
    }
    return true;
}

enum tbd_plan_verdict tbd_plan_ask(struct tbd_search_plan *plan, struct tbd_trace *trace,
                                   uint32_t index)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, index);
    enum tbd_plan_verdict answer;

    if (!may_hold_summary(plan, trace, summary))
        return TBD_PLAN_OTHER_TIME;
    if (plan->has_thread &&
        (plan->thread > UINT32_MAX || !tbd_trace_thread_ran(trace, index, (uint32_t)plan->thread)))
        return TBD_PLAN_NOT_IN_INDEX;
    if (!plan->has_words && !plan->has_blocks)
        return TBD_PLAN_MAY_HOLD;
    answer = ask_index(plan, trace, summary);
    return answer == TBD_PLAN_NOT_IN_TOC ? ask_toc(plan, trace, index) : answer;
}
