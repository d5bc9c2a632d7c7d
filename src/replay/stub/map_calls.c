// SPDX-License-Identifier: MIT
/* map_calls.c - system calls that change mappings, done again in a replay process
 *
 * Files are not opened: pages of file mappings come from the trace when they are touched.  Calls
 * that failed in play change what play says (TBD_SYSCALL_PARTIAL). */
#include "replay/stub/logged_events.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/recording.h"
#include "replay/stub/memory.h"

#define HIGHEST_ERROR (-4095l)

static uint64_t page_up(uint64_t address)
{
    return (address + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);
}

static bool has_failed(const struct tbd_msg_syscall *call)
{
    return (int64_t)call->result < 0 && (int64_t)call->result >= HIGHEST_ERROR;
}

/* The order of this call's message: mapping calls have one message each, and it is the next in the
 * log. */
static uint64_t this_order(void)
{
    return tbd_stub.log_next + 1;
}

/* As in play, also forgets blocks just before the range: they may have ended where it begins
 * because it was not executable. */

static void forget_code(uint64_t start, uint64_t bytes)
{
    uint64_t end = start + page_up(bytes);

    start -= start < TBD_INSN_MAX_BYTES ? start : TBD_INSN_MAX_BYTES;
    if (tbd_regions_has_code(&tbd_memory.regions, start, end))
        tbd_stub_code_changed(start, end - start);
}

/* Does the new mapping contain zeros?  Others may have written shared memory before this process
 * used it. */
static bool is_fresh(const struct tbd_msg_syscall *call)
{
    return (call->args[3] & MAP_ANONYMOUS) && (call->args[3] & MAP_TYPE) == MAP_PRIVATE;
}

static void note_shared(uint64_t address)
{
    struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, address);

    if (region)
        region->map.map_flags = MAP_SHARED;
}

static bool do_mmap(const struct tbd_msg_syscall *call)
{
    forget_code(call->result, call->args[1]);
    if (!tbd_memory_map(call->result, call->args[1], tbd_region_prot(call->args[2]), is_fresh(call),
                        this_order()))
        return false;
    if ((call->args[3] & MAP_TYPE) != MAP_PRIVATE)
        note_shared(call->result);
    return true;
}

/* The segment's size follows the arguments in play's message (hooks/calls/memory_calls.c). */
static bool do_shmat(const struct tbd_msg_syscall *call)
{
    bool may_write = !(call->args[2] & SHM_RDONLY);

    forget_code(call->result, call->args[5]);
    if (!tbd_memory_map(call->result, call->args[5], PROT_READ | (may_write ? PROT_WRITE : 0u),
                        false, this_order()))
        return false;
    note_shared(call->result);
    return true;
}

static bool do_shmdt(const struct tbd_msg_syscall *call)
{
    forget_code(call->args[0], call->args[5]);
    return tbd_memory_unmap(call->args[0], call->args[5]);
}

static bool do_munmap(const struct tbd_msg_syscall *call)
{
    forget_code(call->args[0], call->args[1]);
    return tbd_memory_unmap(call->args[0], call->args[1]);
}

/* With PROT_GROWSDOWN the start follows the arguments in play's message. */
static struct tbd_range protected_range(const struct tbd_msg_syscall *call)
{
    bool grows = call->args[2] & PROT_GROWSDOWN && !(call->flags & TBD_SYSCALL_PARTIAL);
    uint64_t end = call->args[0] + page_up(call->args[1]);

    return (struct tbd_range){ grows ? call->args[5] : call->args[0], end };
}

static bool protect(const struct tbd_msg_syscall *call)
{
    struct tbd_range range = protected_range(call);

    forget_code(range.start, range.end - range.start);
    return !call->args[1] ||
           tbd_memory_protect(range.start, range.end - range.start, tbd_region_prot(call->args[2]));
}

/* Several mappings can move together, with the holes between them. */
static bool move_pieces(const struct tbd_msg_syscall *call)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    uint64_t end = call->args[0] + page_up(call->args[1]);

    for (uint64_t at = call->args[0]; at < end;) {
        size_t i = tbd_regions_lower(regions, at);
        uint64_t piece_end, to;

        if (i == regions->count || regions->table[i].map.start >= end)
            break;
        if (regions->table[i].map.start > at)
            at = regions->table[i].map.start;
        piece_end = regions->table[i].map.end < end ? regions->table[i].map.end : end;
        to = call->result + (at - call->args[0]);
        if (!tbd_memory_move(at, piece_end - at, to, piece_end - at, this_order()))
            return false;
        at = piece_end;
    }
    return true;
}

static bool do_mremap(const struct tbd_msg_syscall *call)
{
    forget_code(call->args[0], call->args[1]);
    forget_code(call->result, call->args[2]);
    if (!call->args[1]) /* maps shared memory a second time */
        return tbd_memory_map(call->result, call->args[2], PROT_READ | PROT_WRITE, false,
                              this_order());
    if (page_up(call->args[1]) == page_up(call->args[2]) && call->args[0] != call->result &&
        !(call->args[3] & MREMAP_DONTUNMAP))
        return move_pieces(call);
    if (!tbd_memory_move(call->args[0], call->args[1], call->result, call->args[2], this_order()))
        return false;
    return !(call->args[3] & MREMAP_DONTUNMAP) ||
           tbd_memory_map(call->args[0], call->args[1], PROT_READ | PROT_WRITE, true, this_order());
}

static bool do_brk(const struct tbd_msg_syscall *call)
{
    uint64_t before = tbd_stub.brk, after = page_up(call->result);

    tbd_stub.brk = after;
    if (before == after)
        return true;
    if (after > before)
        return tbd_memory_map(before, after - before, PROT_READ | PROT_WRITE, true, this_order());
    return tbd_memory_unmap(after, before - after);
}

static bool drops_contents(uint64_t advice)
{
    return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
           advice == MADV_DONTNEED_LOCKED;
}

static bool do_madvise(const struct tbd_msg_syscall *call)
{
    if (!drops_contents(call->args[2]) || !call->args[1])
        return true;
    forget_code(call->args[0], call->args[1]);
    return tbd_memory_discard(call->args[0], call->args[1], this_order());
}

static bool do_mprotect(const struct tbd_msg_syscall *call)
{
    return protect(call);
}

static bool do_pkey_mprotect(const struct tbd_msg_syscall *call)
{
    return protect(call);
}

/* No mapping changes: calls that the seal forbids have failed in play. */
static bool do_mseal(const struct tbd_msg_syscall *call)
{
    (void)call;
    return true;
}

static bool do_arch_prctl(const struct tbd_msg_syscall *call, struct tbd_thread *thread)
{
    if (call->args[0] == ARCH_SET_FS) {
        thread->regs.fs_base = call->args[1];
        tbd_set_fs_base(call->args[1]);
    }
    if (call->args[0] == ARCH_SET_GS)
        thread->regs.gs_base = call->args[1];
    return true;
}

/* What a call did before it failed. */
static bool do_part(const struct tbd_msg_syscall *call)
{
    struct tbd_msg_syscall part = *call;

    part.args[1] = call->args[5];
    switch (call->number) {
    case __NR_mprotect:
    case __NR_pkey_mprotect: return protect(&part);
    case __NR_madvise: return do_madvise(&part);
    case __NR_mmap: return do_munmap(call);
    case __NR_mremap:
        forget_code(call->args[4], call->args[2]);
        return tbd_memory_unmap(call->args[4], call->args[2]);
    default: return true;
    }
}

bool tbd_maps_change(const struct tbd_msg_syscall *call, struct tbd_thread *thread)
{
    if (call->flags & TBD_SYSCALL_CONTINUED)
        return true;
    if (has_failed(call))
        return !(call->flags & TBD_SYSCALL_PARTIAL) || do_part(call);
    switch (call->number) {
#define X(number, name, mode, ...) TBD_SYS_IF_MAP(mode, case number : return do_##name(call);)
#include "hooks/table/syscalls.def"
#undef X
    case __NR_arch_prctl: return do_arch_prctl(call, thread);
    default: return true;
    }
}

/* ---- messages before the call ---- */

/* As in play, only readable mappings are sent (hooks/calls/memory_calls.c: capture). */
static void send_range(uint64_t start, uint64_t bytes)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    uint64_t end = start + page_up(bytes);

    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;
        struct tbd_stretch stretch = { map->start > start ? map->start : start,
                                       map->end < end ? map->end : end, false };

        stretch.folds = tbd_regions_folds(regions, stretch.start, stretch.end);
        if (map->prot & PROT_READ)
            tbd_window_send_pages(&tbd_recording.ring, tbd_thread_now(), &tbd_memory.pages,
                                  &stretch, 1);
    }
}

static void send_protected(const struct tbd_msg_syscall *call)
{
    struct tbd_range range = protected_range(call);

    send_range(range.start, range.end - range.start);
}

/* Play sends before it makes the call, so even if the call then fails. */
void tbd_maps_before(const struct tbd_msg_syscall *call)
{
    if (tbd_stub.is_partial)
        return;
    switch (call->number) {
    case __NR_munmap: send_range(call->args[0], call->args[1]); break;
    case __NR_mmap:
        if (call->args[3] & MAP_FIXED)
            send_range(call->args[0], call->args[1]);
        break;
    case __NR_mprotect:
    case __NR_pkey_mprotect:
        if (!(call->args[2] & PROT_READ))
            send_protected(call);
        break;
    case __NR_mremap:
        if (call->args[3] & MREMAP_FIXED)
            send_range(call->args[4], call->args[2]);
        send_range(call->args[0], call->args[1]);
        break;
    case __NR_madvise:
        if (drops_contents(call->args[2]))
            send_range(call->args[0], call->args[1]);
        break;
    case __NR_shmat:
        if (call->args[1])
            send_range(call->args[1] & ~(TBD_PAGE_SIZE - 1), call->args[5]);
        break;
    case __NR_shmdt: send_range(call->args[0], call->args[5]); break;
    case __NR_brk:
        if (call->args[0] && page_up(call->args[0]) < tbd_stub.brk)
            send_range(page_up(call->args[0]), tbd_stub.brk - page_up(call->args[0]));
        break;
    default: break;
    }
}

/* ---- changes that no argument tells ---- */

bool tbd_maps_apply(const struct tbd_msg_mapped *mapped)
{
    uint64_t bytes = mapped->end - mapped->start;

    bool is_sent = mapped->flags & TBD_MAPPED_SENT;
    bool is_kept = mapped->flags & TBD_MAPPED_KEPT, is_gone = mapped->flags & TBD_MAPPED_GONE;

    if (!is_sent)
        forget_code(mapped->start, bytes);
    if (mapped->flags & TBD_MAPPED_HEAP && !is_kept)
        tbd_stub.brk = is_gone ? mapped->start : mapped->end;
    if (!tbd_stub.is_partial && !(is_kept && mapped->prot & PROT_READ))
        send_range(mapped->start, bytes);
    if (is_sent)
        return true;
    if (is_kept)
        return tbd_memory_protect(mapped->start, bytes, mapped->prot);
    if (is_gone)
        return tbd_memory_unmap(mapped->start, bytes);
    if (!tbd_memory_map(mapped->start, bytes, mapped->prot, mapped->flags & TBD_MAPPED_ZERO,
                        this_order()))
        return false;
    if (mapped->flags & TBD_MAPPED_SHARED)
        note_shared(mapped->start);
    return true;
}
