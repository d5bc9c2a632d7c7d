// SPDX-License-Identifier: MIT
/* signals_last.c - the kernel's memory of a thread's last fault, which it shows in every signal frame
 *
 * The engine's own faults (guard pages, page marks) are in it, too.  As long as a program is recorded its frames are made by
 * the engine, from the program's own last fault (signals_deliver.c).  Before the program goes on natively that fault is
 * raised once more, at the same address and for the same reason, and caught; without one, what leaves everything at zero: a
 * page fault at address 0, then a division by zero (trap 0).  Memory that is accessible by now is made inaccessible for a moment,
 * which only a program with one thread can do.  Not where somebody fills pages that are missing: the access would wait for
 * it.  Context: APP, before the handlers are the program's. */
#include "hooks/threads/signals_private.h"

#include "base/linux.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/userfault.h"
#include "hooks/threads/threads.h"

enum { ERROR_PRESENT = 1, ERROR_FETCH = 16 };

/* signals_x86_64.S, in its order */
enum fault_kind {
    RAISE_READ,
    RAISE_WRITE,
    RAISE_FETCH,
    RAISE_DIVIDE,
    RAISE_BREAK,
    RAISE_DEBUG,
    RAISE_INVALID,
    RAISE_PROTECTION
};
void tbd_raise(uint64_t what, uint64_t address);

static enum fault_kind access_of(uint64_t error)
{
    return error & ERROR_FETCH ? RAISE_FETCH : error & ERROR_WRITE ? RAISE_WRITE : RAISE_READ;
}

/* The protection that lets it fault; `now` if it does anyway.  Instructions are not run to see whether they can be. */
static uint32_t faulting(uint64_t error, uint32_t now)
{
    uint32_t needed = access_of(error) == RAISE_FETCH   ? PROT_EXEC
                      : access_of(error) == RAISE_WRITE ? PROT_WRITE
                                                        : PROT_READ;

    if (!(now & needed))
        return now;
    return needed != PROT_READ && (error & ERROR_PRESENT) ? PROT_READ : 0;
}

static void repeat_page_fault(uint64_t address, uint64_t error)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, address);
    uint64_t page = address & ~(TBD_PAGE_SIZE - 1);
    uint32_t now = region ? region->map.prot : 0, wanted = faulting(error, now);

    if (wanted != now &&
        (tbd_threads_are_many() || tbd_sys3(__NR_mprotect, page, TBD_PAGE_SIZE, wanted) != 0))
        return;
    tbd_raise(access_of(error), address);
    if (wanted != now)
        tbd_sys3(__NR_mprotect, page, TBD_PAGE_SIZE, now);
}

static void repeat_trap(uint64_t trap)
{
    switch (trap) {
    case TRAP_PAGE_FAULT: break;
    case 1: tbd_raise(RAISE_DEBUG, 0); break;
    case 3: tbd_raise(RAISE_BREAK, 0); break;
    case 6: tbd_raise(RAISE_INVALID, 0); break;
    case 13: tbd_raise(RAISE_PROTECTION, 0); break;
    default: tbd_raise(RAISE_DIVIDE, 0); break;
    }
}

void tbd_signals_repeat_last_fault(void)
{
    const struct tbd_signals *signals = tbd_signals_now();
    bool is_page_fault = signals->last_trap == TRAP_PAGE_FAULT;

    if (!tbd_signals_are_ours() || tbd_userfault_count)
        return;
    repeat_page_fault(signals->last_address, is_page_fault ? signals->last_error : 0);
    repeat_trap(signals->last_trap);
}
