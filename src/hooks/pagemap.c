// SPDX-License-Identifier: MIT
/* pagemap.c - see pagemap.h
 *
 * 64 bits a page (Documentation/admin-guide/mm/pagemap.rst): 63 present, 62 swapped, 61 file page or shared
 * anonymous memory.  Frame numbers are hidden from unprivileged readers, flags are not. */
#include "hooks/pagemap.h"

#include "base/layout.h"
#include "base/sys.h"

#define BATCH 512u
#define O_RDONLY_CLOEXEC 0x80000
#define BIT_PRESENT (3ull << 62)
#define BIT_FILE (1ull << 61)

void tbd_pagemap_open(struct tbd_pagemap *map)
{
    map->fd = (int)tbd_sys_open("/proc/self/pagemap", O_RDONLY_CLOEXEC, 0);
}

void tbd_pagemap_close(struct tbd_pagemap *map)
{
    if (map->fd >= 0)
        tbd_sys_close(map->fd);
}

static bool read_batch(const struct tbd_pagemap *map, uint64_t page, size_t count, uint64_t *out)
{
    return map->fd >= 0 && tbd_sys_pread(map->fd, out, count * 8, page * 8) == (long)(count * 8);
}

void tbd_pagemap_visit_private(const struct tbd_pagemap *map, uint64_t start, uint64_t end,
                               tbd_page_visitor visit, void *context)
{
    uint64_t page = start >> TBD_PAGE_SHIFT;
    uint64_t last = end >> TBD_PAGE_SHIFT;
    uint64_t entries[BATCH];

    while (page < last) {
        size_t count = last - page < BATCH ? (size_t)(last - page) : BATCH;
        bool known = read_batch(map, page, count, entries);

        for (size_t i = 0; i < count; i++)
            if (!known || ((entries[i] & BIT_PRESENT) && !(entries[i] & BIT_FILE)))
                visit(context, (page + i) << TBD_PAGE_SHIFT);
        page += count;
    }
}
