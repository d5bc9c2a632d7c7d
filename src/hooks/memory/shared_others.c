// SPDX-License-Identifier: MIT
/* shared_others.c - finds writes of others to shared memory, and logs them as stores of others
 * (shared.h) */
#include "hooks/memory/shared_private.h"

#include "hooks/memory/safe_copy.h"

/* Adds one write for each part of a page, from its first difference to its last. */
static void add_difference(struct tbd_effects *effects, uint64_t address, const uint8_t *old,
                           const uint8_t *now, size_t bytes, uint32_t *others)
{
    size_t first = 0;
    size_t last = bytes;

    while (first < last && now[first] == old[first])
        first++;
    while (last > first && now[last - 1] == old[last - 1])
        last--;
    if (first == last)
        return;
    tbd_effects_add_known(effects, address + first, old + first, now + first, last - first);
    ++*others;
}

void tbd_shared_add_others(struct tbd_effects *effects, uint64_t address, const void *now,
                           size_t bytes, uint32_t *others)
{
    const uint8_t *read = now;

    for (size_t done = 0, part; done < bytes; done += part) {
        uint64_t at = address + done;
        uint64_t page = at & ~(TBD_PAGE_SIZE - 1);
        const uint8_t *view = tbd_shared_is_page(page) ? tbd_shared_view(page) : NULL;

        part = tbd_shared_page_part(at, bytes - done);
        if (view)
            add_difference(effects, at, view + (at - page), read + done, part, others);
    }
}

bool tbd_shared_load(struct tbd_effects *effects, void *out, uint64_t address, size_t bytes,
                     uint32_t *others)
{
    if (!tbd_load_from_program(out, address, bytes))
        return false;
    tbd_shared_add_others(effects, address, out, bytes, others);
    return true;
}
