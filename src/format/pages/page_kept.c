// SPDX-License-Identifier: MIT
/* page_kept.c - contents of pages at the ends of windows that were read recently
 *
 * Windows are mostly read in order, and the base of a difference is the page at the end of the
 * window before: so one step suffices, in place of one for each difference since the page was
 * stored whole.  Nothing is kept until a trace shows that it has differences. */
#include "format/pages/pages_private.h"

#include <stdlib.h>
#include <string.h>

/* 32 MB; pages that are not used take no memory. */
#define KEPT_PAGES 8192u

struct tbd_page_kept {
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

const uint8_t *tbd_page_kept_locked(const struct tbd_trace_pages *pages, uint32_t window,
                                    uint64_t address, uint32_t *out_depth)
{
    const struct tbd_page_kept *kept = pages ? pages->kept : NULL;
    size_t i = place_of(address);

    if (!kept || !kept->of[i].is_used || kept->of[i].window != window ||
        kept->of[i].address != address)
        return NULL;
    *out_depth = kept->of[i].depth;
    return kept->pages[i];
}

void tbd_page_keep_locked(struct tbd_trace_pages *pages, uint32_t window, uint64_t address,
                          uint32_t depth, const uint8_t *contents)
{
    size_t i = place_of(address);

    if (pages && !pages->kept && depth)
        pages->kept = calloc(1, sizeof(*pages->kept));
    if (!pages || !pages->kept)
        return;
    pages->kept->of[i].address = address;
    pages->kept->of[i].window = window;
    pages->kept->of[i].depth = depth;
    pages->kept->of[i].is_used = true;
    memcpy(pages->kept->pages[i], contents, 4096);
}

void tbd_page_kept_forget(struct tbd_trace_pages *pages, uint32_t window)
{
    for (size_t i = 0; pages->kept && i < KEPT_PAGES; i++)
        if (pages->kept->of[i].window == window)
            pages->kept->of[i].is_used = false;
}
