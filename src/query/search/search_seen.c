// SPDX-License-Identifier: MIT
/* search_seen.c - questions with own_returns: jumps by addresses that only registers or memory knew
 *
 * Where such a jump leads to is seen in the window: it is the block that the thread enters next.  A block of another thread, or of
 * a signal's handler, which may come between, is taken for one; that costs a look at its returns, and nothing else. */
#include "query/search/search_private.h"

#include "format/window/window_make.h"
#include "query/search/seen_jumps.h"

/* Where entry i of the window leads to; 0: not known. */
static uint64_t target_of(const struct tbd_window *window, size_t i)
{
    const struct tbd_block *block;

    for (i++; i < window->entry_count && (window->entries[i] & TBD_ENTRY_MESSAGE) != 0; i++)
        continue;
    if (i == window->entry_count)
        return window->complete ? window->end_regs.rip : 0;
    block = tbd_window_block(window, window->entries[i]);
    return block == NULL ? 0 : block->def.start;
}

/* Has the open window jumps to functions that nobody knew of? */
static bool look(struct tbd_search_run *run)
{
    const struct tbd_search_plan *plan = &run->plan;
    const struct tbd_window *window = run->window;
    bool is_new = false;

    for (size_t i = 0; i < window->entry_count && plan->tails.count != 0; i++) {
        uint32_t id = window->entries[i];
        uint64_t target;

        if (id >= plan->block_count || (plan->blocks[id] & TBD_PLAN_LEADS) == 0)
            continue;
        target = target_of(window, i);
        if (target != 0 && !tbd_tails_return(&plan->tails, target))
            is_new |= tbd_seen_jumps_add(run->question->seen_jumps, target);
    }
    return is_new;
}

enum tbd_status tbd_search_take_seen(struct tbd_search_run *run, uint32_t window)
{
    if (tbd_seen_jumps_count(run->question->seen_jumps) == run->plan.seen)
        return TBD_OK;
    tbd_search_forget_picker(run);
    return tbd_plan_see(run->question, run->session, window, &run->plan);
}

enum tbd_status tbd_search_see_jumps(struct tbd_search_run *run)
{
    struct tbd_seen_jumps *jumps = run->question->seen_jumps;
    uint32_t window = run->window->index;
    enum tbd_status status = TBD_OK;

    if (jumps == NULL)
        return TBD_OK;
    while (status == TBD_OK && look(run) && tbd_seen_jumps_count(jumps) != run->plan.seen) {
        status = tbd_search_take_seen(run, window);
        if (status == TBD_OK)
            status = tbd_search_open(run);
    }
    tbd_seen_jumps_mark(jumps, window, run->plan.seen);
    return status;
}
