// SPDX-License-Identifier: MIT
/* memory_calls.c - system calls that change what is mapped (TBD_SYS_MAP)
 *
 * Before the call: touched pages that will be removed or replaced are sent, with their marks, as at
 * a window's end. After the call: the table of regions is updated, translations of changed code are
 * dropped, and REGION and UNMAP messages are sent.  If a call names the engine's own ranges, the
 * program is let go and makes it natively.
 *
 * Context: APP. */
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/changed_files.h"
#include "hooks/calls/failed_maps.h"
#include "hooks/calls/growth.h"
#include "hooks/calls/lock_calls.h"
#include "hooks/calls/map_changes.h"
#include "hooks/calls/program_limits.h"
#include "hooks/memory/effects.h"
#include "hooks/memory/maps.h"
#include "hooks/memory/proc.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/unlinked_files.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"

static bool failed(const struct tbd_call *call)
{
    return tbd_sys_failed(call->result) || call->result == TBD_CALL_INTERRUPTED;
}

static bool was_refused(const struct tbd_call *call)
{
    return failed(call) && call->result != TBD_CALL_INTERRUPTED;
}

/* Before the message: the call that failed has worked for this many bytes. */
static void note_part(struct tbd_call *call, uint64_t bytes)
{
    if (!bytes)
        return;
    call->flags |= TBD_SYSCALL_PARTIAL;
    call->sys.args[5] = bytes;
}

/* Before the message: has the call that failed unmapped its target? */
static void note_target(struct tbd_call *call, uint64_t start, uint64_t bytes)
{
    if (was_refused(call) && bytes && start + bytes > start && start + bytes <= TBD_USER_END &&
        tbd_failed_unmapped(start, start + bytes))
        call->flags |= TBD_SYSCALL_PARTIAL;
}

/* With userfaultfd the kernel may wait until somebody has read the event from the descriptor. */
static void perform_as(struct tbd_call *call, const struct tbd_sys_call *sys)
{
    if (tbd_program_limits_refuse(sys))
        call->result = sys->number == __NR_brk ? (int64_t)tbd_memory.brk_end : -ENOMEM;
    else if (tbd_userfault_waits_for_events())
        tbd_call_wait_as(call, sys);
    else
        call->result = tbd_call_perform(sys);
}

static void perform(struct tbd_call *call)
{
    perform_as(call, &call->sys);
    tbd_call_finish(call);
}

/* ---- mmap, shmat ---- */

/* Fills in what /proc/self/maps would say about the file of a descriptor. */
static void describe_file(struct tbd_msg_region *map, int fd, char *path, size_t bytes)
{
    uint64_t stat[18];

    path[0] = '\0';
    if (tbd_sys_failed(tbd_sys3(__NR_fstat, (uint64_t)(unsigned)fd, tbd_sys_pointer(stat), 0)))
        return;
    map->device = (uint32_t)stat[0];
    map->inode = stat[1];
    tbd_proc_path(fd, path, bytes);
}

static bool is_private(const uint64_t *args)
{
    return (args[3] & MAP_TYPE) == MAP_PRIVATE;
}

/* Is it a mapping of a file that others may write?  Private mappings of the file that there are may
 * belong to that memory from now on. */
static uint32_t changing_file(const uint64_t *args)
{
    if (args[3] & MAP_ANONYMOUS)
        return 0;
    if (is_private(args))
        return !(args[2] & PROT_EXEC) && tbd_changed_files_is_likely(args[4]) ? TBD_REGION_SHARED
                                                                              : 0;
    if (args[2] & PROT_WRITE)
        tbd_changed_files_map_writable(args[4]);
    return 0;
}

/* New memory that others may write is placed away from other mappings if the program does not ask for
 * an address (hooks/memory/shared.h). */
static struct tbd_sys_call map_call(const struct tbd_call *call, bool is_shared)
{
    struct tbd_sys_call sys = call->sys;

    is_shared = is_shared && !(sys.args[3] & (MAP_FIXED | MAP_32BIT));
    if (is_shared && !sys.args[0] && tbd_recording.is_on)
        sys.args[0] = tbd_shared_place(sys.args[1]);
    return sys;
}

#define MOST_TRIES 64u /* at ranges that are taken by what is not in the table (patch areas) */

/* Only once nothing else is free does the kernel choose an address in the engine's range: then it has
 * chosen too early for a replay, and for what the engine maps later. */
static void place_outside_engine(struct tbd_call *call, struct tbd_sys_call *sys)
{
    uint64_t at = TBD_USER_END - TBD_PAGE_SIZE;
    uint64_t bytes = tbd_map_page_up(sys->args[1]);

    tbd_sys_munmap((uint64_t)call->result, bytes);
    call->result = -ENOMEM;
    sys->args[3] |= MAP_FIXED_NOREPLACE;
    for (unsigned tries = 0; tries < MOST_TRIES; tries++) {
        at = tbd_regions_gap(&tbd_memory.regions, bytes, at);
        if (!at)
            return;
        sys->args[0] = at;
        call->result = tbd_call_perform(sys);
        if (call->result != -EEXIST)
            return;
    }
    call->result = -ENOMEM;
}

static bool is_in_engine_range(const struct tbd_call *call)
{
    uint64_t start = (uint64_t)call->result;

    return !tbd_sys_failed(call->result) && call->result != TBD_CALL_INTERRUPTED &&
           tbd_map_overlaps(start, start + tbd_map_page_up(call->sys.args[1]), TBD_ENGINE_BASE,
                            TBD_ENGINE_END);
}

/* The program asks for an address in the engine's range: the engine acts as if something were
 * mapped there, and the kernel chooses another place. */
static void perform_wish(struct tbd_call *call, bool is_shared)
{
    struct tbd_sys_call sys = map_call(call, is_shared);
    uint64_t end = sys.args[0] + tbd_map_page_up(sys.args[1]);

    if (!(sys.args[3] & MAP_FIXED) && end > sys.args[0] && tbd_map_is_engine(sys.args[0], end)) {
        if (sys.args[3] & MAP_FIXED_NOREPLACE) {
            call->result = -EEXIST;
            tbd_call_finish(call);
            return;
        }
        sys.args[0] = 0;
    }
    sys.args[3] |= tbd_lock_map_flags();
    perform_as(call, &sys);
    if (is_in_engine_range(call))
        place_outside_engine(call, &sys);
    if (sys.args[3] & MAP_FIXED)
        note_target(call, sys.args[0], tbd_map_page_up(sys.args[1]));
    tbd_call_finish(call);
}

void tbd_call_mmap(struct tbd_call *call)
{
    const uint64_t *args = call->sys.args;
    bool fixed = args[3] & MAP_FIXED;
    uint64_t bytes = tbd_map_page_up(args[1]);
    struct tbd_msg_region map = { .prot = tbd_region_prot(args[2]),
                                  .map_flags = (uint32_t)args[3],
                                  .flags = changing_file(args) };
    char path[4096];

    if (fixed) {
        tbd_map_check(call, args[0], args[1]);
        tbd_map_capture(call->thread, args[0], args[0] + bytes);
    }
    path[0] = '\0';
    if (!(args[3] & MAP_ANONYMOUS)) {
        describe_file(&map, (int)args[4], path, sizeof(path));
        map.file_offset = args[5];
    }
    perform_wish(call, map.flags || !is_private(args));
    if (call->flags & TBD_SYSCALL_PARTIAL)
        tbd_map_remove(call->thread, args[0], args[0] + bytes);
    if (failed(call))
        return;
    map.map_flags =
        (map.map_flags & ~(uint32_t)MAP_TYPE) | (is_private(args) ? MAP_PRIVATE : MAP_SHARED);
    map.start = (uint64_t)call->result;
    map.end = map.start + bytes;
    tbd_lock_mapped(map.start, bytes);
    tbd_map_add(call->thread, &map, path);
    if (map.map_flags & MAP_GROWSDOWN)
        tbd_growth_changed();
    if (map.inode)
        tbd_unlinked_files_send(call->thread, &map, (int)args[4]);
    tbd_written_files_send(call->thread, map.start, map.end);
}

struct lookup {
    uint64_t address;
    struct tbd_msg_region map;
    char path[256];
};

static bool look_up(void *context, const struct tbd_msg_region *map, const char *path)
{
    struct lookup *lookup = context;
    size_t length = strlen(path);

    if (lookup->address < map->start || lookup->address >= map->end)
        return true;
    lookup->map = *map;
    memcpy(lookup->path, path, length < 255 ? length : 255);
    return false;
}

/* The segment's size, by shmctl(IPC_STAT). */
static uint64_t segment_bytes(uint64_t id)
{
    uint64_t status[14] = { 0 };

    if (tbd_sys_failed(tbd_sys3(__NR_shmctl, id, IPC_STAT, tbd_sys_pointer(status))))
        return 0;
    return tbd_map_page_up(status[6]);
}

/* Only the kernel knows the segment's size; replay finds it in the message, as a sixth argument. */
void tbd_call_shmat(struct tbd_call *call)
{
    struct lookup lookup = { 0 };
    struct tbd_sys_call sys = call->sys;
    uint64_t bytes = segment_bytes(sys.args[0]);

    call->sys.args[5] = sys.args[1] ? bytes : 0; /* what is looked at before, if it fails */
    if (sys.args[1] && bytes)
        tbd_map_capture(call->thread, sys.args[1] & ~(TBD_PAGE_SIZE - 1),
                        (sys.args[1] & ~(TBD_PAGE_SIZE - 1)) + bytes);
    else if (bytes)
        sys.args[1] = tbd_shared_place(bytes);
    call->result = tbd_program_limits_refuse_shared(bytes) ? -ENOMEM : tbd_call_perform(&sys);
    if (!failed(call)) {
        lookup.address = (uint64_t)call->result;
        tbd_maps_read(look_up, &lookup);
        call->sys.args[5] = lookup.map.end - lookup.map.start;
    }
    tbd_call_finish(call);
    if (failed(call))
        return;
    lookup.map.inode += !lookup.map.inode; /* a segment counts as a file, even if its number is 0 */
    if (lookup.map.end)
        tbd_map_add(call->thread, &lookup.map, lookup.path);
    else
        tbd_recording_note(1, "a shared memory segment could not be found in the mappings");
}

/* A piece of a segment that is attached at `start`, where the program may have unmapped others. */
static bool is_piece(const struct tbd_mapped_region *region, uint64_t start)
{
    return tbd_starts_with(region->path, "/SYSV") &&
           region->map.file_offset == region->map.start - start;
}

/* From `start` to the end of the segment's last piece; nothing if there is none.  `*out_alone`: is
 * nothing else in between? */
static struct tbd_range segment_at(uint64_t start, bool *out_alone)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    struct tbd_range range = { start, start };
    const struct tbd_mapped_region *first = NULL;
    bool alone = true;

    *out_alone = true;
    for (size_t i = tbd_regions_lower(regions, start); i < regions->count; i++) {
        const struct tbd_mapped_region *region = &regions->table[i];

        if (!is_piece(region, start) || (first && (region->map.inode != first->map.inode ||
                                                   region->map.device != first->map.device))) {
            alone = false;
            continue;
        }
        first = first ? first : region;
        range.end = region->map.end;
        *out_alone = alone;
    }
    return range;
}

void tbd_call_shmdt(struct tbd_call *call)
{
    bool is_alone;
    struct tbd_range range = segment_at(call->sys.args[0], &is_alone);

    if (!is_alone)
        tbd_call_detach(call, "it detaches a segment between whose pages others are mapped");
    tbd_map_capture(call->thread, range.start, range.end);
    call->sys.args[5] = range.end - range.start;
    perform(call);
    if (failed(call))
        return;
    tbd_map_remove(call->thread, range.start, range.end);
}

/* ---- munmap, mprotect, brk, mremap, madvise ---- */

void tbd_call_munmap(struct tbd_call *call)
{
    uint64_t start = call->sys.args[0];
    uint64_t end = start + tbd_map_page_up(call->sys.args[1]);

    tbd_map_check(call, start, call->sys.args[1]);
    tbd_map_capture(call->thread, start, end);
    perform(call);
    if (failed(call))
        return;
    tbd_map_remove(call->thread, start, end);
}

/* An mprotect that fails may have changed the mappings before the one it failed at, so the kernel's
 * list is read again. */
static bool refresh(void *context, const struct tbd_msg_region *map, const char *path)
{
    const struct tbd_range *range = context;
    uint64_t start = map->start > range->start ? map->start : range->start;
    uint64_t end = map->end < range->end ? map->end : range->end;

    (void)path;
    if (start < end)
        tbd_memory_protect_regions(start, end, map->prot);
    return true;
}

/* With PROT_GROWSDOWN the kernel begins where the mapping does, which a replay finds in the message as a sixth
 * argument. */
static uint64_t protect_start(struct tbd_call *call)
{
    struct lookup lookup = { .address = call->sys.args[0] };

    if (!(call->sys.args[2] & PROT_GROWSDOWN))
        return lookup.address;
    tbd_maps_read(look_up, &lookup);
    call->sys.args[5] = lookup.map.end ? lookup.map.start : lookup.address;
    return call->sys.args[5];
}

static void protect_memory(struct tbd_call *call)
{
    struct tbd_range range = { protect_start(call),
                               call->sys.args[0] + tbd_map_page_up(call->sys.args[1]) };

    tbd_map_check(call, range.start, call->sys.args[1]);
    if (!(call->sys.args[2] & PROT_READ))
        tbd_map_capture(call->thread, range.start, range.end);
    perform_as(call, &call->sys);
    if (was_refused(call) && !(range.start & (TBD_PAGE_SIZE - 1)) && range.start < range.end &&
        range.start == call->sys.args[0])
        note_part(call,
                  tbd_failed_protect(range.start, range.end, tbd_region_prot(call->sys.args[2])));
    tbd_call_finish(call);
    if (call->result == TBD_CALL_INTERRUPTED || call->result == -EINVAL)
        return;
    tbd_map_flush_code(call->thread, range.start, range.end);
    if (failed(call))
        tbd_maps_read(refresh, &range);
    else
        tbd_memory_protect_regions(range.start, range.end, tbd_region_prot(call->sys.args[2]));
    tbd_map_send(call->thread, range.start, range.end, false);
    tbd_written_files_send(call->thread, range.start, range.end);
}

/* Private anonymous memory stays one region, however often it grows in place. */
static void extend(struct tbd_call *call, struct tbd_mapped_region *region, uint64_t to)
{
    uint64_t from = region->map.end;

    region->map.end = to;
    if (region->map.prot & PROT_READ)
        tbd_memory_becomes_readable(from, to);
    tbd_pages_set_known(&tbd_memory.pages, from, to, true);
    tbd_map_send(call->thread, from, to, true);
}

static void grow_heap(struct tbd_call *call, uint64_t from, uint64_t to)
{
    struct tbd_msg_region map = { .start = from,
                                  .end = to,
                                  .prot = TBD_PROT_RW,
                                  .map_flags = MAP_PRIVATE,
                                  .flags = TBD_REGION_HEAP };
    struct tbd_mapped_region *before = tbd_regions_find(&tbd_memory.regions, from - 1);

    if (from >= to)
        return;
    if (before && before->map.flags & TBD_REGION_HEAP && before->map.prot == map.prot)
        extend(call, before, to);
    else
        tbd_map_add(call->thread, &map, "[heap]");
}

void tbd_call_brk(struct tbd_call *call)
{
    uint64_t old_end = tbd_map_page_up(tbd_memory.brk_end);
    uint64_t wanted = tbd_map_page_up(call->sys.args[0]);
    uint64_t end;

    if (wanted >= tbd_map_page_up(tbd_memory.brk_start) && wanted < old_end)
        tbd_map_capture(call->thread, wanted, old_end);
    perform(call);
    if (call->result == TBD_CALL_INTERRUPTED)
        return;
    tbd_memory.brk_end = (uint64_t)call->result;
    end = tbd_map_page_up(tbd_memory.brk_end);
    if (end < old_end)
        tbd_map_remove(call->thread, end, old_end);
    tbd_lock_mapped(old_end, end > old_end ? end - old_end : 0);
    grow_heap(call, old_end, end);
}

/* Several mappings can move together, with the holes between them (Linux 6.17). */
static bool is_move(const struct tbd_call *call)
{
    const uint64_t *args = call->sys.args;

    return args[1] && tbd_map_page_up(args[1]) == tbd_map_page_up(args[2]) &&
           !(args[3] & MREMAP_DONTUNMAP) && (uint64_t)call->result != args[0];
}

static void move_piece(struct tbd_call *call, struct tbd_mapped_region piece, uint64_t start,
                       uint64_t end)
{
    if (piece.map.inode)
        piece.map.file_offset += start - piece.map.start;
    piece.map.start = (uint64_t)call->result + (start - call->sys.args[0]);
    piece.map.end = piece.map.start + (end - start);
    piece.map.flags &= ~TBD_REGION_HEAP;
    tbd_map_remove(call->thread, start, end);
    tbd_map_add_unknown(call->thread, &piece.map, piece.path);
}

static void move_pieces(struct tbd_call *call)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    uint64_t end = call->sys.args[0] + tbd_map_page_up(call->sys.args[1]);

    for (uint64_t at = call->sys.args[0]; at < end;) {
        size_t i = tbd_regions_lower(regions, at);
        struct tbd_mapped_region piece;

        if (i == regions->count || regions->table[i].map.start >= end)
            return;
        piece = regions->table[i];
        at = piece.map.start > at ? piece.map.start : at;
        move_piece(call, piece, at, piece.map.end < end ? piece.map.end : end);
        at = piece.map.end;
    }
}

/* Memory that grew where it was keeps its contents; NULL: not so, or not only. */
static struct tbd_mapped_region *grown_in_place(const struct tbd_call *call, uint64_t old_end,
                                                uint64_t end)
{
    struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, call->sys.args[0]);

    return region && call->sys.args[1] && (uint64_t)call->result == call->sys.args[0] &&
                   region->map.end == old_end && end >= old_end && !region->map.inode &&
                   !(region->map.map_flags & MAP_SHARED) && !(region->map.flags & TBD_REGION_HEAP)
               ? region
               : NULL;
}

void tbd_call_mremap(struct tbd_call *call)
{
    const uint64_t *args = call->sys.args;
    uint64_t old_end = args[0] + tbd_map_page_up(args[1]);
    uint64_t bytes = tbd_map_page_up(args[2]);
    struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, args[0]);
    struct tbd_mapped_region moved = { .path = "" };
    bool keeps_old = args[3] & MREMAP_DONTUNMAP;
    bool is_userfault = tbd_userfault_move(args[0]);

    if (!args[1])
        tbd_shared_double(args[0]);
    if (region)
        moved = *region;
    tbd_map_check(call, args[0], args[1]);
    if (args[3] & MREMAP_FIXED) {
        tbd_map_check(call, args[4], args[2]);
        tbd_map_capture(call->thread, args[4], args[4] + bytes);
    }
    tbd_map_capture(call->thread, args[0], old_end);
    perform_as(call, &call->sys);
    if (args[3] & MREMAP_FIXED)
        note_target(call, args[4], bytes);
    tbd_call_finish(call);
    if (call->flags & TBD_SYSCALL_PARTIAL)
        tbd_map_remove(call->thread, args[4], args[4] + bytes);
    if (failed(call))
        return;
    if (is_move(call) && !is_userfault) {
        move_pieces(call);
        return;
    }
    region = is_userfault ? NULL : grown_in_place(call, old_end, args[0] + bytes);
    if (region) {
        extend(call, region, args[0] + bytes);
        return;
    }
    if (moved.map.inode)
        moved.map.file_offset += args[0] - moved.map.start;
    moved.map.start = (uint64_t)call->result;
    moved.map.end = moved.map.start + bytes;
    moved.map.flags &= ~TBD_REGION_HEAP;
    if (keeps_old)
        tbd_map_drop_contents(call->thread, args[0], old_end);
    else if (args[1])
        tbd_map_remove(call->thread, args[0], old_end);
    tbd_map_add_unknown(call->thread, &moved.map, moved.path);
    if (is_userfault)
        tbd_userfault_moved(args[0], moved.map.start, moved.map.end);
}

/* The kernel frees no pages of files, and stops at the first. */
static uint64_t free_limit(uint64_t start, uint64_t end)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;

        if (map->inode || map->map_flags & MAP_SHARED)
            return map->start > start ? map->start : start;
    }
    return end;
}

/* MADV_FREE may drop pages at any later time, or never.  The engine makes it MADV_DONTNEED, which
 * drops them at once: the program must expect that too. */
void tbd_call_madvise(struct tbd_call *call)
{
    uint64_t start = call->sys.args[0];
    uint64_t end = start + tbd_map_page_up(call->sys.args[1]);
    uint64_t advice = call->sys.args[2];
    bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
                 advice == MADV_DONTNEED_LOCKED;
    uint64_t limit = end;
    struct tbd_sys_call sys = call->sys;

    if (tbd_map_refuses_advice(call, advice))
        return;
    if (!drops) {
        perform(call);
        if (advice == MADV_WIPEONFORK && !failed(call))
            tbd_effects_note_wiped(start, end);
        return;
    }
    tbd_map_check(call, start, call->sys.args[1]);
    tbd_map_capture(call->thread, start, end);
    if (advice == MADV_FREE) {
        sys.args[2] = MADV_DONTNEED;
        limit = free_limit(start, end);
        sys.args[1] = limit < end ? limit - start : sys.args[1];
    }
    perform_as(call, &sys);
    if (limit < end && (!failed(call) || call->result == -ENOMEM)) {
        note_part(call, limit - start);
        call->result = -EINVAL;
    } else if (was_refused(call) && !(start & (TBD_PAGE_SIZE - 1)) && start < end) {
        note_part(call, tbd_failed_advise(start, limit, sys.args[2]));
    }
    tbd_call_finish(call);
    if (call->flags & TBD_SYSCALL_PARTIAL)
        end = start + call->sys.args[5];
    else if (failed(call))
        return;
    tbd_map_drop_contents(call->thread, start, end);
}

/* ---- others ---- */

void tbd_call_mprotect(struct tbd_call *call)
{
    protect_memory(call);
}

void tbd_call_pkey_mprotect(struct tbd_call *call)
{
    protect_memory(call);
}

void tbd_call_mseal(struct tbd_call *call)
{
    perform(call);
}
