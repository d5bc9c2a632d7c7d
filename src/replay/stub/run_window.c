// SPDX-License-Identifier: MIT
/* run_window.c - one window in a replay process
 *
 * Entries begin in the area at an offset such that they reach its guard page when something is due:
 * a stop, a signal, the end of a slice or of the window.  In a partial replay, and before the first
 * slice that is wanted, the ring only counts entries (`discard`).
 *
 * RUN_WINDOW-1  tbd_stub_boundary() is only called between blocks, or, with `is_inside`, at the
 *     instruction a stop asked for.
 * RUN_WINDOW-2  Time = the ring's count - `extra`: after a stop inside a block, the rest of the
 *     block is entered as one more.
 * RUN_WINDOW-3  Blocks are only counted in whole windows, and then nothing else uses operand areas. */
#include "replay/stub/stub.h"

#include "base/assert.h"
#include "base/fmt.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/registers.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/recording.h"
#include "patcher/cut.h"
#include "patcher/patcher.h"
#include "replay/stub/cut_place.h"
#include "replay/stub/logged_events.h"
#include "replay/stub/memory.h"
#include "replay/stub/vectors.h"

struct tbd_stub tbd_stub;

static struct tbd_plan_stop *stops(void)
{
    return (void *)((char *)tbd_stub.plan + tbd_stub.plan->stops.offset);
}

static uint64_t absolute_time(void)
{
    return tbd_ring_time(&tbd_recording.ring, tbd_thread_now()) - tbd_stub.extra;
}

uint64_t tbd_stub_time(void)
{
    return absolute_time() - tbd_stub.plan->first_time;
}

uint64_t tbd_stub_log_time(void)
{
    return tbd_stub.plan->counts_stops ? tbd_stub.stops : tbd_stub_time();
}

/* Is this the end of a window of native play: has its last stop been replayed? */
static bool has_stopped_last(void)
{
    return tbd_stub.plan->counts_stops && tbd_stub.stops >= tbd_stub.plan->blocks &&
           tbd_stub.log_next >= tbd_stub.plan->log.count;
}

/* Block entries of the replay are no times of this window. */
static uint64_t stops_before(void)
{
    uint64_t last = tbd_stub.plan->blocks ? tbd_stub.plan->blocks - 1 : 0;
    uint64_t now = tbd_stub.stops ? tbd_stub.stops - 1 : 0;

    return now < last ? now : last;
}

void tbd_stub_diverge(uint32_t instruction, const char *format, ...)
{
    struct tbd_plan_head *plan = tbd_stub.plan;
    uint64_t next = tbd_stub_time();
    va_list list;
    char what[sizeof(plan->report.what)];

    va_start(list, format);
    tbd_fmt_list(what, sizeof(what), format, list);
    va_end(list);
    plan->report.time = plan->counts_stops ? stops_before() : next ? next - 1 : 0;
    plan->report.instruction = plan->counts_stops ? 0 : instruction;
    plan->report.thread = tbd_thread_now()->tid;
    plan->report.regs = tbd_thread_now()->regs;
    plan->report.log_next = tbd_stub.log_next;
    plan->report.is_call = tbd_stub.is_in_call;
    tbd_stub_fail(plan, TBD_OUTCOME_DIVERGED, "%s", what);
}

void tbd_stub_need_upper_halves(void)
{
    if (tbd_vector_lacks_upper_halves(&tbd_processor.vector))
        tbd_stub_fail(tbd_stub.plan, TBD_OUTCOME_FAILED,
                      "it needs AVX-512, which this processor does not have: upper halves of zmm "
                      "registers are in use");
}

void tbd_stub_need_registers(const struct tbd_thread *thread)
{
    const char *lacking = tbd_vectors_lacking(thread->regs.rip);
    uint64_t next = tbd_stub_time();

    if (lacking)
        tbd_stub_fail(tbd_stub.plan, TBD_OUTCOME_FAILED,
                      "it needs %s, which this processor does not have: the instruction at "
                      "0x%lx, in the block of time %lu",
                      lacking, thread->regs.rip, tbd_stub.plan->first_time + (next ? next - 1 : 0));
}

void tbd_stub_code_changed(uint64_t start, uint64_t bytes)
{
    tbd_stub.plan->report.code_changed = 1;
    tbd_patcher_flush_range(tbd_thread_now(), start, start + bytes);
}

/* ---- the end ---- */

static const uint64_t *addresses_in(const struct tbd_plan_section *section)
{
    return (const void *)((const char *)tbd_stub.plan + section->offset);
}

static void mark_pages(const struct tbd_plan_section *section)
{
    for (uint64_t i = 0; i < section->count; i++) {
        uint64_t page = addresses_in(section)[i];

        tbd_pages_mark_written(&tbd_memory.pages, page, page + 1);
    }
}

/* Without a touch map, a full replay sends the pages that play wrote.  With slices, too, because
 * sending a slice's state has cleared marks. */
static void mark_dirty_pages(void)
{
    if (!(tbd_stub.hook_set & TBD_HOOK_TOUCH) || tbd_stub.plan->slice ||
        tbd_stub.plan->counts_stops)
        mark_pages(&tbd_stub.plan->dirty);
}

#define BATCH 256u

static void send_unwritten(const uint64_t *pages, uint32_t count)
{
    struct tbd_part part = { pages, count * (uint32_t)sizeof(*pages) };

    if (count)
        tbd_ring_send(&tbd_recording.ring, tbd_thread_now(), TBD_MSG_READ_PAGES, &part, 1);
}

/* To native play the kernel has named these as written, but the program has not: the kernel has looked them up for
 * writing (the word of a shared futex). */
static void send_pages_not_written(void)
{
    const struct tbd_plan_section *dirty = &tbd_stub.plan->dirty;
    static uint64_t pages[BATCH];
    uint32_t count = 0;

    for (uint64_t i = 0; i < dirty->count; i++) {
        if (tbd_pages_is_written(&tbd_memory.pages, addresses_in(dirty)[i]))
            continue;
        pages[count++] = addresses_in(dirty)[i];
        if (count < BATCH)
            continue;
        send_unwritten(pages, count);
        count = 0;
    }
    send_unwritten(pages, count);
}

static void send_marked_pages(void)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    bool can_fold = tbd_regions_any_folds(regions);
    bool any_folds = false;

    for (size_t i = 0; i < regions->count; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;
        struct tbd_stretch stretch = {
            map->start, map->end, can_fold && tbd_regions_folds(regions, map->start, map->end)
        };

        if (map->prot & PROT_READ)
            tbd_window_send_pages(&tbd_recording.ring, tbd_thread_now(), &tbd_memory.pages,
                                  &stretch, 1);
        any_folds |= stretch.folds;
    }
    for (size_t i = 0; i < regions->count && any_folds; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;
        struct tbd_stretch stretch = { .start = map->start, .end = map->end };

        if (map->prot & PROT_READ)
            tbd_window_clear_marks(&tbd_memory.pages, &stretch);
    }
}

/* A window in which the program was killed has no end state: only its stream ends. */
static void send_end(void)
{
    if (tbd_stub.plan->counts_stops)
        send_pages_not_written();
    mark_dirty_pages();
    send_marked_pages();
    if (tbd_stub.plan->complete) {
        tbd_stub_send_threads(tbd_thread_now());
        tbd_registers_send(&tbd_recording.ring, tbd_thread_now(), &tbd_processor.vector);
        tbd_window_send_end(&tbd_recording.ring, tbd_thread_now(), &tbd_memory.pages,
                            TBD_TIME_NEVER);
    } else { /* the program was killed: no end state, but its pages are needed */
        tbd_ring_turn(&tbd_recording.ring, tbd_thread_now(), TBD_CHUNK_ENDS_WINDOW);
    }
}

void tbd_stub_finish(void)
{
    struct tbd_plan_head *plan = tbd_stub.plan;

    if (!tbd_stub.is_partial && tbd_stub.log_next < plan->log.count)
        tbd_stub_diverge(0, "the window ends, but play has %lu more logged messages",
                         plan->log.count - tbd_stub.log_next);
    if (tbd_recording.ring.full)
        tbd_stub_fail(plan, TBD_OUTCOME_FAILED, "too many blocks for one replay process");
    if (!tbd_stub.is_partial)
        send_end();
    plan->report.outcome = TBD_OUTCOME_COMPLETE;
    tbd_stub_serve(plan);
}

/* ---- slices ---- */

static void configure(uint32_t hook_set);

/* Sends the state at a slice's end.  It includes pages that the window unmaps later; their marks
 * are cleared, so that they are not part of the window's end state. */
static void send_state(struct tbd_thread *thread)
{
    const struct tbd_plan_section *gone = &tbd_stub.plan->gone;

    mark_dirty_pages();
    mark_pages(gone);
    send_marked_pages();
    for (uint64_t i = 0; i < gone->count; i++)
        tbd_pages_forget(&tbd_memory.pages, addresses_in(gone)[i], addresses_in(gone)[i] + 1);
    tbd_stub_send_threads(thread);
    tbd_registers_send(&tbd_recording.ring, thread, &tbd_processor.vector);
    tbd_window_send_end(&tbd_recording.ring, thread, &tbd_memory.pages, TBD_TIME_NEVER);
}

/* Begins the first slice that is wanted; before it, the ring only counted. */
static void begin_events(struct tbd_thread *thread)
{
    uint64_t now = absolute_time();

    tbd_stub.is_partial = false;
    tbd_recording.ring.discard = false;
    tbd_recording.hooks = tbd_stub.plan->hook_set;
    tbd_sys_madvise(tbd_processor.gs_base, TBD_TOUCH_BYTES, MADV_DONTNEED);
    configure(tbd_stub.plan->hook_set);
    tbd_ring_start(&tbd_recording.ring, thread, now, TBD_TIME_NEVER);
}

/* After the last slice, the window's own end follows, if it is wanted. */
static void end_slice(struct tbd_thread *thread)
{
    struct tbd_plan_head *plan = tbd_stub.plan;
    uint64_t now = absolute_time();

    if (now < tbd_stub.slice_end || now == plan->first_time + plan->blocks)
        return;
    if (tbd_stub.is_partial)
        begin_events(thread);
    send_state(thread);
    tbd_stub.slice_end = now + plan->slice;
    if (now < tbd_stub.end)
        return;
    plan->report.outcome = TBD_OUTCOME_COMPLETE;
    tbd_stub_serve(plan);
}

/* ---- stops ---- */

#define RED_ZONE 128u /* bytes below the stack pointer that a function may use */

static void copy_stack(struct tbd_plan_stop *stop)
{
    stop->stack_start = stop->regs.gpr[TBD_RSP] - RED_ZONE;
    stop->stack_bytes = (uint32_t)tbd_copy_prefix_from_program(
        (char *)tbd_stub.plan + stop->stack, stop->stack_start, stop->stack_bytes);
}

static void fill_stop(struct tbd_plan_stop *stop, const struct tbd_thread *thread)
{
    void *image = (char *)tbd_stub.plan + stop->xsave;

    stop->done = TBD_STOP_FILLED;
    if (!stop->thread || stop->thread == thread->tid) {
        stop->regs = thread->regs;
        stop->regs.thread = thread->tid;
        stop->regs.xsave_bytes = tbd_vector_store(&tbd_processor.vector, image);
    } else if (!tbd_stub_thread_state(stop->thread, &stop->regs, image)) {
        stop->done = TBD_STOP_NO_THREAD;
    }
    if (stop->stack_bytes && stop->done == TBD_STOP_FILLED)
        copy_stack(stop);
    tbd_stub.stop_next++;
}

/* The next stop; after the last one, a stop that is never reached. */
static const struct tbd_plan_stop *next_stop(void)
{
    static const struct tbd_plan_stop never = { .time = UINT64_MAX };

    return tbd_stub.stop_next < tbd_stub.plan->stops.count ? &stops()[tbd_stub.stop_next] : &never;
}

/* Fills all stops at this position. */
static void fill_stops(struct tbd_thread *thread, uint64_t time, uint32_t instruction)
{
    while (next_stop()->time == time && next_stop()->instruction == instruction)
        fill_stop(&stops()[tbd_stub.stop_next], thread);
    if (tbd_stub.plan->stops.count && next_stop()->time == UINT64_MAX)
        tbd_stub_finish();
}

static struct tbd_block_def stopped_block;

static void cut_block(void *unused)
{
    static struct tbd_cut cut;
    struct tbd_codegen_config config = { .hook_set = TBD_HOOKS_PARTIAL,
                                         .max_insns = tbd_stub.plan->max_insns };

    (void)unused;
    tbd_cut_block(&cut, &tbd_stub_callbacks, &config, tbd_thread_now()->regs.rip);
    stopped_block = cut.def;
}

/* Prepares a stop inside the block that is entered next, if there is one. */
static void stop_inside(struct tbd_thread *thread, uint64_t now)
{
    if (next_stop()->time != now)
        return;
    tbd_stub_callbacks.with_vector_state(cut_block, NULL);
    if (next_stop()->instruction >= stopped_block.insn_count)
        tbd_stub_fail(
            tbd_stub.plan, TBD_OUTCOME_NO_STOP, "position %lu+%u: the block has %u instructions",
            tbd_stub.plan->first_time + now, next_stop()->instruction, stopped_block.insn_count);
    tbd_stub.is_inside = true;
    tbd_patcher_stop_inside(thread, (struct tbd_app_pc){ thread->regs.rip },
                            next_stop()->instruction);
}

/* The replay has stopped inside the block entered last.  The rest of the block is entered as a
 * block of its own, up to the next stop in it or to its end, but not beyond (RUN_WINDOW-2). */
static void reached_inside(struct tbd_thread *thread)
{
    uint64_t time = tbd_stub_time() - 1;
    uint32_t ran = next_stop()->instruction, until = stopped_block.insn_count;

    fill_stops(thread, time, ran);
    tbd_stub.is_inside = next_stop()->time == time;
    if (tbd_stub.is_inside)
        until = next_stop()->instruction;
    tbd_stub.extra++;
    if (tbd_stub.is_inside || stopped_block.end == TBD_END_LIMIT)
        tbd_patcher_stop_inside(thread, (struct tbd_app_pc){ thread->regs.rip }, until - ran);
}

/* ---- boundaries ---- */

static uint64_t next_due(void)
{
    const struct tbd_plan_stop *stop = next_stop();
    uint64_t due = tbd_stub.end - tbd_stub.plan->first_time, between = tbd_stub_between_time();
    uint64_t now = tbd_stub_time(), left = tbd_stub_left_time();

    if (tbd_stub.slice_end < tbd_stub.end)
        due = tbd_stub.slice_end - tbd_stub.plan->first_time;
    if (left < due && left > now)
        due = left;
    if (stop->time < due && stop->time > now)
        due = stop->time;
    if (between < due && between > now)
        due = between;
    return due + tbd_stub.plan->first_time + tbd_stub.extra;
}

void tbd_stub_boundary(struct tbd_thread *thread)
{
    TBD_INVARIANT("THREAD-1", thread->mark == TBD_THREAD_MARK);
    if (tbd_assert_failure())
        tbd_stub_fail(tbd_stub.plan, TBD_OUTCOME_FAILED, "%s", tbd_assert_failure());
    if (tbd_recording.ring.full)
        tbd_stub_fail(tbd_stub.plan, TBD_OUTCOME_FAILED, "too many blocks for one replay process");
    TBD_INVARIANT("RUN_WINDOW-2", absolute_time() >= tbd_stub.plan->first_time);
    if (tbd_stub.is_inside) {
        TBD_INVARIANT("RUN_WINDOW-1", tbd_stub_time() > 0);
        reached_inside(thread);
    } else {
        end_slice(thread);
        tbd_stub_between(thread);
        fill_stops(thread, tbd_stub_time(), 0);
        if (absolute_time() >= tbd_stub.end || has_stopped_last())
            tbd_stub_finish();
        tbd_stub_leave_block(thread);
        stop_inside(thread, tbd_stub_time());
    }
    tbd_ring_set_due(&tbd_recording.ring, thread, next_due());
}

static void load_registers(struct tbd_thread *thread)
{
    const struct tbd_plan_head *plan = tbd_stub.plan;
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];

    thread->regs = plan->regs;
    thread->tid = plan->regs.thread;
    thread->kick = 0;
    if (!tbd_vector_fits(&tbd_processor.vector, plan->regs.xsave_bytes))
        tbd_stub_fail(tbd_stub.plan, TBD_OUTCOME_FAILED, "its vector registers are not all there");
    memcpy(image, (const char *)plan + plan->xsave, plan->regs.xsave_bytes);
    tbd_vector_adopt_mxcsr_mask(&tbd_processor.vector, image);
    tbd_vector_load(&tbd_processor.vector, image);
    tbd_stub_need_upper_halves();
    tbd_set_fs_base(thread->regs.fs_base);
}

#define NO_HOOKS (TBD_PLAN_COUNTS | TBD_PLAN_ENTRIES | TBD_PLAN_ASIDE)

/* What of a hook set makes a difference to code: where its entries and records go does not. */
static uint32_t code_of(uint32_t hook_set)
{
    return hook_set & TBD_PLAN_ASIDE ? hook_set & ~NO_HOOKS : hook_set;
}

static void configure(uint32_t hook_set)
{
    const struct tbd_plan_head *plan = tbd_stub.plan;
    uint32_t code = code_of(hook_set);
    struct tbd_codegen_config config = {
        .hook_set = code & ~NO_HOOKS,
        .omits_records = code & NO_HOOKS || code == TBD_HOOKS_PARTIAL,
        .only_counts = code == TBD_HOOKS_PARTIAL,
        .max_insns = plan->max_insns,
        .notes = (const void *)((const char *)plan + plan->notes.offset),
        .note_count = plan->notes.count,
        .link = true
    };

    if (tbd_stub.hook_set == code && !(plan->flags & TBD_PLAN_FLUSH)) {
        tbd_patcher_place_notes(config.notes);
        return;
    }
    tbd_patcher_configure(&config);
    tbd_stub.hook_set = code;
}

/* Is the log's first message about the window as a whole? */
static bool begins_with_mark(const struct tbd_plan_head *plan)
{
    return plan->log.count && (tbd_log_message(0)->kind == TBD_MSG_TRANSLATED ||
                               tbd_log_message(0)->kind == TBD_MSG_STOPS);
}

#define COUNTING_BYTES (512u << 10)

/* Blocks are counted in the last entries of an operand area, before its guard page. */
static void set_up_counting(const struct tbd_plan_head *plan)
{
    struct tbd_ring *ring = &tbd_recording.ring;

    TBD_INVARIANT("RUN_WINDOW-3", !(plan->hook_set & TBD_PLAN_COUNTS) ||
                                      (plan->area == TBD_PLAN_NO_AREA && !plan->slice));
    ring->counting = ring->aside = 0;
    ring->counting_bytes = COUNTING_BYTES;
    if (plan->hook_set & TBD_PLAN_COUNTS)
        ring->counting = tbd_ring_area(ring, 0) + ring->head->area_bytes - ring->counting_bytes;
    if (plan->hook_set & TBD_PLAN_COUNTS && plan->hook_set & TBD_PLAN_ASIDE)
        tbd_stub_use_unread(ring);
}

void tbd_stub_run(void)
{
    struct tbd_plan_head *plan = tbd_stub.plan;
    struct tbd_thread *thread = tbd_thread_now();
    const char *why = tbd_vectors_adopt(plan->xcr0, (uint32_t)plan->xsave_bytes);

    if (why)
        tbd_stub_fail(plan, TBD_OUTCOME_FAILED, "%s", why);
    plan->report.code_changed = 0;
    tbd_stub.is_partial = plan->hook_set == TBD_HOOKS_PARTIAL || plan->from;
    tbd_recording.ring.discard = tbd_stub.is_partial;
    tbd_recording.hooks = tbd_stub.is_partial ? TBD_HOOKS_NONE : plan->hook_set & ~NO_HOOKS;
    set_up_counting(plan);
    tbd_recording.ring.omits_records = plan->hook_set & TBD_PLAN_ENTRIES;
    tbd_stub.end = plan->first_time + plan->until;
    tbd_stub.slice_end =
        plan->slice ? plan->first_time + (plan->from ? plan->from : plan->slice) : TBD_TIME_NEVER;
    tbd_stub.stops = 0;
    tbd_stub.is_in_special = tbd_stub.is_in_call = false;
    tbd_stub.log_next = begins_with_mark(plan) ? 1 : 0;
    tbd_stub.extra = tbd_stub.stop_next = tbd_stub.between = tbd_stub.left = 0;
    tbd_stub.is_inside = tbd_stub.has_ended = false;
    tbd_stub.brk = plan->brk;
    if (!tbd_stub.is_partial) /* clears marks that a partial replay left */
        tbd_sys_madvise(tbd_processor.gs_base, TBD_TOUCH_BYTES, MADV_DONTNEED);
    configure(tbd_stub.is_partial ? TBD_HOOKS_PARTIAL : plan->hook_set);
    load_registers(thread);
    tbd_recording.ring.area =
        plan->area == TBD_PLAN_NO_AREA ? 0 : tbd_ring_area(&tbd_recording.ring, plan->area);
    tbd_ring_start(&tbd_recording.ring, thread, plan->first_time, tbd_stub.end);
    tbd_stub_shared_begin(thread);
    tbd_cut_place_begin(thread, plan);
    tbd_stub_boundary(thread);
    tbd_patcher_run(thread);
}
