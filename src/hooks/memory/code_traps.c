// SPDX-License-Identifier: MIT
/* code_traps.c - see code_traps.h
 *
 * Sorted by address: a trap is found by halving. */
#include "hooks/memory/code_traps.h"

#include "base/layout.h"
#include "base/string.h"
#include "base/sys.h"

#define MOST_TRAPS 4096u
#define INT3       0xccu

struct trap {
    uint64_t address;
    uint32_t prot;
    uint8_t byte;
};

static struct trap traps[MOST_TRAPS];
static size_t count;

/* The first trap at `address` or after it. */
static size_t lower(uint64_t address)
{
    size_t from = 0, to = count;

    while (from < to) {
        size_t middle = (from + to) / 2;

        if (traps[middle].address < address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool put_byte(uint64_t address, uint32_t prot, uint8_t byte)
{
    uint64_t page = address & ~(TBD_PAGE_SIZE - 1);

    if (tbd_sys_failed(tbd_sys_mprotect(page, TBD_PAGE_SIZE, TBD_PROT_RW)))
        return false;
    *(volatile uint8_t *)address = byte;
    return !tbd_sys_failed(tbd_sys_mprotect(page, TBD_PAGE_SIZE, (int)prot));
}

bool tbd_code_traps_set(uint64_t address, uint32_t prot)
{
    size_t at = lower(address);
    struct trap trap = { address, prot, *(const uint8_t *)address };

    if (at < count && traps[at].address == address)
        return true;
    if (count == MOST_TRAPS || !put_byte(address, prot, INT3))
        return false;
    memmove(&traps[at + 1], &traps[at], (count - at) * sizeof(*traps));
    traps[at] = trap;
    count++;
    return true;
}

void tbd_code_traps_remove(uint64_t address)
{
    size_t at = lower(address);

    if (at == count || traps[at].address != address)
        return;
    put_byte(address, traps[at].prot, traps[at].byte);
    count--;
    memmove(&traps[at], &traps[at + 1], (count - at) * sizeof(*traps));
}

bool tbd_code_traps_has_sigsafe(uint64_t address)
{
    size_t at = lower(address);

    return at < count && traps[at].address == address;
}

void tbd_code_traps_hide(uint8_t *copy, uint64_t address, size_t bytes)
{
    for (size_t at = lower(address); at < count && traps[at].address < address + bytes; at++)
        copy[traps[at].address - address] = traps[at].byte;
}

void tbd_code_traps_forget(uint64_t start, uint64_t end)
{
    size_t from = lower(start), to = lower(end);

    memmove(&traps[from], &traps[to], (count - to) * sizeof(*traps));
    count -= to - from;
}

void tbd_code_traps_lift(bool lifts)
{
    for (size_t i = 0; i < count; i++)
        put_byte(traps[i].address, traps[i].prot, lifts ? traps[i].byte : INT3);
}

void tbd_code_traps_remove_all(void)
{
    tbd_code_traps_lift(true);
    count = 0;
}
