// SPDX-License-Identifier: MIT
/* backlink_heads.c - backlink heads: hashed pages with one window number + 1 per word */
#include "organizer/backlink_heads.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_WORDS 512u

struct head_page {
    uint64_t page;
    uint32_t last[PAGE_WORDS];
};

struct tbd_backlink_heads {
    struct head_page **slots;
    size_t slot_count;
    size_t page_count;
    uint32_t *blocks; /* by id */
    size_t block_capacity;
};

struct tbd_backlink_heads *tbd_backlink_heads_new(void)
{
    return calloc(1, sizeof(struct tbd_backlink_heads));
}

void tbd_backlink_heads_free(struct tbd_backlink_heads *heads)
{
    if (!heads)
        return;
    for (size_t i = 0; i < heads->slot_count; i++)
        free(heads->slots[i]);
    free(heads->slots);
    free(heads->blocks);
    free(heads);
}

static size_t slot_of(struct head_page *const *slots, size_t slot_count, uint64_t page)
{
    size_t slot = (size_t)((page * 0x9e3779b97f4a7c15ull) >> 24) & (slot_count - 1);

    while (slots[slot] && slots[slot]->page != page)
        slot = (slot + 1) & (slot_count - 1);
    return slot;
}

static bool grow(struct tbd_backlink_heads *heads)
{
    size_t slot_count = heads->slot_count ? heads->slot_count * 2 : 1024;
    struct head_page **slots = calloc(slot_count, sizeof(*slots));

    if (!slots)
        return false;
    for (size_t i = 0; i < heads->slot_count; i++)
        if (heads->slots[i])
            slots[slot_of(slots, slot_count, heads->slots[i]->page)] = heads->slots[i];
    free(heads->slots);
    heads->slots = slots;
    heads->slot_count = slot_count;
    return true;
}

static struct head_page *page_of(struct tbd_backlink_heads *heads, uint64_t page)
{
    size_t slot;

    if (heads->page_count * 2 >= heads->slot_count && !grow(heads))
        return NULL;
    slot = slot_of(heads->slots, heads->slot_count, page);
    if (!heads->slots[slot]) {
        heads->slots[slot] = calloc(1, sizeof(struct head_page));
        if (!heads->slots[slot])
            return NULL;
        heads->slots[slot]->page = page;
        heads->page_count++;
    }
    return heads->slots[slot];
}

enum tbd_status tbd_backlink_heads_words(struct tbd_backlink_heads *heads, uint32_t window,
                                         struct tbd_word_summary *words, size_t count)
{
    struct head_page *page = NULL;

    for (size_t i = 0; i < count; i++) {
        uint32_t *last;

        if (!page || page->page != words[i].word >> 12)
            page = page_of(heads, words[i].word >> 12);
        if (!page)
            return TBD_NOMEM;
        last = &page->last[words[i].word >> 3 & (PAGE_WORDS - 1)];
        words[i].previous = *last;
        *last = window + 1;
    }
    return TBD_OK;
}

enum tbd_status tbd_backlink_heads_blocks(struct tbd_backlink_heads *heads, uint32_t window,
                                          struct tbd_block_summary *blocks, size_t count)
{
    uint32_t highest = count ? blocks[count - 1].id : 0;

    if (highest >= heads->block_capacity) {
        size_t capacity = highest + highest / 2 + 4096u;
        uint32_t *grown = realloc(heads->blocks, capacity * sizeof(*grown));

        if (!grown)
            return TBD_NOMEM;
        memset(grown + heads->block_capacity, 0,
               (capacity - heads->block_capacity) * sizeof(*grown));
        heads->blocks = grown;
        heads->block_capacity = capacity;
    }
    for (size_t i = 0; i < count; i++) {
        blocks[i].previous = heads->blocks[blocks[i].id];
        heads->blocks[blocks[i].id] = window + 1;
    }
    return TBD_OK;
}
