// SPDX-License-Identifier: MIT
/* page_slots.c - see page_slots.h
 *
 * Invariants
 * PAGE_SLOTS-1  No more slots are free than were ever taken, and no more were taken than there are. */
#include "organizer/page_slots.h"

#include "base/assert.h"

#include <stdlib.h>
#include <sys/mman.h>

/* The memory of 64 slots is made at once: a fault for each costs more than the page.  (Kernels before 5.14 cannot; only
 * time is lost.) */
#define READY_SLOTS 64u

bool tbd_page_slots_make(struct tbd_page_slots *out, uint32_t capacity)
{
    size_t count = (size_t)capacity + 1;

    *out = (struct tbd_page_slots){ .pages = aligned_alloc(TBD_SLOT_BYTES, count * TBD_SLOT_BYTES),
                                    .free = calloc(count, sizeof(*out->free)),
                                    .capacity = capacity };
    if (out->pages && out->free)
        return true;
    tbd_page_slots_free(out);
    return false;
}

void tbd_page_slots_free(struct tbd_page_slots *slots)
{
    free(slots->pages);
    free(slots->free);
    tbd_page_numbers_free(&slots->table);
    *slots = (struct tbd_page_slots){ 0 };
}

/* ---- what is lent ---- */

static uint32_t new_slot(struct tbd_page_slots *slots)
{
    uint32_t left = slots->capacity - slots->touched;

    if (slots->touched % READY_SLOTS == 0)
        (void)madvise(slots->pages[slots->touched],
                      (left < READY_SLOTS ? left : READY_SLOTS) * TBD_SLOT_BYTES,
                      MADV_POPULATE_WRITE);
    return ++slots->touched;
}

uint32_t tbd_page_slots_take(struct tbd_page_slots *slots)
{
    if (slots->free_count)
        return slots->free[--slots->free_count];
    return slots->touched < slots->capacity ? new_slot(slots) : 0;
}

void tbd_page_slots_give(struct tbd_page_slots *slots, uint32_t slot)
{
    if (slot)
        slots->free[slots->free_count++] = slot;
    TBD_INVARIANT("PAGE_SLOTS-1",
                  slots->free_count <= slots->touched && slots->touched <= slots->capacity);
}

/* ---- the table ---- */

uint32_t tbd_page_slots_find(const struct tbd_page_slots *slots, uint64_t page)
{
    const uint32_t *found = tbd_page_numbers_find(&slots->table, page);

    return found ? *found : 0;
}

bool tbd_page_slots_put(struct tbd_page_slots *slots, uint64_t page, uint32_t slot)
{
    return tbd_page_numbers_put(&slots->table, page, slot);
}

uint32_t tbd_page_slots_take_out(struct tbd_page_slots *slots, uint64_t page)
{
    return tbd_page_numbers_take(&slots->table, page);
}

void tbd_page_slots_forget(struct tbd_page_slots *slots, uint64_t page)
{
    tbd_page_slots_give(slots, tbd_page_slots_take_out(slots, page));
}

void tbd_page_slots_forget_range(struct tbd_page_slots *slots, uint64_t start, uint64_t end)
{
    uint64_t first = start / TBD_SLOT_BYTES;
    uint64_t after = end / TBD_SLOT_BYTES + (end % TBD_SLOT_BYTES != 0);

    if (after <= first)
        return;
    if (after - first <= slots->table.slots) {
        for (uint64_t page = first; page < after; page++)
            tbd_page_slots_forget(slots, page);
        return;
    }
    for (size_t i = 0; i < slots->table.slots; i++)
        if (slots->table.keys[i] > first && slots->table.keys[i] <= after)
            tbd_page_slots_forget(slots, slots->table.keys[i] - 1);
}

void tbd_page_slots_forget_all(struct tbd_page_slots *slots)
{
    for (size_t i = 0; i < slots->table.slots; i++)
        tbd_page_slots_give(slots, slots->table.keys[i] ? slots->table.numbers[i] : 0);
    tbd_page_numbers_clear(&slots->table);
}
