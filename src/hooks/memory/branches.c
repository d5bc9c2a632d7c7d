// SPDX-License-Identifier: MIT
/* branches.c - see branches.h */
#include "hooks/memory/branches.h"

#include "base/layout.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"

#define PIECE_BYTES (64ull << 10) /* made accessible at a time */

static bool is_reserved;

bool tbd_branches_init(void)
{
    if (tbd_sys_mmap(TBD_BRANCHES_BASE, TBD_BRANCHES_BYTES, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
                     0) != (long)TBD_BRANCHES_BASE)
        return false;
    tbd_sys_madvise(TBD_BRANCHES_BASE, TBD_BRANCHES_BYTES, MADV_DONTDUMP);
    is_reserved = true;
    return true;
}

bool tbd_branches_overlap(uint64_t start, uint64_t end)
{
    return is_reserved && start < TBD_BRANCHES_BASE + TBD_BRANCHES_BYTES && TBD_BRANCHES_BASE < end;
}

static bool make_accessible(uint64_t address)
{
    uint64_t piece = address & ~(PIECE_BYTES - 1);

    return !tbd_sys_failed(tbd_sys_mprotect(piece, PIECE_BYTES, PROT_READ | PROT_WRITE));
}

bool tbd_branches_fault_sigsafe(uint64_t address)
{
    return tbd_branches_overlap(address, address + 1) && make_accessible(address);
}

void tbd_branches_put_down_sigsafe(uint64_t rsp, uint64_t value)
{
    uint64_t home = TBD_BRANCHES_BASE + (rsp & (TBD_BRANCHES_BYTES - 1));

    if (is_reserved && make_accessible(home) && make_accessible(home + 7))
        memcpy((void *)home, &value, sizeof(value));
}
