// SPDX-License-Identifier: MIT
/* plan_build.c - makes the plan for a window, or for a slice of it with known start state
 *
 * plan_memory.c adds the contents of memory.
 *
 * PLAN_BUILD-1  Regions in the plan are page aligned, sorted, without overlap, and outside the
 *     engine's range.
 * PLAN_BUILD-2  Every message in the plan's log lies wholly in the plan. */
#include "replay/worker.h"

#include "base/assert.h"
#include "base/binary_search.h"
#include "format/files/numbers.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define STACK_MARGIN (64ull << 20)

enum tbd_status tbd_worker_no_memory(struct tbd_error *why)
{
    return tbd_process_error(why, TBD_NOMEM, "no memory for the window's plan");
}

/* ---- log ---- */

static bool add_message(struct tbd_process *process, const struct tbd_log_entry *entry,
                        struct tbd_plan_log *out)
{
    struct tbd_message head;
    uint64_t offset;

    memcpy(&head, entry->message, sizeof(head));
    offset = tbd_process_plan_put(process, entry->message, sizeof(head) + head.bytes);
    if (!offset)
        return false;
    TBD_INVARIANT("PLAN_BUILD-2", offset + sizeof(head) + head.bytes <= process->shared_bytes);
    *out = (struct tbd_plan_log){ .time = entry->time, .message = offset };
    return true;
}

/* The time in the window at which the replay ends: the last stop, or the end. */
static uint64_t end_of_run(const struct tbd_worker *worker, const struct tbd_reg_state *states,
                           size_t count)
{
    if (count)
        return states[count - 1].position.time - worker->window->first_time;
    return worker->range.until ? worker->range.until : worker->window->blocks;
}

/* The number of log messages that the replay of a slice can need: with all of the window's, each
 * slice would cost as much as the window. */
static size_t messages_until(const struct tbd_worker *worker, uint64_t end)
{
    const struct tbd_window *window = worker->window;

    return worker->slice ? TBD_COUNT_BEFORE(i, window->log_count, window->log[i].time <= end + 1)
                         : window->log_count;
}

static enum tbd_status add_log(struct tbd_worker *worker, uint64_t end, struct tbd_error *why)
{
    uint64_t before = tbd_worker_start(worker)->slice_time, offset;
    struct tbd_process *process = &worker->process;
    size_t first = tbd_worker_start(worker)->slice_order;
    size_t count = messages_until(worker, end) - first;

    offset = tbd_process_plan_alloc(process, count * sizeof(struct tbd_plan_log) + 1);
    if (!offset)
        return tbd_worker_no_memory(why);
    process->plan->log = (struct tbd_plan_section){ offset, count };
    for (size_t i = 0; i < count; i++) {
        struct tbd_log_entry entry = worker->window->log[first + i];
        struct tbd_plan_log *out = tbd_process_plan_at(process, offset);

        entry.time -= before;
        if (!add_message(process, &entry, &out[i]))
            return tbd_worker_no_memory(why);
    }
    return TBD_OK;
}

/* ---- ranges for patch areas ---- */

/* The range that a logged event maps, or an empty one.  The heap grows from `heap` on. */
static struct tbd_plan_range mapped_by(const struct tbd_message *message, uint64_t heap)
{
    struct tbd_msg_mapped mapped;
    struct tbd_msg_syscall call;
    struct tbd_message head;
    uint64_t bytes;

    memcpy(&head, message, sizeof(head));
    if (head.kind == TBD_MSG_MAPPED && head.bytes >= sizeof(mapped)) {
        memcpy(&mapped, message + 1, sizeof(mapped));
        return (struct tbd_plan_range){ mapped.start, mapped.end };
    }
    if (head.kind != TBD_MSG_SYSCALL || head.bytes < sizeof(call))
        return (struct tbd_plan_range){ 0, 0 };
    memcpy(&call, message + 1, sizeof(call));
    if (call.flags & TBD_SYSCALL_REFUSED)
        return (struct tbd_plan_range){ 0, 0 };
    bytes = call.number == SYS_mmap     ? call.args[1]
            : call.number == SYS_mremap ? call.args[2]
            : call.number == SYS_shmat  ? call.args[5]
                                        : 0;
    if (call.result > TBD_USER_END || bytes > TBD_USER_END || call.result + bytes > TBD_USER_END)
        return (struct tbd_plan_range){ 0, 0 };
    if (call.number == SYS_brk)
        return (struct tbd_plan_range){ heap,
                                        (call.result + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1) };
    return (struct tbd_plan_range){ call.result & ~(TBD_PAGE_SIZE - 1),
                                    (call.result + bytes + TBD_PAGE_SIZE - 1) &
                                        ~(TBD_PAGE_SIZE - 1) };
}

static void add_avoided_regions(struct tbd_worker *worker, struct tbd_plan_range *out,
                                uint64_t *count)
{
    for (size_t i = 0; i < worker->region_count; i++) {
        const struct tbd_region *region = &worker->regions[i];
        uint64_t start = region->start, below = i != 0 ? region[-1].end : 0;

        if (region->flags & TBD_REGION_PATCH)
            continue;
        /* Only where nothing was: below a stack that may grow without limit are libraries, and
         * beside them play's patch areas, perhaps the only ones within their reach. */
        if (region->flags & TBD_REGION_STACK && below < start)
            start -= start - below < STACK_MARGIN ? start - below : STACK_MARGIN;
        out[(*count)++] = (struct tbd_plan_range){ start, region->end };
    }
}

static void add_avoided_calls(struct tbd_worker *worker, struct tbd_plan_range *out,
                              uint64_t *count)
{
    for (size_t i = 0; i < worker->window->log_count; i++) {
        struct tbd_plan_range range =
            mapped_by(worker->window->log[i].message, worker->process.plan->brk);

        if (range.start < range.end)
            out[(*count)++] = range;
    }
}

static void add_preferred(struct tbd_worker *worker, struct tbd_plan_range *out, uint64_t *count)
{
    for (size_t i = 0; i < worker->region_count; i++)
        if (worker->regions[i].flags & TBD_REGION_PATCH)
            out[(*count)++] =
                (struct tbd_plan_range){ worker->regions[i].start, worker->regions[i].end };
}

static enum tbd_status add_areas(struct tbd_worker *worker, struct tbd_error *why)
{
    struct tbd_process *process = &worker->process;
    struct tbd_plan_head *plan = process->plan;
    uint64_t size = sizeof(struct tbd_plan_range);
    uint64_t avoid = tbd_process_plan_alloc(
        process, (worker->region_count + worker->window->log_count) * size + 1);
    uint64_t prefer = tbd_process_plan_alloc(process, worker->region_count * size + 1);

    if (!avoid || !prefer)
        return tbd_worker_no_memory(why);
    plan->avoid = (struct tbd_plan_section){ avoid, 0 };
    plan->prefer = (struct tbd_plan_section){ prefer, 0 };
    add_avoided_regions(worker, tbd_process_plan_at(process, avoid), &plan->avoid.count);
    add_avoided_calls(worker, tbd_process_plan_at(process, avoid), &plan->avoid.count);
    add_preferred(worker, tbd_process_plan_at(process, prefer), &plan->prefer.count);
    return TBD_OK;
}

/* ---- the rest ---- */

static enum tbd_status add_dirty(struct tbd_worker *worker, struct tbd_error *why)
{
    const struct tbd_window *window = worker->window;
    uint64_t offset = tbd_process_plan_alloc(&worker->process, window->dirty_count * 8 + 1);
    uint64_t *out = tbd_process_plan_at(&worker->process, offset);

    if (!offset)
        return tbd_worker_no_memory(why);
    for (size_t i = 0; i < window->dirty_count; i++)
        out[i] = window->dirty[i].address;
    worker->process.plan->dirty = (struct tbd_plan_section){ offset, window->dirty_count };
    return TBD_OK;
}

/* Adds pages that the window unmaps: slices need their contents. */
static enum tbd_status add_gone(struct tbd_worker *worker, struct tbd_error *why)
{
    const struct tbd_window *window = worker->window;
    size_t count = worker->range.slice ? window->gone_count : 0;
    uint64_t offset = tbd_process_plan_alloc(&worker->process, count * 8 + 1);
    uint64_t *out = tbd_process_plan_at(&worker->process, offset);

    if (!offset)
        return tbd_worker_no_memory(why);
    for (size_t i = 0; i < count; i++)
        out[i] = window->gone[i].address;
    worker->process.plan->gone = (struct tbd_plan_section){ offset, count };
    return TBD_OK;
}

static enum tbd_status add_stops(struct tbd_worker *worker, const struct tbd_reg_state *states,
                                 size_t count, struct tbd_error *why)
{
    struct tbd_process *process = &worker->process;
    uint64_t offset = tbd_process_plan_alloc(process, count * sizeof(struct tbd_plan_stop) + 1);

    if (!offset)
        return tbd_worker_no_memory(why);
    process->plan->stops = (struct tbd_plan_section){ offset, count };
    for (size_t i = 0; i < count; i++) {
        uint64_t capacity = states[i].stack ? states[i].stack_capacity : 0;
        uint64_t xsave = tbd_process_plan_reserve(process, TBD_PLAN_XSAVE_BYTES);
        uint64_t stack = tbd_process_plan_reserve(process, capacity + 1);
        struct tbd_plan_stop *out = tbd_process_plan_at(process, offset);

        if (!xsave || !stack || capacity > TBD_REPLAY_STACK_BYTES)
            return tbd_worker_no_memory(why);
        out[i] = (struct tbd_plan_stop){
            .time = states[i].position.time - tbd_worker_start(worker)->first_time,
            .instruction = states[i].position.offset,
            .xsave = xsave,
            .thread = states[i].thread,
            .stack = stack,
            .stack_bytes = (uint32_t)capacity,
        };
    }
    return TBD_OK;
}

static uint32_t count_forced_specials(const struct tbd_message *message, uint32_t *flags)
{
    struct tbd_msg_shared set;

    if (tbd_message_kind(message) != TBD_MSG_SHARED)
        return 0;
    memcpy(&set, message + 1, sizeof(set));
    *flags = set.flags;
    return set.count;
}

static size_t put_forced_specials(const struct tbd_message *message, uint64_t *out, size_t count)
{
    uint32_t flags = 0, own = count_forced_specials(message, &flags);

    if (flags & TBD_SHARED_WHOLE)
        count = 0;
    if (own)
        memcpy(out + count, (const uint8_t *)(message + 1) + sizeof(struct tbd_msg_shared),
               own * sizeof(*out));
    return count + own;
}

/* For a slice, adds those from earlier messages of the window's log. */
static enum tbd_status add_forced_specials(struct tbd_worker *worker, struct tbd_error *why)
{
    const struct tbd_log_entry *log = worker->window->log;
    size_t before = tbd_worker_start(worker)->slice_order, capacity = 0, count = 0;
    uint32_t flags;
    uint64_t offset;
    uint64_t *out;

    for (size_t i = 0; i < before; i++)
        capacity += count_forced_specials(log[i].message, &flags);
    offset = tbd_process_plan_alloc(&worker->process, capacity * sizeof(*out) + 1);
    if (!offset)
        return tbd_worker_no_memory(why);
    out = tbd_process_plan_at(&worker->process, offset);
    for (size_t i = 0; i < before; i++)
        count = put_forced_specials(log[i].message, out, count);
    worker->process.plan->forced_specials =
        (struct tbd_plan_section){ offset, tbd_numbers_sort_unique(out, count) };
    return TBD_OK;
}

static enum tbd_status add_notes(struct tbd_worker *worker, struct tbd_error *why)
{
    size_t bytes = worker->note_count * sizeof(*worker->notes);
    uint64_t offset = tbd_process_plan_alloc(&worker->process, bytes + 1);

    if (!offset)
        return tbd_worker_no_memory(why);
    worker->process.plan->notes = (struct tbd_plan_section){ offset, worker->note_count };
    if (bytes)
        memcpy(tbd_process_plan_at(&worker->process, offset), worker->notes, bytes);
    return TBD_OK;
}

static enum tbd_status add_registers(struct tbd_worker *worker, struct tbd_error *why)
{
    const struct tbd_window *window = tbd_worker_start(worker);
    struct tbd_plan_head *plan = worker->process.plan;
    uint64_t offset =
        tbd_process_plan_put(&worker->process, window->xsave, window->regs.xsave_bytes);

    if (!offset)
        return tbd_worker_no_memory(why);
    plan->regs = window->regs;
    plan->xsave = offset;
    plan->xcr0 = tbd_trace_info(worker->trace)->xcr0;
    plan->xsave_bytes = tbd_trace_info(worker->trace)->xsave_bytes;
    return TBD_OK;
}

/* The number of threads that begin in the window. */
static uint64_t count_starts(const struct tbd_window *window)
{
    uint64_t count = 0;

    for (size_t i = 0; i < window->log_count; i++)
        count += tbd_message_kind(window->log[i].message) == TBD_MSG_THREAD &&
                 tbd_thread_message(window->log[i].message).event == TBD_THREAD_START;
    return count;
}

static enum tbd_status add_thread(struct tbd_process *process, struct tbd_plan_thread *out,
                                  const struct tbd_thread_state *state, struct tbd_error *why)
{
    uint64_t xsave;

    if (state && state->regs.xsave_bytes > TBD_PLAN_XSAVE_BYTES)
        return tbd_process_error(why, TBD_CORRUPT, "thread %u has other vector registers",
                                 state->regs.thread);
    xsave = tbd_process_plan_reserve(process, TBD_PLAN_XSAVE_BYTES);
    if (!xsave)
        return tbd_worker_no_memory(why);
    *out = (struct tbd_plan_thread){ .xsave = xsave };
    if (!state)
        return TBD_OK;
    out->tid = state->regs.thread;
    out->regs = state->regs;
    tbd_process_plan_write(process, xsave, state->xsave, state->regs.xsave_bytes);
    return TBD_OK;
}

static enum tbd_status add_threads(struct tbd_worker *worker, struct tbd_error *why)
{
    const struct tbd_window *window = tbd_worker_start(worker);
    struct tbd_process *process = &worker->process;
    uint64_t count = window->thread_count + count_starts(worker->window) + 1;
    uint64_t offset = tbd_process_plan_alloc(process, count * sizeof(struct tbd_plan_thread));
    enum tbd_status status = TBD_OK;

    if (!offset)
        return tbd_worker_no_memory(why);
    process->plan->threads = (struct tbd_plan_section){ offset, count };
    for (uint64_t i = 0; i < count && status == TBD_OK; i++) {
        struct tbd_plan_thread *out = tbd_process_plan_at(process, offset);

        status = add_thread(process, &out[i], i < window->thread_count ? &window->threads[i] : NULL,
                            why);
    }
    return status;
}

/* The heap's end; until it grows, it is as at take-over. */
static uint64_t heap_end(const struct tbd_worker *worker)
{
    uint64_t end =
        (tbd_trace_info(worker->trace)->brk_end + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);

    for (size_t i = 0; i < worker->region_count; i++)
        if (worker->regions[i].flags & TBD_REGION_HEAP && worker->regions[i].end > end)
            end = worker->regions[i].end;
    return end;
}

/* No replay would finish a longer window. */
#define MOST_BLOCKS (1ull << 34)

/* Where native play had the window's code translated, its log begins with the message that says so, and is like that of
 * traced play from there on. */
static bool counts_stops(const struct tbd_worker *worker)
{
    if (tbd_trace_info(worker->trace)->counts_stops)
        return !tbd_window_begins_with(worker->window, TBD_MSG_TRANSLATED);
    return tbd_window_begins_with(worker->window, TBD_MSG_STOPS);
}

static bool is_cut_short(const struct tbd_window *window)
{
    return window->has_last_block && window->last_offset != TBD_END_WHOLE &&
           window->first_time + window->blocks == window->last_time + 1;
}

static void put_times(struct tbd_worker *worker)
{
    struct tbd_plan_head *plan = worker->process.plan;
    uint64_t before = tbd_worker_start(worker)->slice_time;

    plan->first_time = worker->window->first_time + before;
    plan->blocks = worker->window->blocks - before;
    plan->from = worker->range.from ? worker->range.from - before : 0;
    plan->until = worker->range.until ? worker->range.until - before : plan->blocks;
    plan->slice = worker->range.slice;
    plan->complete = worker->window->complete;
    plan->counts_stops = counts_stops(worker);
    plan->is_cut_short = is_cut_short(worker->window);
    plan->own_code = tbd_trace_info(worker->trace)->own_code;
    if (plan->counts_stops)
        plan->until = MOST_BLOCKS;
}

enum tbd_status tbd_worker_build(struct tbd_worker *worker, uint32_t hook_set,
                                 const struct tbd_reg_state *states, size_t count,
                                 struct tbd_error *why)
{
    struct tbd_plan_head *plan = worker->process.plan;
    uint64_t end = end_of_run(worker, states, count);
    enum tbd_status status;

    if (worker->window->blocks > MOST_BLOCKS)
        return tbd_process_error(why, TBD_CORRUPT, "a window of %lu block entries",
                                 worker->window->blocks);
    if (~tbd_trace_info(worker->trace)->hook_set & TBD_HOOKS_PLAY)
        return tbd_process_error(why, TBD_NOREPLAY, "stores, calls or pages were not recorded");
    tbd_process_plan_clear(&worker->process);
    tbd_worker_clear_given(worker);
    put_times(worker);
    worker->asked += end - tbd_worker_start(worker)->slice_time;
    plan->hook_set = hook_set;
    plan->area = TBD_PLAN_NO_AREA;
    plan->max_insns = tbd_trace_info(worker->trace)->max_insns;
    plan->brk = heap_end(worker);
    worker->hook_set = hook_set;
    status = add_registers(worker, why);
    if (status == TBD_OK)
        status = add_threads(worker, why);
    if (status == TBD_OK)
        status = tbd_worker_build_memory(worker, why);
    if (status == TBD_OK)
        status = add_log(worker, end, why);
    if (status == TBD_OK)
        status = add_areas(worker, why);
    if (status == TBD_OK)
        status = add_notes(worker, why);
    if (status == TBD_OK)
        status = add_forced_specials(worker, why);
    if (status == TBD_OK)
        status = add_dirty(worker, why);
    if (status == TBD_OK)
        status = add_gone(worker, why);
    if (status == TBD_OK)
        status = tbd_worker_add_cut(worker, why);
    if (status == TBD_OK)
        status = add_stops(worker, states, count, why);
    return status;
}
