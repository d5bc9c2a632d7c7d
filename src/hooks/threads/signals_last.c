// SPDX-License-Identifier: MIT
/* signals_last.c - the kernel remembers a thread's last fault and shows it in every signal frame
 *
 * The engine's own faults (guard pages, page marks) are remembered too.  While a program is
 * recorded, the engine builds its frames from the program's own last fault (signals_deliver.c).
 * Before the program goes on natively, its last fault is raised once more, at the same address and
 * for the same reason, and caught.  If the program had no fault, the engine raises two that leave
 * all values zero: a page fault at address 0, then a division by zero (trap 0).  Memory that has
 * become accessible is made inaccessible for a moment, which is possible only in a program with one
 * thread.  Not done where somebody fills missing pages: the access would wait for that.  Context:
 * APP, before the program's handlers are restored. */
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

/* The protection with which the access faults; `now` if it faults anyway.  No code is executed to
 * try whether it can be. */
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
