// SPDX-License-Identifier: MIT
/* own_memory.c - see own_memory.h
 *
 * Until a program has opened such a file for writing, no call pays for this; from then on every
 * write asks what its descriptor is.  A descriptor that came in another way (from another process)
 * is not noticed. */
#include "hooks/memory/own_memory.h"

#include "base/fmt.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/proc.h"
#include "hooks/memory/safe_copy.h"

static bool was_opened;

/* "/proc/PID/mem" or "/proc/PID/task/TID/mem" */
static bool is_own_memory(uint64_t fd)
{
    char path[64];
    char start[32];
    size_t length = tbd_proc_path((int)fd, path, sizeof(path));
    size_t head = tbd_fmt(start, sizeof(start), "/proc/%u/", tbd_runtime.pid);

    return length >= head + 3 && length < sizeof(path) - 1 && tbd_starts_with(path, start) &&
           !memcmp(path + length - 4, "/mem", 4);
}

static bool is_open_for_writing(const struct tbd_sys_call *sys)
{
    switch (sys->number) {
    case __NR_open: return sys->args[1] & O_ACCMODE;
    case __NR_openat: return sys->args[2] & O_ACCMODE;
    case __NR_openat2: return true;
    default: return false;
    }
}

void tbd_own_memory_note(const struct tbd_call *call)
{
    if (!was_opened && call->result >= 0 && is_open_for_writing(&call->sys))
        was_opened = is_own_memory((uint64_t)call->result);
}

static uint64_t bytes_of(uint64_t vector, uint64_t count)
{
    uint64_t total = 0;
    uint64_t parts[2];

    for (uint64_t i = 0; i < count && i < UIO_MAXIOV; i++)
        if (tbd_copy_from_program(parts, vector + i * sizeof(parts), sizeof(parts)))
            total += parts[1];
    return total;
}

/* False: not a call that writes a file. */
static bool range_of(const struct tbd_sys_call *sys, struct tbd_sys_range *out)
{
    bool is_vector = sys->number != __NR_write && sys->number != __NR_pwrite64;
    bool is_at = sys->number != __NR_write && sys->number != __NR_writev;

    switch (sys->number) {
    case __NR_write:
    case __NR_pwrite64:
    case __NR_writev:
    case __NR_pwritev:
    case __NR_pwritev2: break;
    default: return false;
    }
    if (is_at && !(sys->number == __NR_pwritev2 && (int64_t)sys->args[3] == -1))
        out->address = sys->args[3];
    else
        out->address = (uint64_t)tbd_sys3(__NR_lseek, sys->args[0], 0, SEEK_CUR);
    out->bytes = is_vector ? bytes_of(sys->args[1], sys->args[2]) : sys->args[2];
    return true;
}

/* Nothing but data that the program may write anyway: translated code stays right, and replay
 * can do the same. */
static bool is_plain_data(const struct tbd_sys_range *range)
{
    const struct tbd_regions *regions = &tbd_runtime.regions;
    uint64_t end = range->address + range->bytes;

    if (end < range->address || (range->address < TBD_ENGINE_END && end > TBD_ENGINE_BASE))
        return false;
    for (size_t i = tbd_regions_lower(regions, range->address);
         i < regions->count && regions->table[i].map.start < end; i++)
        if ((regions->table[i].map.prot & (PROT_WRITE | PROT_EXEC)) != PROT_WRITE)
            return false;
    return true;
}

bool tbd_own_memory_write(struct tbd_call *call)
{
    struct tbd_sys_range range;

    if (!was_opened || !range_of(&call->sys, &range) || !is_own_memory(call->sys.args[0]))
        return false;
    if (!is_plain_data(&range))
        tbd_call_detach(call, "it writes its own code through /proc/self/mem");
    tbd_effects_watch(call->effects, &range, 1);
    call->result = tbd_call_perform(&call->sys);
    if (call->result > 0) {
        range.bytes = (uint64_t)call->result;
        tbd_effects_written(call->effects, &range, 1);
    }
    return true;
}
