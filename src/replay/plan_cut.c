// SPDX-License-Identifier: MIT
/* plan_cut.c - the place where native play has cut a computation, for a plan (replay/stub/cut_place.c)
 *
 * It is known by its state, which is that of the window's end.  The program that was killed just after a
 * cut has left no such state: its window ends at the stop before. */
#include "replay/worker.h"

#include "base/layout.h"

#include <string.h>

/* Block entries in a nanosecond that no processor reaches, and what is added for short windows: a replay that does not find
 * the place ends there. */
#define ENTRIES_PER_NS 4u
#define ENTRIES_MORE   (1ull << 28)

static const struct tbd_message *last_message(const struct tbd_window *window)
{
    return window->log_count ? window->log[window->log_count - 1].message : NULL;
}

static bool ends_with_cut(const struct tbd_worker *worker)
{
    const struct tbd_message *last = last_message(worker->window);
    struct tbd_message head;

    if (!worker->process.plan->counts_stops || !last)
        return false;
    memcpy(&head, last, sizeof(head));
    return head.kind == TBD_MSG_CUT;
}

static enum tbd_status add_pages(struct tbd_worker *worker, struct tbd_error *why)
{
    struct tbd_process *process = &worker->process;
    const struct tbd_window *window = worker->window;
    uint64_t pages =
        tbd_process_plan_alloc(process, window->dirty_count * sizeof(struct tbd_plan_page) + 1);

    if (!pages)
        return tbd_worker_no_memory(why);
    process->plan->cut_pages = (struct tbd_plan_section){ pages, window->dirty_count };
    for (size_t i = 0; i < window->dirty_count; i++) {
        struct tbd_plan_page *out = tbd_process_plan_at(process, pages);
        uint64_t contents = tbd_process_plan_put(process, window->dirty[i].bytes, TBD_PAGE_SIZE);

        if (!contents)
            return tbd_worker_no_memory(why);
        out[i] = (struct tbd_plan_page){ window->dirty[i].address, contents };
    }
    return TBD_OK;
}

enum tbd_status tbd_worker_add_cut(struct tbd_worker *worker, struct tbd_error *why)
{
    struct tbd_process *process = &worker->process;
    struct tbd_plan_head *plan = process->plan;
    const struct tbd_window *window = worker->window;
    struct tbd_msg_cut cut;

    plan->has_cut = 0;
    if (!ends_with_cut(worker))
        return TBD_OK;
    if (!window->complete) {
        plan->log.count--;
        plan->blocks--;
        return TBD_OK;
    }
    memcpy(&cut, last_message(window) + 1, sizeof(cut));
    plan->has_cut = 1;
    plan->cut_regs = window->end_regs;
    plan->cut_xsave =
        tbd_process_plan_put(process, window->end_xsave, window->end_regs.xsave_bytes);
    if (!plan->cut_xsave)
        return tbd_worker_no_memory(why);
    if (cut.used_ns < (plan->until - ENTRIES_MORE) / ENTRIES_PER_NS)
        plan->until = cut.used_ns * ENTRIES_PER_NS + ENTRIES_MORE;
    return add_pages(worker, why);
}
