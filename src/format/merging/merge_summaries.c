// SPDX-License-Identifier: MIT
/* merge_summaries.c - merges the summaries of several windows: pages read, words, blocks
 *
 * Each window's list is sorted, and neighbours have many equal keys: pairs of lists are merged, in
 * rounds, so that equal entries become one early.
 *
 * Invariants
 * MERGE_SUMMARIES-1  Entries with the same key come in the order of windows: what is added to an
 *     entry is later. (not checked: test_merge compares pages before and after) */
#include "format/merging/merge_private.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <string.h>

struct item_list {
    uint8_t *items;
    size_t count;
};

/* The kind of items in the lists. */
struct item_kind {
    size_t bytes;
    uint64_t (*key)(const uint8_t *item);
    void (*add)(uint8_t *to, const uint8_t *more, bool has_counts);
};

/* Merges `a` and `b` into `out`.  Inline, so that the compiler makes one for each kind of item. */
static inline __attribute__((always_inline)) struct item_list
unite_two(struct item_list a, struct item_list b, uint8_t *out, const struct item_kind *kind,
          bool has_counts)
{
    const uint8_t *a_end = a.items + a.count * kind->bytes,
                  *b_end = b.items + b.count * kind->bytes;
    struct item_list both = { .items = out };

    while (a.items < a_end && b.items < b_end) {
        uint64_t a_key = kind->key(a.items), b_key = kind->key(b.items);

        memcpy(out, a_key <= b_key ? a.items : b.items, kind->bytes);
        if (a_key == b_key)
            kind->add(out, b.items, has_counts);
        a.items += a_key <= b_key ? kind->bytes : 0;
        b.items += b_key <= a_key ? kind->bytes : 0;
        out += kind->bytes;
    }
    memcpy(out, a.items, (size_t)(a_end - a.items));
    out += a_end - a.items;
    memcpy(out, b.items, (size_t)(b_end - b.items));
    out += b_end - b.items;
    both.count = (size_t)(out - both.items) / kind->bytes;
    return both;
}

/* One round: half as many lists, all of them at `out`. */
static inline __attribute__((always_inline)) uint32_t unite_pairs(struct item_list *lists,
                                                                  uint32_t count, uint8_t *out,
                                                                  const struct item_kind *kind,
                                                                  bool has_counts)
{
    for (uint32_t i = 0; i < count; i += 2) {
        struct item_list none = { .items = out }, other = i + 1 < count ? lists[i + 1] : none;

        lists[i / 2] = unite_two(lists[i], other, out, kind, has_counts);
        out += lists[i / 2].count * kind->bytes;
    }
    return (count + 1) / 2;
}

/* Merges all lists into one, owned by the merged window.  NULL: no memory. */
static inline __attribute__((always_inline)) const void *
unite(struct tbd_merge *m, struct item_list *lists, const struct item_kind *kind, size_t *out_count)
{
    bool has_counts = m->out->level > TBD_LEVEL_BITS;
    uint8_t *buffers[2] = { NULL, NULL }, *united;
    uint32_t left = m->count, rounds = 0;
    size_t total = 1;

    for (uint32_t i = 0; i < left; i++)
        total += lists[i].count;
    for (; left > 1 || !rounds; rounds++) {
        uint8_t **to = &buffers[rounds % 2];

        if (!*to)
            *to = malloc(total * kind->bytes);
        if (!*to)
            break;
        left = unite_pairs(lists, left, *to, kind, has_counts);
    }
    free(buffers[rounds % 2]);
    united = buffers[(rounds + 1) % 2];
    if (left > 1 || !united) {
        free(united);
        return NULL;
    }
    *out_count = lists[0].count;
    return tbd_window_adopt(m->out, united) ? united : NULL;
}

/* A part's list, to be changed in place. */
static struct item_list list_of(const void *items, size_t count)
{
    return (struct item_list){ (uint8_t *)(uintptr_t)items, count };
}

/* ---- pages that were read ---- */

static uint64_t number_key(const uint8_t *item)
{
    uint64_t number;

    memcpy(&number, item, sizeof(number));
    return number;
}

static void add_nothing(uint8_t *to, const uint8_t *more, bool has_counts)
{
    (void)to, (void)more, (void)has_counts;
}

bool tbd_merge_read_pages(struct tbd_merge *m)
{
    static const struct item_kind kind = { sizeof(uint64_t), number_key, add_nothing };
    struct item_list *lists = calloc(m->count, sizeof(*lists));

    if (!lists)
        return false;
    for (uint32_t i = 0; i < m->count; i++)
        lists[i] = list_of(m->parts[i].window->read_pages, m->parts[i].window->read_page_count);
    m->out->read_pages = unite(m, lists, &kind, &m->out->read_page_count);
    free(lists);
    return m->out->read_pages;
}

/* ---- words ---- */

/* Converts a place + 1 in the trace to a window number + 1. */
static uint32_t number_of(const struct tbd_merge *m, uint32_t previous)
{
    return previous ? tbd_trace_window(m->trace, previous - 1)->number + 1 : 0;
}

static uint64_t word_key(const uint8_t *item)
{
    return ((const struct tbd_word_summary *)(const void *)item)->word;
}

static void add_word(uint8_t *to, const uint8_t *more, bool has_counts)
{
    struct tbd_word_summary *word = (void *)to;
    const struct tbd_word_summary *later = (const void *)more;

    if (!has_counts)
        return;
    word->count += later->count;
    word->last = later->last;
}

/* Converts a part's words to the merged window's event indices and times. */
static void shift_words(struct tbd_merge *m, const struct tbd_merge_part *part,
                        struct item_list list)
{
    struct tbd_word_summary *words = (void *)list.items;

    for (size_t i = 0; i < list.count; i++) {
        if (m->out->level > TBD_LEVEL_BITS) {
            words[i].last += (uint32_t)part->events_before;
            words[i].previous = number_of(m, words[i].previous);
        } else {
            words[i] = (struct tbd_word_summary){ .word = words[i].word, .count = 1 };
        }
    }
}

bool tbd_merge_words(struct tbd_merge *m)
{
    static const struct item_kind kind = { sizeof(struct tbd_word_summary), word_key, add_word };
    struct item_list *lists = calloc(m->count, sizeof(*lists));

    if (!lists)
        return false;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct tbd_window *window = m->parts[i].window;

        lists[i] = list_of(window->words, window->word_count);
        if (window->level > TBD_LEVEL_BITS)
            shift_words(m, &m->parts[i], lists[i]);
    }
    m->out->words = unite(m, lists, &kind, &m->out->word_count);
    free(lists);
    return m->out->words;
}

/* ---- blocks ---- */

static uint64_t block_key(const uint8_t *item)
{
    return ((const struct tbd_block_summary *)(const void *)item)->id;
}

static void add_block(uint8_t *to, const uint8_t *more, bool has_counts)
{
    struct tbd_block_summary *block = (void *)to;
    const struct tbd_block_summary *later = (const void *)more;

    if (!has_counts) {
        block->enters |= later->enters;
        return;
    }
    block->count += later->count;
    block->enters += later->enters;
    block->last = later->last;
    block->last_enter = later->enters ? later->last_enter : block->last_enter;
}

static struct tbd_block_summary shifted_block(const struct tbd_merge *m, uint32_t part,
                                              struct tbd_block_summary block)
{
    uint32_t shift = (uint32_t)m->shifts[part].time;

    if (m->out->level < TBD_LEVEL_COUNTS)
        return (
            struct tbd_block_summary){ .id = block.id, .count = 1, .enters = block.enters != 0 };
    block.last += shift;
    block.last_enter = block.enters ? block.last_enter + shift : 0;
    block.previous = number_of(m, block.previous);
    return block;
}

bool tbd_merge_blocks(struct tbd_merge *m)
{
    static const struct item_kind kind = { sizeof(struct tbd_block_summary), block_key, add_block };
    struct item_list *lists = calloc(m->count, sizeof(*lists));

    if (!lists)
        return false;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct tbd_window *window = m->parts[i].window;
        struct tbd_block_summary *blocks;

        lists[i] = list_of(window->block_summaries, window->block_summary_count);
        blocks = (void *)lists[i].items;
        for (size_t k = 0; k < lists[i].count; k++)
            blocks[k] = shifted_block(m, i, blocks[k]);
    }
    m->out->block_summaries = unite(m, lists, &kind, &m->out->block_summary_count);
    free(lists);
    return m->out->block_summaries;
}
