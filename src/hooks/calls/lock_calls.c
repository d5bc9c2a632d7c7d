// SPDX-License-Identifier: MIT
/* lock_calls.c - mlockall and munlockall for the program's memory alone
 *
 * The kernel would lock the engine's gigabytes too, or refuse because of them.  So the engine locks the
 * program's mappings one by one, and new ones as they are made.  Context: APP; tbd_lock_forget()
 * FORK_CHILD. */
#include "hooks/calls/lock_calls.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/capability.h"
#include "hooks/memory/maps.h"
#include "hooks/memory/program_memory.h"

/* MCL_FUTURE, perhaps with MCL_ONFAULT, for mappings that are made; 0: none is locked. */
static uint64_t future;

struct locking {
    long (*act)(uint64_t start, uint64_t bytes);
    uint64_t bytes; /* of the program's mappings */
};

static long lock(uint64_t start, uint64_t bytes)
{
    return tbd_sys3(__NR_mlock2, start, bytes, 0);
}

static long lock_on_fault(uint64_t start, uint64_t bytes)
{
    return tbd_sys3(__NR_mlock2, start, bytes, MLOCK_ONFAULT);
}

static long unlock(uint64_t start, uint64_t bytes)
{
    return tbd_sys3(__NR_munlock, start, bytes, 0);
}

/* As the kernel does, it goes on after a mapping that cannot be locked. */
static bool visit(void *context, const struct tbd_msg_region *map, const char *path)
{
    struct locking *locking = context;
    const struct tbd_regions *regions = &tbd_memory.regions;

    (void)path;
    for (size_t i = tbd_regions_lower(regions, map->start);
         i < regions->count && regions->table[i].map.start < map->end; i++) {
        const struct tbd_msg_region *ours = &regions->table[i].map;
        uint64_t start = map->start > ours->start ? map->start : ours->start;
        uint64_t end = map->end < ours->end ? map->end : ours->end;

        locking->bytes += end - start;
        if (locking->act)
            locking->act(start, end - start);
    }
    return true;
}

static uint64_t for_each(long (*act)(uint64_t start, uint64_t bytes))
{
    struct locking locking = { act, 0 };

    tbd_maps_read(visit, &locking);
    return locking.bytes;
}

static uint64_t limit(void)
{
    struct rlimit limit = { 0 };

    tbd_sys3(__NR_getrlimit, RLIMIT_MEMLOCK, tbd_sys_pointer(&limit), 0);
    return limit.rlim_cur;
}

/* In the kernel's order (mm/mlock.c). */
static int64_t refusal(uint32_t flags)
{
    bool is_free = tbd_has_capability(CAP_IPC_LOCK);

    if (!flags || flags & ~(uint32_t)(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) ||
        flags == MCL_ONFAULT)
        return -EINVAL;
    if (!is_free && !limit())
        return -EPERM;
    if (flags & MCL_CURRENT && !is_free && for_each(NULL) > limit())
        return -ENOMEM;
    return 0;
}

void tbd_call_mlockall(struct tbd_call *call)
{
    uint32_t flags = (uint32_t)call->sys.args[0];

    call->result = refusal(flags);
    if (call->result == 0) {
        future = flags & MCL_FUTURE ? flags & (MCL_FUTURE | MCL_ONFAULT) : 0;
        if (flags & MCL_CURRENT)
            for_each(flags & MCL_ONFAULT ? lock_on_fault : lock);
    }
    tbd_call_finish(call);
}

void tbd_call_munlockall(struct tbd_call *call)
{
    future = 0;
    for_each(unlock);
    call->result = 0;
    tbd_call_finish(call);
}

uint64_t tbd_lock_map_flags(void)
{
    return future && !(future & MCL_ONFAULT) ? MAP_LOCKED : 0;
}

void tbd_lock_mapped(uint64_t start, uint64_t bytes)
{
    if (future && bytes)
        (future & MCL_ONFAULT ? lock_on_fault : lock)(start, bytes);
}

void tbd_lock_forget(void)
{
    future = 0;
}
