// SPDX-License-Identifier: MIT
/* boundary.c - what the patcher asks during play, and the one place where the engine settles
 *
 * Context: APP. */
#include "base/assert.h"
#include "base/fmt.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/boot/runtime.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/calls/vsyscall.h"
#include "hooks/memory/shared.h"
#include "hooks/instructions/slot.h"

/* ---- windows ---- */

#define STRETCH_BATCH 256u

enum what { TOUCHED, UNKNOWN };

static void send_stretches(struct tbd_thread *thread, enum what what,
                           const struct tbd_stretch *stretches, size_t count)
{
    struct tbd_ring *ring = &tbd_runtime.ring;

    if (what == TOUCHED)
        tbd_window_send_pages(ring, thread, &tbd_runtime.pages, stretches, count);
    else
        tbd_window_send_unknown(ring, thread, &tbd_runtime.pages, stretches, count);
}

/* Unreadable mappings cannot have been touched: what they held was sent when they became unreadable. */
static bool is_sent(const struct tbd_msg_region *map)
{
    return map->prot & PROT_READ && !(map->flags & TBD_REGION_VVAR);
}

/* Returns whether marks have stayed, as they may be of several pages. */
static bool send_everywhere(struct tbd_thread *thread, enum what what)
{
    struct tbd_stretch stretches[STRETCH_BATCH];
    const struct tbd_regions *regions = &tbd_runtime.regions;
    bool any_folds = false;
    size_t count = 0;

    for (size_t i = 0; i < regions->count; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;
        bool folds;

        if (!is_sent(map))
            continue;
        folds = tbd_regions_folds(regions, map->start, map->end);
        any_folds |= folds;
        stretches[count++] = (struct tbd_stretch){ map->start, map->end, folds };
        if (count == STRETCH_BATCH) {
            send_stretches(thread, what, stretches, count);
            count = 0;
        }
    }
    send_stretches(thread, what, stretches, count);
    return any_folds;
}

static void send_touched_pages(struct tbd_thread *thread)
{
    const struct tbd_regions *regions = &tbd_runtime.regions;

    if (!send_everywhere(thread, TOUCHED))
        return;
    for (size_t i = 0; i < regions->count; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;
        struct tbd_stretch stretch = { .start = map->start, .end = map->end };

        if (is_sent(map))
            tbd_window_clear_marks(&tbd_runtime.pages, &stretch);
    }
}

void tbd_runtime_send_unknown_pages(struct tbd_thread *thread)
{
    if (tbd_runtime.options.hooks & TBD_HOOK_TOUCH)
        send_everywhere(thread, UNKNOWN);
}

static uint64_t next_due(void)
{
    uint64_t tick = tbd_threads_next_tick();

    return tick < tbd_runtime.window_due ? tick : tbd_runtime.window_due;
}

static void end_window(struct tbd_thread *thread)
{
    struct tbd_ring *ring = &tbd_runtime.ring;

    tbd_runtime.window_due = tbd_ring_time(ring, thread) + tbd_runtime.options.window;
    if (!tbd_runtime.recording)
        return;
    if (tbd_runtime.options.hooks & TBD_HOOK_TOUCH)
        send_touched_pages(thread);
    tbd_threads_send_regs(thread);
    tbd_window_send_end(ring, thread, &tbd_runtime.pages, &tbd_runtime.vector, next_due());
    tbd_shared_begin_window(thread);
    TBD_LOG(TBD_LOG_DEBUG, "window", "ended at time %lu", tbd_ring_time(ring, thread));
}

/* System calls log any number of bytes with few blocks.  The consumer has a window's bytes in memory. */
#define WINDOW_MAX_BYTES (64u << 20)

static void end_large_window_now(struct tbd_ring *ring, struct tbd_thread *thread)
{
    uint64_t time = tbd_ring_time(ring, thread);

    if (ring->window_bytes < WINDOW_MAX_BYTES || !tbd_runtime.recording ||
        time <= tbd_runtime.window_due - tbd_runtime.options.window)
        return;
    if (time < tbd_runtime.window_due)
        tbd_runtime.window_due = time;
    if (time < ring->due)
        ring->due = time;
}

/* The window's end, another thread's turn. */
static void do_what_is_due(struct tbd_thread *thread)
{
    struct tbd_ring *ring = &tbd_runtime.ring;

    if (ring->due != TBD_TIME_NEVER)
        end_large_window_now(ring, thread);
    if (ring->due == TBD_TIME_NEVER || tbd_ring_time(ring, thread) < ring->due)
        return;
    if (tbd_ring_time(ring, thread) >= tbd_runtime.window_due)
        end_window(thread);
    tbd_threads_tick(thread);
    if (ring->due != next_due())
        tbd_ring_set_due(ring, thread, next_due());
}

void tbd_runtime_settle(struct tbd_thread *thread)
{
    struct tbd_ring *ring = &tbd_runtime.ring;

    for (;;) {
        __atomic_store_n(&thread->kick, 0, __ATOMIC_RELAXED);
        tbd_ring_unprotect_sigsafe(ring);
        if (ring->discard && tbd_runtime.recording)
            tbd_detach(thread, "the organizer is gone", TBD_END_WHOLE);
        if (ring->full)
            tbd_detach(thread, "too many different blocks", TBD_END_WHOLE);
        if (tbd_runtime.let_go)
            tbd_detach(thread, tbd_runtime.let_go, TBD_END_WHOLE);
        TBD_INVARIANT("THREAD-1", thread->mark == TBD_THREAD_MARK);
        if (tbd_assert_failure())
            tbd_detach(thread, tbd_assert_failure(), TBD_END_WHOLE);
        do_what_is_due(thread);
        if (!__atomic_load_n(&tbd_runtime.signals->pending, __ATOMIC_ACQUIRE))
            break;
        tbd_signals_deliver(thread);
    }
}

/* ---- messages of the runtime ---- */

void tbd_runtime_note(uint32_t severity, const char *format, ...)
{
    char text[256];
    struct tbd_part parts[2] = { { &severity, sizeof(severity) }, { text, 0 } };
    va_list list;

    va_start(list, format);
    parts[1].bytes = tbd_fmt_list(text, sizeof(text), format, list) + 1;
    va_end(list);
    tbd_ring_send(&tbd_runtime.ring, tbd_runtime.thread, TBD_MSG_NOTE, parts, 2);
    TBD_LOG(TBD_LOG_INFO, "note", "%s", text);
}

void tbd_runtime_send_interrupted(uint64_t instructions)
{
    struct tbd_part part = { &instructions, sizeof(instructions) };

    tbd_ring_send(&tbd_runtime.ring, tbd_runtime.thread, TBD_MSG_INTERRUPTED, &part, 1);
}

/* The last window is closed like every other, with the state that the program ended with. */
void tbd_runtime_send_end(enum tbd_end_how how, uint32_t value, uint64_t offset, const char *text)
{
    struct tbd_ring *ring = &tbd_runtime.ring;
    struct tbd_msg_end end = { .how = (uint32_t)how, .value = value, .offset = offset };
    struct tbd_part parts[2] = { { &end, sizeof(end) }, { text, strlen(text) + 1 } };

    if (!tbd_runtime.recording || ring->discard)
        return;
    if (tbd_runtime.options.hooks & TBD_HOOK_TOUCH)
        send_touched_pages(tbd_runtime.thread);
    if (tbd_runtime.unknown_calls)
        tbd_runtime_note(
            0, "%lu system calls were not described: their writes were found by comparison",
            tbd_runtime.unknown_calls);
    tbd_ring_send(ring, tbd_runtime.thread, TBD_MSG_END, parts, 2);
    tbd_threads_send_regs(tbd_runtime.thread);
    tbd_window_send_end(ring, tbd_runtime.thread, &tbd_runtime.pages, &tbd_runtime.vector,
                        TBD_TIME_NEVER);
    __atomic_store_n(&ring->head->engine_state, TBD_ENGINE_ENDED, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&ring->head->published);
}

void tbd_runtime_wait_done(void)
{
    struct tbd_stream_head *head = tbd_runtime.ring.head;

    if (!tbd_runtime.recording)
        return;
    for (;;) {
        uint32_t state = __atomic_load_n(&head->organizer_state, __ATOMIC_ACQUIRE);
        uint32_t lock = __atomic_load_n(&head->organizer_lock, __ATOMIC_ACQUIRE);

        if (state == TBD_ORGANIZER_DONE || state == TBD_ORGANIZER_FAILED || (lock & 0x40000000u))
            return;
        tbd_sys_futex_wait(&head->organizer_state, state, 50);
    }
}

/* ---- callbacks ---- */

static uint32_t define(const struct tbd_block_def *def, const struct tbd_op *ops,
                       const uint8_t *code)
{
    return tbd_ring_define(&tbd_runtime.ring, def, ops, code);
}

/* Code in writable memory changes without a system call, and so does what is mapped elsewhere as well. */
static uint64_t executable(struct tbd_app_pc pc, uint64_t want, bool *out_changes)
{
    uint64_t at = pc.v;

    *out_changes = false;
    while (at < pc.v + want) {
        const struct tbd_mapped_region *region = tbd_regions_find(&tbd_runtime.regions, at);

        if (!region || !(region->map.prot & PROT_EXEC))
            break;
        *out_changes |= region->map.prot & PROT_WRITE || region->map.map_flags & MAP_SHARED;
        at = region->map.end;
    }
    return at - pc.v < want ? at - pc.v : want;
}

/* A message undid what brings the thread to a boundary; there is no settling while a block is made. */
static void keep_protected(void)
{
    if (__atomic_load_n(&tbd_runtime.signals->pending, __ATOMIC_ACQUIRE))
        tbd_ring_protect_sigsafe(&tbd_runtime.ring);
}

static void send_code(uint64_t start, uint32_t bytes, struct tbd_effects *effects)
{
    struct tbd_msg_code message = { .bytes = bytes, .start = start };
    uint32_t flags = 0; /* it is always one message */
    struct tbd_effect_head head = { .kind = TBD_MSG_CODE,
                                    .data = &message,
                                    .bytes = sizeof(message),
                                    .write_count = &message.write_count,
                                    .flags = &flags };

    tbd_effects_send(effects, &tbd_runtime.ring, tbd_runtime.thread, &tbd_runtime.pages, &head,
                     NULL, 0);
}

/* Code that others may write: the log must have what is there now before the block made from it is entered. */
static void looked(struct tbd_app_pc start, uint32_t bytes)
{
    uint8_t now[TBD_BLOCK_MAX_INSNS * TBD_INSN_MAX_BYTES];
    struct tbd_effects *effects;
    uint32_t others = 0;

    if (!tbd_runtime.recording || !tbd_shared_holds(start.v, start.v + bytes) ||
        bytes > sizeof(now))
        return;
    effects = tbd_effects_get();
    tbd_effects_clear(effects);
    tbd_pages_mark_read(&tbd_runtime.pages, start.v, start.v + bytes);
    if (!tbd_shared_load(effects, now, start.v, bytes, &others) || !others)
        return;
    send_code(start.v, bytes, effects);
    keep_protected();
}

static bool in_reach(uint64_t area, uint64_t bytes, uint64_t lo, uint64_t hi)
{
    const uint64_t reach = (2ull << 30) - (1ull << 20);
    uint64_t start = area < lo ? area : lo;
    uint64_t end = area + bytes > hi ? area + bytes : hi;

    return end - start <= reach;
}

static uint64_t try_area(uint64_t at, uint64_t bytes, int flags)
{
    long result = tbd_sys_mmap(at, bytes, TBD_PROT_RWX, TBD_MAP_MEMORY | flags, -1, 0);

    return tbd_sys_failed(result) ? 0 : (uint64_t)result;
}

/* Above a program without PIE comes its heap: the highest place in reach leaves it the most room. */
static uint64_t search_area(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    const uint64_t step = 1ull << 22;
    const uint64_t reach = (2ull << 30) - (2ull << 20);
    uint64_t lowest = hi > reach + step ? hi - reach : step;
    uint64_t at;

    for (at = (lo - bytes) & ~(step - 1); at < lo && at >= lowest; at -= step)
        if (try_area(at, bytes, MAP_FIXED_NOREPLACE) == at)
            return at;
    for (at = (lo + reach - bytes) & ~(step - 1); at > hi; at -= step)
        if (in_reach(at, bytes, lo, hi) && try_area(at, bytes, MAP_FIXED_NOREPLACE) == at)
            return at;
    return 0;
}

static void send_area(uint64_t start, uint64_t bytes)
{
    struct tbd_msg_region map = { .start = start,
                                  .end = start + bytes,
                                  .prot = TBD_PROT_RWX,
                                  .map_flags = MAP_PRIVATE,
                                  .flags = TBD_REGION_PATCH };
    struct tbd_part parts[2] = { { &map, sizeof(map) }, { "", 1 } };

    tbd_ring_send(&tbd_runtime.ring, tbd_runtime.thread, TBD_MSG_REGION, parts, 2);
}

static uint64_t reserve_area(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    uint64_t area = try_area(0, bytes, 0);

    if (area && !in_reach(area, bytes, lo, hi)) {
        tbd_sys_munmap(area, bytes);
        area = 0;
    }
    if (!area)
        area = search_area(lo, hi, bytes);
    if (!area || tbd_runtime.area_count == TBD_MAX_AREAS)
        return 0;
    tbd_runtime.areas[tbd_runtime.area_count++] = (struct tbd_range){ area, area + bytes };
    tbd_sys_madvise(area, bytes, MADV_DONTFORK /* a child runs natively */);
    tbd_sys_madvise(area, bytes, MADV_DONTDUMP);
    send_area(area, bytes);
    keep_protected();
    TBD_LOG(TBD_LOG_DEBUG, "area", "%lu KiB at %p for code at %p", bytes >> 10, (void *)area,
            (void *)lo);
    return area;
}

static void boundary(struct tbd_thread *thread)
{
    struct tbd_ring *ring = &tbd_runtime.ring;

    tbd_ring_unprotect_sigsafe(ring);
    tbd_ring_turn(ring, thread, 0);
    tbd_runtime_settle(thread);
}

static void on_syscall(struct tbd_thread *thread, uint32_t insn_bytes)
{
    tbd_syscall_perform(thread, insn_bytes);
    tbd_runtime_settle(thread);
}

static void on_special(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes)
{
    tbd_special_perform(thread, special, insn_bytes);
    tbd_runtime_settle(thread);
}

/* Nothing can be fetched at `address`, in or behind regs.rip: the fault the processor would raise. */
static void raise_fetch_fault(struct tbd_thread *thread, uint64_t address)
{
    bool mapped = tbd_regions_find(&tbd_runtime.regions, address);
    struct tbd_queued_signal fault = { .signo = 11,
                                       .is_sync = true,
                                       .error = 0x14,
                                       .trap = 14,
                                       .insn = tbd_slot_last_insn(thread),
                                       .address = address };
    int32_t code = mapped ? SEGV_ACCERR : SEGV_MAPERR;

    fault.error |= mapped ? 1 : 0;
    memcpy(fault.info, &fault.signo, 4);
    memcpy(fault.info + 8, &code, 4);
    memcpy(fault.info + 16, &address, 8);
    tbd_runtime_send_interrupted(fault.insn);
    tbd_signals_raise(thread, &fault);
}

/* Instructions that raise a signal do so in a slot; others that the decoder does not know are left to the
 * processor. */
static void bad_code(struct tbd_thread *thread)
{
    bool unused;
    uint64_t pc = thread->regs.rip;
    uint64_t fetchable = executable((struct tbd_app_pc){ pc }, TBD_INSN_MAX_BYTES, &unused);
    const struct tbd_slot *slot =
        fetchable ? tbd_slot_get_raising(thread, (uint32_t)fetchable) : NULL;

    if (tbd_vsyscall_perform(thread)) {
        tbd_runtime_settle(thread);
        return;
    }
    if (slot)
        tbd_slot_run(thread, slot); /* leaves through the signal handler */
    if (fetchable == TBD_INSN_MAX_BYTES || slot)
        tbd_detach(thread, "it runs an instruction that is not known", tbd_slot_last_insn(thread));
    raise_fetch_fault(thread, pc + fetchable);
    tbd_runtime_settle(thread);
}

static void with_vector_state(void (*fn)(void *), void *arg)
{
    _Alignas(16) uint8_t save[TBD_VECTOR_CALL_BYTES];

    if (tbd_runtime.decoder_tls) {
        tbd_vector_call(fn, arg, save, tbd_runtime.decoder_tls);
        return;
    }
    /* the program's own fs base has a stack-protector word, too */
    tbd_vector_call(fn, arg, save, 0);
}

const struct tbd_patcher_callbacks *tbd_runtime_callbacks(void)
{
    static const struct tbd_patcher_callbacks callbacks = {
        .define = define,
        .executable = executable,
        .looked = looked,
        .reserve_area = reserve_area,
        .syscall = on_syscall,
        .special = on_special,
        .boundary = boundary,
        .bad_code = bad_code,
        .forgetting = tbd_x87_settle,
        .with_vector_state = with_vector_state,
    };

    return tbd_runtime.callbacks ? tbd_runtime.callbacks : &callbacks;
}
