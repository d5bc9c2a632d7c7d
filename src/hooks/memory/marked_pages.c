// SPDX-License-Identifier: MIT
/* marked_pages.c - see marked_pages.h */
#include "hooks/memory/marked_pages.h"

#include "base/layout.h"
#include "base/sys.h"
#include "hooks/memory/pagemap.h"
#include "hooks/memory/program_memory.h"

static uint64_t page_of(uint64_t address)
{
    return address & ~(TBD_PAGE_SIZE - 1);
}

/* The range crosses no multiple of TBD_TOUCH_SPAN, so its cells follow each other. */
static bool find_in_span(tbd_marked_cells find, uint64_t start, uint64_t end, struct tbd_range *out)
{
    uint64_t first = (start >> TBD_PAGE_SHIFT) * 2 & (TBD_TOUCH_BYTES - 1);
    uint64_t last = first + (end - start) / TBD_PAGE_SIZE * 2;
    uint64_t at, behind;
    struct tbd_range cells;

    if (!find(page_of(first), page_of(last + TBD_PAGE_SIZE - 1), &cells))
        return false;
    at = cells.start > first ? cells.start - first : 0;
    behind = (cells.end < last ? cells.end : last) - first;
    *out = (struct tbd_range){ start + at / 2 * TBD_PAGE_SIZE, start + behind / 2 * TBD_PAGE_SIZE };
    return true;
}

bool tbd_marked_find(tbd_marked_cells find, uint64_t start, uint64_t end, struct tbd_range *out)
{
    bool found = false;

    while (start < end && !found) {
        uint64_t span_end = (start | (TBD_TOUCH_SPAN - 1)) + 1;

        span_end = span_end < end ? span_end : end;
        found = find_in_span(find, start, span_end, out);
        start = span_end;
    }
    return found;
}

static bool find_existing(uint64_t start, uint64_t end, struct tbd_range *out)
{
    uint64_t touch = tbd_sys_pointer(tbd_memory.pages.touch);
    struct tbd_pagemap map;
    bool found;

    tbd_pagemap_open(&map);
    found = tbd_pagemap_next(&map, touch + start, touch + end, out);
    tbd_pagemap_close(&map);
    out->start -= touch;
    out->end -= touch;
    return found;
}

bool tbd_marked_next(uint64_t start, uint64_t end, struct tbd_range *out)
{
    return tbd_marked_find(find_existing, start, end, out);
}
