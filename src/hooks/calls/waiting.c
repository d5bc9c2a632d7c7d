// SPDX-License-Identifier: MIT
/* waiting.c - system calls that may wait while other threads run
 *
 * The caller gives the turn lock away, and the kernel may write at any time.  The writes must
 * become visible only when the thread has the turn lock again, so the kernel writes to the thread's
 * scratch memory: plain arguments, and the buffers of an iovec or a message header, are replaced by
 * copies there; after the call the copies are written back, and the old bytes are taken then.  Some
 * pointers cannot be replaced: a futex, because the word itself is shared, and parts that are not
 * writable.  There the kernel writes in place, and the old bytes are from before the call.
 *
 *     prepare    with the turn lock: places, copies of what the kernel reads and writes
 *     perform    without the turn lock
 *     complete   with it again: copies back, takes old bytes; if the program was let go, copies only
 *
 * Context: APP; perform without the turn lock. */
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/recording.h"
#include "hooks/table/sys_table.h"
#include "hooks/threads/native.h"
#include "hooks/threads/page_wait.h"
#include "hooks/threads/program_call.h"

enum {
    IOVEC_BYTES = 16,
    MSGHDR_BYTES = 56,
    MSGHDR_NAME = 0,
    MSGHDR_VECTORS = 16,
    MSGHDR_COUNT = 24,
    MSGHDR_CONTROL = 32,
};
#define LINE_BYTES   64u
#define DIRECT_LEAST 512u /* with blocks smaller than this no file bypasses the page cache */
#define KEPT_BYTES   (1ull << 20) /* of scratch memory; any more is unmapped after the call */

/* A place that the kernel may write, and where its bytes are during the call. */
struct written_place {
    uint64_t address;
    uint64_t bytes;
    uint8_t *copy; /* is_exchanged: the kernel reads and writes here; else the old bytes */
    bool is_exchanged;
    bool is_length;    /* tells how much was written to another place */
    bool is_userfault; /* others may have to fill pages of it (userfault.h) */
};

struct waiting {
    struct tbd_saved_context *saved;
    struct tbd_sys_call sys;   /* the call as the engine makes it */
    struct tbd_sys_range *may; /* places as ranges, for the table */
    struct tbd_sys_range *did;
    struct written_place *places;
    size_t count;
    uint8_t *at; /* next free scratch byte */
};

/* ---- scratch memory ---- */

static uint64_t scratch_start(const struct tbd_saved_context *saved)
{
    return TBD_SCRATCH_BASE + saved->index * TBD_SCRATCH_BYTES;
}

/* Unmaps at the next call the memory that this call needed for a large buffer: its message borrows
 * from that. */
static void trim_scratch(struct tbd_saved_context *saved)
{
    if (saved->scratch_bytes <= KEPT_BYTES)
        return;
    tbd_sys_munmap(scratch_start(saved) + KEPT_BYTES, saved->scratch_bytes - KEPT_BYTES);
    saved->scratch_bytes = KEPT_BYTES;
}

static bool map_scratch(struct tbd_saved_context *saved, uint64_t bytes)
{
    uint64_t start = scratch_start(saved);

    bytes = (bytes + KEPT_BYTES - 1) & ~(KEPT_BYTES - 1);
    trim_scratch(saved);
    if (bytes <= saved->scratch_bytes)
        return true;
    if (bytes > TBD_SCRATCH_BYTES ||
        tbd_sys_mmap(start, bytes, TBD_PROT_RW, TBD_MAP_MEMORY | MAP_FIXED, -1, 0) != (long)start)
        return false;
    tbd_sys_madvise(start, bytes, MADV_DONTDUMP);
    saved->scratch_bytes = bytes;
    return true;
}

static void *take(struct waiting *waiting, uint64_t bytes)
{
    uint8_t *at = waiting->at + (-tbd_sys_pointer(waiting->at) & (LINE_BYTES - 1));

    waiting->at = at + bytes;
    return at;
}

static uint64_t alignment_of(uint64_t bytes)
{
    return bytes < DIRECT_LEAST ? LINE_BYTES : TBD_PAGE_SIZE;
}

/* A copy has the same offset in its page, or its cache line, as the program's buffer: reads past
 * the page cache need aligned memory (open(2), O_DIRECT). */
static void *take_alike(struct waiting *waiting, const struct tbd_sys_range *range)
{
    uint64_t mask = alignment_of(range->bytes) - 1;
    uint8_t *at = waiting->at + ((range->address - tbd_sys_pointer(waiting->at)) & mask);

    waiting->at = at + range->bytes;
    return at;
}

/* ---- replaced pointers ---- */

static bool is_writable(uint64_t start, uint64_t bytes)
{
    uint64_t at = start;

    while (at < start + bytes) {
        const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, at);

        if (!region || !(region->map.prot & PROT_WRITE))
            return false;
        at = region->map.end;
    }
    return true;
}

static struct written_place *find_place(struct waiting *waiting, uint64_t address)
{
    for (size_t i = 0; i < waiting->count; i++)
        if (waiting->places[i].address == address && !waiting->places[i].is_exchanged)
            return &waiting->places[i];
    return NULL;
}

enum use { WRITTEN, READ_TOO };

/* Where the kernel finds the bytes that the program has at `address`: in the copy, if there is one.
 * (A page of a large buffer costs nothing until it is touched, so only the bytes that the kernel
 * reads are copied.) */
static uint64_t exchange(struct waiting *waiting, uint64_t address, enum use use)
{
    struct written_place *place = find_place(waiting, address);

    if (!place || !is_writable(place->address, place->bytes) ||
        (place->is_userfault && !tbd_userfault_is_for_kernel()) ||
        (use == READ_TOO && !tbd_copy_from_program(place->copy, address, place->bytes)))
        return address;
    place->is_exchanged = true;
    return tbd_sys_pointer(place->copy);
}

static uint64_t exchange_iovec(struct waiting *waiting, uint64_t array, uint64_t count)
{
    uint64_t *copy;

    if (count > UIO_MAXIOV)
        return array;
    copy = take(waiting, count * IOVEC_BYTES);
    if (!tbd_copy_from_program(copy, array, count * IOVEC_BYTES))
        return array;
    for (uint64_t i = 0; i < count; i++)
        if (copy[2 * i + 1])
            copy[2 * i] = exchange(waiting, copy[2 * i], WRITTEN);
    return tbd_sys_pointer(copy);
}

static uint64_t field(const uint8_t *header, size_t at)
{
    uint64_t value;

    memcpy(&value, header + at, sizeof(value));
    return value;
}

static void set_field(uint8_t *header, size_t at, uint64_t value)
{
    memcpy(header + at, &value, sizeof(value));
}

/* The fields of the header (lengths, flags) have their copies in the header's copy. */
static uint64_t exchange_message(struct waiting *waiting, uint64_t address)
{
    uint8_t *header = take(waiting, MSGHDR_BYTES);

    if (!tbd_copy_from_program(header, address, MSGHDR_BYTES) ||
        !is_writable(address, MSGHDR_BYTES))
        return address;
    for (size_t i = 0; i < waiting->count; i++) {
        struct written_place *place = &waiting->places[i];

        if (place->address - address >= MSGHDR_BYTES || place->bytes > MSGHDR_BYTES)
            continue;
        place->copy = header + (place->address - address);
        place->is_exchanged = true;
        place->is_length = true;
    }
    set_field(header, MSGHDR_NAME, exchange(waiting, field(header, MSGHDR_NAME), WRITTEN));
    set_field(header, MSGHDR_CONTROL, exchange(waiting, field(header, MSGHDR_CONTROL), WRITTEN));
    set_field(header, MSGHDR_VECTORS,
              exchange_iovec(waiting, field(header, MSGHDR_VECTORS), field(header, MSGHDR_COUNT)));
    return tbd_sys_pointer(header);
}

static void mark_length(struct waiting *waiting, uint64_t address)
{
    struct written_place *place = find_place(waiting, address);

    if (place)
        place->is_length = true;
}

static void exchange_argument(struct waiting *waiting, unsigned index,
                              const struct tbd_sys_arg *arg)
{
    uint64_t *value = &waiting->sys.args[index];

    if (arg->effect == TBD_EFFECT_LENGTH)
        mark_length(waiting, waiting->sys.args[arg->length]); /* that argument comes later */
    switch ((enum tbd_sys_effect)arg->effect) {
    case TBD_EFFECT_RESULT:
    case TBD_EFFECT_LENGTH: *value = exchange(waiting, *value, WRITTEN); break;
    case TBD_EFFECT_FIXED:
    case TBD_EFFECT_ARRAY:
    case TBD_EFFECT_FD_SET: *value = exchange(waiting, *value, READ_TOO); break;
    case TBD_EFFECT_IOVEC:
        *value = exchange_iovec(waiting, *value, waiting->sys.args[arg->length]);
        break;
    case TBD_EFFECT_OTHER:
        if (arg->unit == TBD_OTHER_recvmsg)
            *value = exchange_message(waiting, *value);
        else if (arg->unit == TBD_OTHER_msgrcv)
            *value = exchange(waiting, *value, WRITTEN);
        break;
    case TBD_EFFECT_NONE: break;
    }
}

static void exchange_arguments(struct waiting *waiting)
{
    const struct tbd_sys_row *row = tbd_sys_row(waiting->sys.number);

    for (unsigned i = 0; row && i < 6 && row->args[i].show != TBD_SHOW_NONE; i++)
        if (waiting->sys.args[i])
            exchange_argument(waiting, i, &row->args[i]);
}

/* ---- before ---- */

static bool is_userfault(const struct tbd_sys_range *range)
{
    uint64_t missing;

    return tbd_userfault_misses(range, true, &missing);
}

static void lay_out_places(struct waiting *waiting)
{
    for (size_t i = 0; i < waiting->count; i++) {
        struct tbd_sys_range range = waiting->may[i];

        waiting->places[i] = (struct written_place){ .address = range.address,
                                                     .bytes = range.bytes,
                                                     .copy = take_alike(waiting, &range),
                                                     .is_userfault = is_userfault(&range) };
    }
}

/* Saves the old bytes of places that could not be replaced, as far as they are readable. */
static void save_places(struct waiting *waiting)
{
    for (size_t i = 0; i < waiting->count; i++) {
        struct written_place *place = &waiting->places[i];

        if (!place->is_exchanged)
            place->bytes = tbd_copy_prefix_from_program(place->copy, place->address, place->bytes);
    }
}

static uint64_t scratch_needed(const struct tbd_sys_range *may, size_t count)
{
    uint64_t bytes = 2 * (UIO_MAXIOV * IOVEC_BYTES + LINE_BYTES) + MSGHDR_BYTES + LINE_BYTES;

    bytes += count * (sizeof(struct written_place) + 2 * sizeof(*may)) + 3 * LINE_BYTES;
    for (size_t i = 0; i < count; i++)
        bytes += may[i].bytes + alignment_of(may[i].bytes);
    return bytes;
}

/* False: there is no memory for it; the call is made while holding the turn lock. */
static bool prepare(struct tbd_call *call, struct waiting *waiting)
{
    struct tbd_sys_range may[TBD_SYS_MAX_RANGES];
    size_t count = tbd_syscall_may_write(&call->sys, may, TBD_SYS_MAX_RANGES);
    struct tbd_saved_context *saved = tbd_threads.holder;

    if (count == TBD_SYS_MAX_RANGES || !map_scratch(saved, scratch_needed(may, count)))
        return false;
    *waiting = (struct waiting){
        .saved = saved, .sys = call->sys, .count = count, .at = (uint8_t *)scratch_start(saved)
    };
    waiting->may = take(waiting, count * sizeof(*may));
    waiting->did = take(waiting, count * sizeof(*may));
    waiting->places = take(waiting, count * sizeof(*waiting->places));
    memcpy(waiting->may, may, count * sizeof(*may));
    lay_out_places(waiting);
    exchange_arguments(waiting);
    save_places(waiting);
    return true;
}

/* ---- after ---- */

static const struct written_place *place_of(const struct waiting *waiting,
                                            const struct tbd_sys_range *range)
{
    for (size_t i = 0; i < waiting->count; i++)
        if (waiting->places[i].address == range->address && waiting->may[i].bytes >= range->bytes)
            return &waiting->places[i];
    return NULL;
}

/* The lengths that the kernel has set tell the table how much of the other places was written: they
 * are copied first. */
static void copy_lengths(struct tbd_call *call, const struct waiting *waiting, bool is_recorded)
{
    for (size_t i = 0; i < waiting->count && call->result >= 0; i++) {
        const struct written_place *place = &waiting->places[i];

        if (!place->is_exchanged || !place->is_length)
            continue;
        if (is_recorded)
            tbd_effects_watch(call->effects, &waiting->may[i], 1);
        tbd_copy_to_program(place->address, place->copy, place->bytes);
    }
}

/* After -EFAULT: all of may[]. */
static size_t find_written(const struct tbd_call *call, const struct waiting *waiting)
{
    return tbd_syscall_did_write(&call->sys, call->result, waiting->may, waiting->count,
                                 waiting->did, waiting->count);
}

/* The old bytes of shared memory are those of the log by now, whoever wrote them. */
static void record_in_place(struct tbd_call *call, const struct written_place *place,
                            uint64_t bytes)
{
    struct tbd_sys_range range = { place->address, bytes < place->bytes ? bytes : place->bytes };

    if (!tbd_shared_holds(range.address, range.address + range.bytes)) {
        tbd_effects_add(call->effects, range.address, place->copy, range.bytes);
        return;
    }
    tbd_effects_watch(call->effects, &range, 1);
    tbd_effects_written(call->effects, &range, 1);
}

/* First records the bytes with which others filled its pages. */
static void adopt(struct tbd_call *call, const struct tbd_sys_range *range)
{
    uint32_t others = 0;

    tbd_userfault_adopt(call->effects, range, &others);
}

static void complete(struct tbd_call *call, const struct waiting *waiting)
{
    size_t count;

    copy_lengths(call, waiting, true);
    count = find_written(call, waiting);
    for (size_t i = 0; i < count; i++) {
        const struct tbd_sys_range *range = &waiting->did[i];
        const struct written_place *place = place_of(waiting, range);

        if (place && !place->is_exchanged)
            record_in_place(call, place, range->bytes);
        if (!place || !place->is_exchanged || call->result == -EFAULT)
            continue;
        if (!place->is_length) {
            adopt(call, range);
            tbd_effects_watch(call->effects, range, 1);
            tbd_copy_to_program(range->address, place->copy, range->bytes);
        }
        tbd_effects_written(call->effects, range, 1);
    }
}

/* Copies without recording: the program was let go. */
static void complete_natively(struct tbd_call *call, const struct waiting *waiting)
{
    size_t count;

    copy_lengths(call, waiting, false);
    count = call->result == -EFAULT ? 0 : find_written(call, waiting);
    for (size_t i = 0; i < count; i++) {
        const struct written_place *place = place_of(waiting, &waiting->did[i]);

        if (place && place->is_exchanged && !place->is_length)
            tbd_copy_to_program(place->address, place->copy, waiting->did[i].bytes);
    }
}

/* ---- the call ---- */

void tbd_call_leave(const struct tbd_call *call, struct tbd_saved_context *saved)
{
    struct tbd_regs *regs = &saved->regs;

    if (call->result != TBD_CALL_INTERRUPTED) {
        regs->rip += call->insn_bytes;
        regs->gpr[TBD_RAX] = (uint64_t)call->result;
        regs->gpr[TBD_RCX] = regs->rip;
        regs->gpr[TBD_R11] = regs->rflags;
    }
    tbd_threads_leave(saved);
}

/* Fills the pages that the results will be copied to: as many as a call that returns a length can
 * have written. */
static void fill_places(const struct tbd_call *call, const struct waiting *waiting)
{
    for (size_t i = 0; waiting && call->result >= 0 && i < waiting->count; i++) {
        const struct written_place *place = &waiting->places[i];
        uint64_t most = call->result ? (uint64_t)call->result : TBD_PAGE_SIZE;

        if (place->is_userfault && place->is_exchanged)
            tbd_page_fill(waiting->saved, place->address,
                          place->bytes < most ? place->bytes : most);
    }
}

void tbd_call_stolen(struct tbd_call *call, struct tbd_saved_context *saved,
                     const struct tbd_regs *regs)
{
    saved->regs = *regs;
    tbd_effects_clear(call->effects); /* no other thread uses them any more */
    tbd_call_leave(call, saved);
}

/* Other threads have used the effects since.  False: the program was let go. */
static bool take_turn(struct tbd_call *call, struct tbd_saved_context *saved)
{
    if (!tbd_threads_take(call->thread, saved))
        return false;
    tbd_effects_clear(call->effects);
    return true;
}

/* Meanwhile another thread uses the engine's state: the data for the call is on this stack.  False:
 * the program was let go. */
static bool perform(struct tbd_call *call, const struct tbd_sys_call *sys,
                    struct tbd_saved_context *saved, const struct waiting *waiting)
{
    struct tbd_thread *thread = call->thread;
    uint64_t now = tbd_ring_time(&tbd_recording.ring, thread);

    tbd_threads_give(thread,
                     tbd_syscall_flags(sys->number) & TBD_SYS_YIELDS ? TBD_SWITCH_YIELD
                                                                     : TBD_SWITCH_BLOCKED,
                     now ? now - 1 : TBD_NO_BLOCK_TIME);
    call->result = tbd_call_perform_for(&saved->signals, sys);
    fill_places(call, waiting);
    return take_turn(call, saved);
}

/* Memory that the kernel reads, or that it writes whole, is copied and so must be present first. */
static size_t find_missing(const struct tbd_call *call, struct tbd_sys_range *out)
{
    const struct tbd_sys_row *row = tbd_sys_row(call->sys.number);
    struct tbd_sys_range may[TBD_SYS_MAX_RANGES];
    size_t count = tbd_syscall_may_write(&call->sys, may, TBD_SYS_MAX_RANGES);
    uint64_t missing;
    size_t found = 0;

    for (unsigned i = 0; row && i < 6; i++) {
        uint8_t effect = row->args[i].effect;

        for (size_t n = 0; n < count; n++)
            if ((effect == TBD_EFFECT_FIXED || effect == TBD_EFFECT_ARRAY ||
                 effect == TBD_EFFECT_FD_SET) &&
                may[n].address == call->sys.args[i] && found < 6 &&
                tbd_userfault_misses(&may[n], true, &missing))
                out[found++] = may[n];
    }
    return found;
}

static void fill_first(struct tbd_call *call)
{
    struct tbd_saved_context *saved = tbd_threads.holder;
    uint64_t now = tbd_ring_time(&tbd_recording.ring, call->thread);
    struct tbd_sys_range missing[6];
    size_t count =
        tbd_userfault_count && tbd_userfault_is_for_kernel() ? find_missing(call, missing) : 0;

    if (!count)
        return;
    tbd_threads_give(call->thread, TBD_SWITCH_BLOCKED, now ? now - 1 : TBD_NO_BLOCK_TIME);
    for (size_t i = 0; i < count; i++)
        tbd_page_fill(saved, missing[i].address, missing[i].bytes);
    if (take_turn(call, saved))
        return;
    call->result = TBD_CALL_INTERRUPTED; /* it is made natively */
    tbd_call_leave(call, saved);
}

bool tbd_call_wait(struct tbd_call *call)
{
    struct waiting waiting;

    fill_first(call);
    if (!prepare(call, &waiting))
        return false;
    if (!perform(call, &waiting.sys, waiting.saved, &waiting)) {
        if (call->result != TBD_CALL_INTERRUPTED)
            complete_natively(call, &waiting);
        tbd_call_leave(call, waiting.saved);
    }
    if (call->result != TBD_CALL_INTERRUPTED)
        complete(call, &waiting);
    return true;
}

void tbd_call_pause(struct tbd_call *call)
{
    tbd_call_pause_as(call, &call->sys);
}

void tbd_call_pause_as(struct tbd_call *call, const struct tbd_sys_call *sys)
{
    struct tbd_saved_context *saved = tbd_threads.holder;

    if (!perform(call, sys, saved, NULL)) {
        call->result = TBD_CALL_INTERRUPTED; /* the program's own call is made natively */
        tbd_call_leave(call, saved);
    }
}

void tbd_call_wait_as(struct tbd_call *call, const struct tbd_sys_call *sys)
{
    struct tbd_saved_context *saved = tbd_threads.holder;

    if (!perform(call, sys, saved, NULL))
        tbd_call_leave(call, saved);
}

void tbd_call_wait_plainly(struct tbd_call *call)
{
    tbd_call_wait_as(call, &call->sys);
}
