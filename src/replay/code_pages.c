// SPDX-License-Identifier: MIT
/* code_pages.c - the code pages that a warm replay process has
 *
 * Translations are kept from window to window; they are valid as long as the next window has the
 * same code bytes.  So each executable page given to the process is noted with a hash of its
 * contents.  Translations of code in writable pages compare the bytes themselves.  Open addressing,
 * grows at half full, never shrinks. */
#include "replay/worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xxhash.h>

static struct tbd_code_page *slot_of(struct tbd_code_page *table, size_t capacity, uint64_t address)
{
    size_t at = (size_t)((address >> TBD_PAGE_SHIFT) * 0x9e3779b97f4a7c15ull >> 20);

    for (;; at++) {
        struct tbd_code_page *slot = &table[at & (capacity - 1)];

        if (slot->address == address || !slot->address)
            return slot;
    }
}

static bool grow(struct tbd_worker *worker)
{
    size_t capacity = worker->page_capacity ? worker->page_capacity * 2 : 1024;
    struct tbd_code_page *table = calloc(capacity, sizeof(*table));

    if (!table)
        return false;
    for (size_t i = 0; i < worker->page_capacity; i++)
        if (worker->pages[i].address)
            *slot_of(table, capacity, worker->pages[i].address) = worker->pages[i];
    free(worker->pages);
    worker->pages = table;
    worker->page_capacity = capacity;
    return true;
}

bool tbd_worker_code_changes(const struct tbd_region *region)
{
    return region && region->prot & PROT_EXEC &&
           (region->prot & PROT_WRITE || region->map_flags & MAP_SHARED);
}

bool tbd_worker_note_code(struct tbd_worker *worker, uint64_t address, const uint8_t *contents,
                          bool is_whole)
{
    struct tbd_code_page *slot;

    if (worker->page_count * 2 >= worker->page_capacity && !grow(worker))
        return false;
    slot = slot_of(worker->pages, worker->page_capacity, address);
    if (!slot->address)
        worker->page_count++;
    slot->address = address;
    slot->hash = XXH3_64bits(contents, TBD_PAGE_SIZE);
    slot->is_whole = is_whole;
    slot->changes = tbd_worker_code_changes(tbd_worker_region(worker, address));
    return true;
}

void tbd_worker_forget_code(struct tbd_worker *worker)
{
    if (worker->page_count)
        memset(worker->pages, 0, worker->page_capacity * sizeof(*worker->pages));
    worker->page_count = 0;
}

const struct tbd_code_page *tbd_worker_code_page(const struct tbd_worker *worker, uint64_t address)
{
    const struct tbd_code_page *slot =
        worker->page_count ? slot_of(worker->pages, worker->page_capacity, address) : NULL;

    return slot && slot->address ? slot : NULL;
}
