// SPDX-License-Identifier: MIT
/* page_packer.c - see page_packer.h
 *
 * Invariants
 * PAGE_PACKER-1  The contents that are kept of a page are what a reader finds for the next window that modifies it: those at the end of
 *     the last window that has contents of the page, in its present mapping.  Where a window has other contents of it, or the page
 *     twice, none are kept. (not checked: test_page_packer does) */
#include "organizer/page_packer.h"

#include "format/files/codec.h"
#include "format/files/large_buffers.h"
#include "format/files/page_difference.h"
#include "organizer/page_slots.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES TBD_SLOT_BYTES
/* A page that is packed to more than this will hardly be smaller than the next ones of its kind: they get less search, until one
 * is smaller than that again. */
#define HARDLY_PACKED 3584u
/* When this many pages could have been differences, at least one in WORTH_PART must be one, or no contents are kept any more. */
#define TRIED_PAGES 1024u
#define WORTH_PART  32u

struct tbd_page_packer {
    struct tbd_page_slots slots; /* contents that are kept; none if that is not worth it */
    uint32_t *window_of;         /* owned: by slot, the window whose contents it has */
    uint32_t window;             /* how many windows were before */
    bool is_over;                /* the window: what comes next is of the next one */
    uint32_t tried,
        differences;         /* pages that had contents before; and those packed as differences */
    bool packs_hardly;       /* the last page did */
    struct tbd_buffer frame; /* owned: the page that is being packed */
    uint8_t difference[PAGE_BYTES];
};

void tbd_packed_pages_free(struct tbd_packed_pages *pages)
{
    tbd_large_buffer_give(pages->list);
    tbd_large_buffer_give(pages->bytes);
    *pages = (struct tbd_packed_pages){ 0 };
}

static void keep_nothing(struct tbd_page_packer *p)
{
    tbd_page_slots_free(&p->slots);
    free(p->window_of);
    p->window_of = NULL;
}

struct tbd_page_packer *tbd_page_packer_new(uint32_t pages)
{
    struct tbd_page_packer *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->window_of = calloc((size_t)pages + 1, sizeof(*p->window_of));
    if (p->window_of && tbd_page_slots_make(&p->slots, pages))
        return p;
    tbd_page_packer_free(p);
    return NULL;
}

void tbd_page_packer_free(struct tbd_page_packer *p)
{
    if (!p)
        return;
    keep_nothing(p);
    tbd_buffer_free(&p->frame);
    free(p);
}

/* ---- what is kept ---- */

/* Not before the next one begins: until then, tbd_page_packer_unpack() is asked. */
static void begin_window(struct tbd_page_packer *p)
{
    p->is_over = false;
    p->window++;
    if (p->window % TBD_PAGE_PACKER_GROUP == 0)
        tbd_page_slots_forget_all(&p->slots);
    if (p->tried >= TRIED_PAGES && p->differences < p->tried / WORTH_PART)
        keep_nothing(p);
    if (p->tried >= TRIED_PAGES)
        p->tried = p->differences = 0;
}

void tbd_page_packer_next(struct tbd_page_packer *p)
{
    p->is_over = true;
}

void tbd_page_packer_forget(struct tbd_page_packer *p, uint64_t start, uint64_t end)
{
    if (p->is_over)
        begin_window(p);
    tbd_page_slots_forget_range(&p->slots, start, end);
}

/* A slot for a page that has none; 0: there is none. */
static uint32_t new_slot(struct tbd_page_slots *slots, uint64_t page)
{
    uint32_t slot = tbd_page_slots_take(slots);

    if (!slot || tbd_page_slots_put(slots, page, slot))
        return slot;
    tbd_page_slots_give(slots, slot);
    return 0;
}

/* The page's contents before; then `bytes` are kept.  True: p->difference has what has changed, and that is less than the page. */
static bool renew(struct tbd_page_packer *p, uint64_t page, const uint8_t *bytes)
{
    uint32_t slot = tbd_page_slots_find(&p->slots, page);
    bool is_known = slot, is_less = false;

    if (is_known && p->window_of[slot] == p->window) { /* a second time */
        tbd_page_slots_forget(&p->slots, page);
        return false;
    }
    if (!is_known)
        slot = new_slot(&p->slots, page);
    if (!slot)
        return false;
    if (is_known) {
        tbd_page_difference(p->difference, bytes, p->slots.pages[slot - 1]);
        is_less = tbd_page_news(p->difference) < tbd_page_news(bytes);
        p->tried++;
        p->differences += is_less;
    }
    memcpy(p->slots.pages[slot - 1], bytes, PAGE_BYTES);
    p->window_of[slot] = p->window;
    return is_less;
}

/* ---- packing ---- */

static bool pack(struct tbd_page_packer *p, const uint8_t *bytes)
{
    p->frame.used = 0;
    if (p->packs_hardly)
        tbd_lz4_pack_faster(&p->frame, bytes, PAGE_BYTES);
    else
        tbd_lz4_pack_fast(&p->frame, bytes, PAGE_BYTES);
    p->packs_hardly = p->frame.used > HARDLY_PACKED;
    return !p->frame.failed;
}

static bool put_bytes(struct tbd_packed_pages *out, const struct tbd_buffer *frame)
{
    return out->used + frame->used <= UINT32_MAX &&
           tbd_large_array_append(&out->bytes, &out->used, &out->byte_capacity, 1, frame->bytes,
                                  frame->used);
}

bool tbd_page_packer_add(struct tbd_page_packer *p, struct tbd_packed_pages *out, uint64_t address,
                         const uint8_t *bytes, bool is_last)
{
    struct tbd_packed_page page = { address, (uint32_t)out->used, 0 };
    const uint8_t *what = bytes;

    if (p->is_over)
        begin_window(p);
    if (!is_last) {
        tbd_page_slots_forget(&p->slots, address / PAGE_BYTES);
    } else if (p->slots.pages && renew(p, address / PAGE_BYTES, bytes)) {
        what = p->difference;
        page.address |= TBD_PACKED_DIFFERENCE;
    }
    if (!tbd_large_array_grow(&out->list, out->count, &out->capacity, sizeof(*out->list)))
        return false;
    if (!tbd_page_is_zero(what)) {
        if (!pack(p, what) || !put_bytes(out, &p->frame))
            return false;
        page.length = (uint32_t)p->frame.used;
    }
    out->list[out->count++] = page;
    return true;
}

bool tbd_page_packer_unpack(const struct tbd_page_packer *p, const struct tbd_packed_pages *pages,
                            size_t index, uint8_t *out)
{
    const struct tbd_packed_page *page = &pages->list[index];
    uint32_t slot;

    if (page->address & TBD_PACKED_DIFFERENCE) {
        slot = tbd_page_slots_find(&p->slots, page->address / PAGE_BYTES);
        if (slot)
            memcpy(out, p->slots.pages[slot - 1], PAGE_BYTES);
        return slot;
    }
    if (page->length)
        return !tbd_unpack(pages->bytes + page->offset, page->length, out, PAGE_BYTES);
    memset(out, 0, PAGE_BYTES);
    return true;
}
