// SPDX-License-Identifier: MIT
/* own_memory.c - see own_memory.h
 *
 * Until the program opens such a file for writing, calls have no extra cost; after that every write
 * checks its descriptor.  A descriptor that came in another way (from another process) is not
 * noticed. */
#include "hooks/calls/own_memory.h"

#include "base/fmt.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/call_run.h"
#include "hooks/memory/effects.h"
#include "hooks/memory/proc.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/recording.h"

#include "hooks/table/sys_table.h"

static bool was_opened;

/* "/proc/PID/mem" or "/proc/PID/task/TID/mem" */
static bool is_own_memory(uint64_t fd)
{
    char path[64];
    char start[32];
    size_t length = tbd_proc_path((int)fd, path, sizeof(path));
    size_t head = tbd_fmt(start, sizeof(start), "/proc/%u/", tbd_recording.pid);

    return length >= head + 3 && length < sizeof(path) - 1 && tbd_starts_with(path, start) &&
           !memcmp(path + length - 4, "/mem", 4);
}

/* The table's row says where the flags are: in an argument, in a structure, or nowhere (creat). */
static bool is_open_for_writing(const struct tbd_sys_call *sys)
{
    const struct tbd_sys_row *row = tbd_sys_row(sys->number);

    for (unsigned i = 0; i < 6; i++)
        if (row->args[i].set == TBD_SET_OPEN)
            return sys->args[i] & O_ACCMODE;
    return true;
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

/* The range that the call writes: at its fourth argument, if it has one, or at the descriptor's
 * position. */
static struct tbd_sys_range range_of(const struct tbd_sys_call *sys)
{
    const struct tbd_sys_arg *from = &tbd_sys_row(sys->number)->args[1];
    bool is_at = tbd_syscall_arg_count(sys->number) > 3 && (int64_t)sys->args[3] != -1;
    struct tbd_sys_range range = { sys->args[3], sys->args[from->length] };

    if (!is_at)
        range.address = (uint64_t)tbd_sys3(__NR_lseek, sys->args[0], 0, SEEK_CUR);
    if (from->show == TBD_SHOW_IOVEC)
        range.bytes = bytes_of(sys->args[1], range.bytes);
    return range;
}

/* Is the range only data that the program may write anyway?  Then translated code stays valid, and
 * replay can write the same bytes. */
static bool is_plain_data(const struct tbd_sys_range *range)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
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

    if (!was_opened || !is_own_memory(call->sys.args[0]))
        return false;
    range = range_of(&call->sys);
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
