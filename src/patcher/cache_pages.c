// SPDX-License-Identifier: MIT
/* cache_pages.c - finds the blocks that a range of memory has, or that were made from what it has
 *
 * A block is in the list of the page that it starts on, and in that of those made from constants if it is.  Dead ones
 * leave a list when somebody passes them: so a list is as long as what lives, and forgetting a page costs what is there. */
#include "patcher/cache_private.h"

#include "base/hash.h"
#include "base/linux.h"
#include "base/sys.h"

/* Indices of `next`. */
enum list { ON_PAGE, READING };

_Static_assert(TBD_BLOCK_MAX_INSNS *TBD_INSN_MAX_BYTES <= TBD_PAGE_SIZE,
               "a block has bytes of two pages at most");

static uint32_t *list_of(uint64_t page)
{
    uint64_t hash = tbd_hash64_mix(page * 0x9e3779b97f4a7c15ull);

    return &tbd_cache.on_page[hash & (TBD_CACHE_PAGE_SLOTS - 1)];
}

static void enter(struct tbd_block_code *block, uint32_t *head, enum list list)
{
    block->next[list] = *head;
    *head = tbd_cache_index(block) + 1;
}

void tbd_cache_enter_pages(struct tbd_block_code *block)
{
    enter(block, list_of(block->start >> TBD_PAGE_SHIFT), ON_PAGE);
    if (block->read)
        enter(block, &tbd_cache.reading, READING);
}

/* Private anonymous memory reads as zero after MADV_DONTNEED. */
void tbd_cache_empty_pages(void)
{
    tbd_sys_madvise(tbd_sys_pointer(tbd_cache.on_page),
                    TBD_CACHE_PAGE_SLOTS * sizeof(*tbd_cache.on_page), MADV_DONTNEED);
    tbd_cache.reading = 0;
}

static bool is_concerned(const struct tbd_block_code *block, uint64_t start, uint64_t end)
{
    uint64_t bytes = block->code_bytes ? block->code_bytes : 1;
    bool is_in = block->start < end && block->start + bytes > start;
    bool reads = block->read && block->read < end && block->read + sizeof(uint64_t) > start;

    return is_in || reads;
}

/* The first live block of the rest of a list.  NULL: there is none. */
static struct tbd_block_code *first_live(uint32_t *link, enum list list)
{
    while (*link && !tbd_cache.block[*link - 1].live)
        *link = tbd_cache.block[*link - 1].next[list];
    return *link ? &tbd_cache.block[*link - 1] : NULL;
}

/* Kills the list's blocks that the range concerns, or stops at the first one.  Is there one? */
static bool look_in(uint32_t *link, enum list list, uint64_t start, uint64_t end, bool kills)
{
    struct tbd_block_code *block;
    bool found = false;

    while ((block = first_live(link, list)) && (kills || !found)) {
        if (!is_concerned(block, start, end)) {
            link = &block->next[list];
            continue;
        }
        found = true;
        if (kills)
            tbd_cache_kill(block);
    }
    return found;
}

static bool look(uint64_t start, uint64_t end, bool kills)
{
    uint64_t first = start >> TBD_PAGE_SHIFT;
    uint64_t last = (end - 1) >> TBD_PAGE_SHIFT;
    bool found = false;

    if (start >= end)
        return false;
    if (first)
        first--; /* a block that begins there may reach into the range */
    if (last - first >= TBD_CACHE_PAGE_SLOTS)
        for (uint32_t n = 0; n < TBD_CACHE_PAGE_SLOTS && (kills || !found); n++)
            found |= look_in(&tbd_cache.on_page[n], ON_PAGE, start, end, kills);
    else
        for (uint64_t page = first; page <= last && (kills || !found); page++)
            found |= look_in(list_of(page), ON_PAGE, start, end, kills);
    if (tbd_cache_may_read(start, end) && (kills || !found))
        found |= look_in(&tbd_cache.reading, READING, start, end, kills);
    return found;
}

bool tbd_cache_has_blocks(uint64_t start, uint64_t end)
{
    return look(start, end, false);
}

void tbd_cache_flush_range(uint64_t start, uint64_t end)
{
    look(start, end, true);
}
