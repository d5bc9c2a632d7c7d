// SPDX-License-Identifier: MIT
/* remap_calls.c - calls that change mappings of which their arguments do not tell enough for a replay:
 * remap_file_pages, and process_madvise for the process itself
 *
 * The changes are messages of their own (TBD_MSG_MAPPED) before the call's.  Context: APP. */
#include "base/fmt.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/failed_maps.h"
#include "hooks/calls/map_changes.h"
#include "hooks/memory/proc.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/recording.h"

/* Before a call of which nobody knows yet what it will do. */
static void capture(struct tbd_call *call, uint64_t start, uint64_t bytes)
{
    uint64_t end = start + tbd_map_page_up(bytes);

    if (start & (TBD_PAGE_SIZE - 1) || bytes > TBD_USER_END || start >= end || end > TBD_USER_END)
        return;
    tbd_map_check(call, start, bytes);
    tbd_map_capture(call->thread, start, end);
    tbd_map_tell(call->thread, start, end, 0, TBD_MAPPED_SENT);
}

/* ---- remap_file_pages ---- */

/* The kernel maps that part of the same file there, shared (mm/mmap.c). */
void tbd_call_remap_file_pages(struct tbd_call *call)
{
    uint64_t start = call->sys.args[0] & ~(TBD_PAGE_SIZE - 1);
    uint64_t end = start + (call->sys.args[1] & ~(TBD_PAGE_SIZE - 1));
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, start);
    struct tbd_mapped_region moved = { .path = "" };

    if (region)
        moved = *region;
    capture(call, start, end - start);
    call->result = tbd_call_perform(&call->sys);
    if (call->result == 0 && region) {
        moved.map.start = start;
        moved.map.end = end;
        moved.map.file_offset = call->sys.args[3] << TBD_PAGE_SHIFT;
        tbd_map_tell(call->thread, start, end, moved.map.prot, TBD_MAPPED_SHARED);
        tbd_map_add(call->thread, &moved.map, moved.path);
    }
    tbd_call_finish(call);
}

/* ---- process_madvise ---- */

#define MOST_RANGES                                                                                \
    64u /* more at once are made natively, and the trace says that contents are missing */

struct ranges {
    struct iovec at[MOST_RANGES];
    uint64_t count;
};

static bool find_own(void *found, char *line)
{
    char own[32];

    tbd_fmt(own, sizeof(own), "Pid:\t%u", tbd_recording.pid);
    if (strcmp(line, own) == 0)
        *(bool *)found = true;
    return !*(bool *)found;
}

/* A descriptor of a process says in /proc whose it is; negative ones mean the caller (PIDFD_SELF). */
static bool is_own(uint64_t fd)
{
    char path[48];
    bool found = false;

    if ((int)fd < 0)
        return true;
    tbd_fmt(path, sizeof(path), "/proc/thread-self/fdinfo/%u", (unsigned)fd);
    tbd_proc_lines(path, find_own, &found);
    return found;
}

static bool drops(uint64_t advice)
{
    return advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED || advice == MADV_FREE ||
           advice == MADV_REMOVE;
}

static bool read_ranges(const struct tbd_call *call, struct ranges *out)
{
    out->count = call->sys.args[2];
    return out->count <= MOST_RANGES &&
           tbd_copy_from_program(out->at, call->sys.args[1], out->count * sizeof(out->at[0]));
}

/* Each mapping of the range is new for a replay. */
static void drop(struct tbd_call *call, uint64_t start, uint64_t end)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;
        uint64_t from = map->start > start ? map->start : start;
        uint64_t to = map->end < end ? map->end : end;
        bool is_shared = map->map_flags & MAP_SHARED;

        tbd_map_tell(call->thread, from, to, map->prot,
                     (is_shared ? TBD_MAPPED_SHARED : 0u) |
                         (!is_shared && !map->inode ? TBD_MAPPED_ZERO : 0u));
    }
    tbd_map_drop_contents(call->thread, start, end);
}

/* The result is the number of bytes for which it worked; it may also have worked for a part of the next range. */
static void drop_done(struct tbd_call *call, const struct ranges *ranges, uint64_t advice)
{
    uint64_t left = call->result > 0 ? (uint64_t)call->result : 0;

    for (uint64_t i = 0; i < ranges->count; i++) {
        uint64_t start = tbd_sys_pointer(ranges->at[i].iov_base);
        uint64_t bytes = tbd_map_page_up(ranges->at[i].iov_len);
        uint64_t done;

        if (start & (TBD_PAGE_SIZE - 1) || bytes > TBD_USER_END || start + bytes > TBD_USER_END)
            return;
        done = bytes <= left ? bytes : tbd_failed_advise(start, start + bytes, advice);
        drop(call, start, start + done);
        if (bytes > left)
            return;
        left -= bytes;
    }
}

/* Pages that may be freed later are dropped at once, as in tbd_call_madvise(). */
void tbd_call_process_madvise(struct tbd_call *call)
{
    struct ranges ranges;
    struct tbd_sys_call sys = call->sys;

    if (tbd_map_refuses_advice(call, sys.args[3]))
        return;
    if (!drops(sys.args[3]) || !is_own(sys.args[0]) || !read_ranges(call, &ranges)) {
        tbd_call_plain(call);
        return;
    }
    for (uint64_t i = 0; i < ranges.count; i++)
        capture(call, tbd_sys_pointer(ranges.at[i].iov_base), ranges.at[i].iov_len);
    if (sys.args[3] == MADV_FREE)
        sys.args[3] = MADV_DONTNEED;
    call->result = tbd_call_perform(&sys);
    if (call->result > 0 || call->result == -ENOMEM)
        drop_done(call, &ranges, sys.args[3]);
    tbd_call_finish(call);
}
