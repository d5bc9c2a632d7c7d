// SPDX-License-Identifier: MIT
/* shadow.h - per window: how often and when last each 8-byte word was stored to
 *
 * A table of pages; a page has a count and a last event index for each of its 512 words, so that
 * the table has the locality of the program.  One thread. */
#ifndef TBD_ORGANIZER_SHADOW_H
#define TBD_ORGANIZER_SHADOW_H

#include "format/trace/trace.h"

#define TBD_SHADOW_WORDS 512u

struct tbd_shadow_page {
    uint64_t page;
    struct {
        uint32_t count;
        uint32_t last;
    } word[TBD_SHADOW_WORDS];
};

#define TBD_SHADOW_CACHE 256u

struct tbd_shadow {
    struct tbd_shadow_page *cached[TBD_SHADOW_CACHE]; /* by low bits of the page number */
    struct tbd_shadow_page **pages;                   /* all in use, in order of first use */
    size_t page_count;
    size_t page_capacity;
    uint32_t *slots; /* page number -> index in pages + 1 */
    size_t slot_count;
    struct tbd_shadow_page **spare;
    size_t spare_count;
    size_t word_count;
    bool failed; /* sticky: no memory */
    struct tbd_shadow_page none;
};

void tbd_shadow_free(struct tbd_shadow *shadow);
/* The page's counts, made if it has none yet.  Never NULL. */
struct tbd_shadow_page *tbd_shadow_page_slow(struct tbd_shadow *shadow, uint64_t page);
/* All summaries, sorted, into out[shadow->word_count]; the table is empty afterwards. */
void tbd_shadow_drain(struct tbd_shadow *shadow, struct tbd_word_summary *out);
void tbd_shadow_range(struct tbd_shadow *shadow, uint64_t address, uint64_t bytes, uint32_t index,
                      uint32_t times);

static inline struct tbd_shadow_page *tbd_shadow_page(struct tbd_shadow *shadow, uint64_t page)
{
    struct tbd_shadow_page *cached = shadow->cached[page % TBD_SHADOW_CACHE];

    return __builtin_expect(cached && cached->page == page, 1) ? cached
                                                               : tbd_shadow_page_slow(shadow, page);
}

static inline void tbd_shadow_word(struct tbd_shadow *shadow, struct tbd_shadow_page *page,
                                   uint64_t word, uint32_t index, uint32_t times)
{
    uint32_t count = page->word[word].count, last = page->word[word].last;

    shadow->word_count += !count;
    page->word[word].count = count + times;
    page->word[word].last = index > last ? index : last; /* unpredictable: no branch */
}

/* `times` (not 0) stores of `bytes` bytes, the last one at `index`: count in every word they touch.
 * Stores may come in any order. */
static inline void tbd_shadow_stores(struct tbd_shadow *shadow, uint64_t address, uint64_t bytes,
                                     uint32_t times, uint32_t index)
{
    if (__builtin_expect((address & 7) + bytes <= 8, 1))
        tbd_shadow_word(shadow, tbd_shadow_page(shadow, address >> 12), address >> 3 & 511, index,
                        times);
    else
        tbd_shadow_range(shadow, address, bytes, index, times);
}

static inline void tbd_shadow_store(struct tbd_shadow *shadow, uint64_t address, uint64_t bytes,
                                    uint32_t index)
{
    tbd_shadow_stores(shadow, address, bytes, 1, index);
}

#endif
