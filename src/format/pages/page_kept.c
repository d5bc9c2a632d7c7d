// SPDX-License-Identifier: MIT
/* page_kept.c - contents of pages at the ends of windows that were read lately
 *
 * Windows are mostly read one after the other, and what a difference is to is what the window before ended with: so
 * one step is enough in place of one for each difference since the page was stored whole.  Nothing is kept until a
 * trace shows that it has differences. */
#include "format/pages/pages_private.h"

#include <stdlib.h>
#include <string.h>

/* 32 MB, of which only what is used is ever touched. */
#define KEPT_PAGES 8192u

struct page_kept {
    struct {
        uint64_t address;
        uint32_t window;
        uint32_t depth;
        bool is_used;
    } of[KEPT_PAGES];
    uint8_t pages[KEPT_PAGES][4096];
};

static size_t place_of(uint64_t address)
{
    return (address / 4096) % KEPT_PAGES;
}

const uint8_t *tbd_page_kept_locked(const struct tbd_trace *trace, uint32_t window,
                                    uint64_t address, uint32_t *out_depth)
{
    const struct page_kept *kept = trace->kept;
    size_t i = place_of(address);

    if (!kept || !kept->of[i].is_used || kept->of[i].window != window ||
        kept->of[i].address != address)
        return NULL;
    *out_depth = kept->of[i].depth;
    return kept->pages[i];
}

void tbd_page_keep_locked(struct tbd_trace *trace, uint32_t window, uint64_t address,
                          uint32_t depth, const uint8_t *contents)
{
    size_t i = place_of(address);

    if (!trace->kept && depth)
        trace->kept = calloc(1, sizeof(*trace->kept));
    if (!trace->kept)
        return;
    trace->kept->of[i].address = address;
    trace->kept->of[i].window = window;
    trace->kept->of[i].depth = depth;
    trace->kept->of[i].is_used = true;
    memcpy(trace->kept->pages[i], contents, 4096);
}

void tbd_page_kept_forget_locked(struct tbd_trace *trace, uint32_t window)
{
    for (size_t i = 0; trace->kept && i < KEPT_PAGES; i++)
        if (trace->kept->of[i].window == window)
            trace->kept->of[i].is_used = false;
}
