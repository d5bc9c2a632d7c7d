// SPDX-License-Identifier: MIT
/* shadow.c - counts per 8-byte word, by page */
#include "organizer/shadow.h"

#include <stdlib.h>
#include <string.h>

static size_t slot_for(const struct tbd_shadow *shadow, uint64_t page)
{
    size_t slot = (size_t)((page * 0x9e3779b97f4a7c15ull) >> 24) & (shadow->slot_count - 1);

    while (shadow->slots[slot] && shadow->pages[shadow->slots[slot] - 1]->page != page)
        slot = (slot + 1) & (shadow->slot_count - 1);
    return slot;
}

static bool grow(struct tbd_shadow *shadow)
{
    size_t slot_count = shadow->slot_count ? shadow->slot_count * 2 : 1024;
    size_t capacity = slot_count / 2;
    uint32_t *slots = calloc(slot_count, sizeof(*slots));
    struct tbd_shadow_page **pages = realloc(shadow->pages, capacity * sizeof(*pages));
    struct tbd_shadow_page **spare = realloc(shadow->spare, capacity * sizeof(*spare));

    if (pages)
        shadow->pages = pages;
    if (spare)
        shadow->spare = spare;
    if (!slots || !pages || !spare) {
        free(slots);
        return false;
    }
    free(shadow->slots);
    shadow->slots = slots;
    shadow->slot_count = slot_count;
    shadow->page_capacity = capacity;
    for (size_t i = 0; i < shadow->page_count; i++)
        slots[slot_for(shadow, pages[i]->page)] = (uint32_t)i + 1;
    return true;
}

static struct tbd_shadow_page *new_page(struct tbd_shadow *shadow, uint64_t page)
{
    struct tbd_shadow_page *fresh =
        shadow->spare_count ? shadow->spare[--shadow->spare_count] : calloc(1, sizeof(*fresh));

    if (fresh)
        fresh->page = page;
    return fresh;
}

struct tbd_shadow_page *tbd_shadow_page_slow(struct tbd_shadow *shadow, uint64_t page)
{
    struct tbd_shadow_page *found = NULL;
    size_t slot;

    if (shadow->page_count == shadow->page_capacity && !grow(shadow)) {
        shadow->failed = true;
        return &shadow->none;
    }
    slot = slot_for(shadow, page);
    if (!shadow->slots[slot]) {
        found = new_page(shadow, page);
        if (!found) {
            shadow->failed = true;
            return &shadow->none;
        }
        shadow->pages[shadow->page_count++] = found;
        shadow->slots[slot] = (uint32_t)shadow->page_count;
    }
    found = shadow->pages[shadow->slots[slot] - 1];
    shadow->cached[page % TBD_SHADOW_CACHE] = found;
    return found;
}

void tbd_shadow_range(struct tbd_shadow *shadow, uint64_t address, uint64_t bytes, uint32_t index,
                      uint32_t times)
{
    uint64_t word = address >> 3;
    uint64_t last = (address + bytes - 1) >> 3;

    if (!bytes || address + bytes < address)
        return;
    for (; word <= last; word++)
        tbd_shadow_word(shadow, tbd_shadow_page(shadow, word >> 9), word & 511, index, times);
}

static int compare_pages(const void *left, const void *right)
{
    uint64_t a = (*(struct tbd_shadow_page *const *)left)->page;
    uint64_t b = (*(struct tbd_shadow_page *const *)right)->page;

    return a < b ? -1 : a > b;
}

static size_t drain_page(struct tbd_shadow_page *page, struct tbd_word_summary *out)
{
    size_t n = 0;

    for (size_t i = 0; i < TBD_SHADOW_WORDS; i++)
        if (page->word[i].count)
            out[n++] = (struct tbd_word_summary){ .word = page->page << 12 | i << 3,
                                                  .count = page->word[i].count,
                                                  .last = page->word[i].last };
    memset(page->word, 0, sizeof(page->word));
    return n;
}

void tbd_shadow_drain(struct tbd_shadow *shadow, struct tbd_word_summary *out)
{
    size_t count = shadow->page_count;

    if (count)
        qsort(shadow->pages, count, sizeof(*shadow->pages), compare_pages);
    for (size_t i = 0; i < count; i++) {
        out += drain_page(shadow->pages[i], out);
        shadow->spare[shadow->spare_count++] = shadow->pages[i];
    }
    shadow->page_count = 0;
    shadow->word_count = 0;
    if (shadow->slot_count)
        memset(shadow->slots, 0, shadow->slot_count * sizeof(*shadow->slots));
    memset(shadow->cached, 0, sizeof(shadow->cached));
}

void tbd_shadow_free(struct tbd_shadow *shadow)
{
    for (size_t i = 0; i < shadow->page_count; i++)
        free(shadow->pages[i]);
    for (size_t i = 0; i < shadow->spare_count; i++)
        free(shadow->spare[i]);
    free(shadow->pages);
    free(shadow->spare);
    free(shadow->slots);
    *shadow = (struct tbd_shadow){ 0 };
}
