// SPDX-License-Identifier: MIT
// links: tbd_format
/* Merged lists of several windows (merge_summaries.c) against a list made word by word; pages by
 * address (page_numbers.h). */
#include "format/merging/merge_private.h"
#include "format/window/window_make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define PARTS_MOST 9u
#define KEYS       64u
#define PAGES      20000u

static unsigned seed;

static unsigned random_below(unsigned limit)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % limit;
}

/* Does part `part` have the key? */
static bool has_key(unsigned part, unsigned key)
{
    return (part * 7 + key * 5 + (part + 1) * key % 3) % 4 != 0;
}

static unsigned keys_of(unsigned part)
{
    unsigned keys = 0;

    for (unsigned key = 0; key < KEYS; key++)
        keys += has_key(part, key);
    return keys;
}

static void unmap_list(void *list)
{
    munmap((void *)((uintptr_t)list & ~(uintptr_t)4095), 8192);
}

/* Memory that ends where the next byte cannot be read: nobody looks past the end of a list. */
static void *list_memory(struct tbd_window *window, size_t bytes)
{
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(pages != MAP_FAILED && bytes <= 4096);
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    assert_true(tbd_window_adopt_with(window, pages + 4096 - bytes, unmap_list));
    return pages + 4096 - bytes;
}

static void fill_part(struct tbd_window *window, unsigned part)
{
    size_t keys = keys_of(part);
    struct tbd_word_summary *words = list_memory(window, keys * sizeof(*words));
    struct tbd_block_summary *blocks = list_memory(window, keys * sizeof(*blocks));
    uint64_t *pages = list_memory(window, keys * sizeof(*pages));

    for (unsigned key = 0; key < KEYS; key++) {
        unsigned enters = random_below(3), count = enters + 1;

        if (!has_key(part, key))
            continue;
        words[window->word_count++] =
            (struct tbd_word_summary){ .word = key * 8, .count = count, .last = key + 1 };
        blocks[window->block_summary_count++] = (struct tbd_block_summary){
            .id = key,
            .count = count,
            .last = key + 2,
            .enters = enters,
            .last_enter = enters ? key + 1 : 0,
        };
        pages[window->read_page_count++] = key * 4096;
    }
    window->words = words;
    window->block_summaries = blocks;
    window->read_pages = pages;
    window->level = TBD_LEVEL_COUNTS;
}

/* Parts begin at times 1000 and event numbers 5000 apart. */
static void make(struct tbd_merge *m, unsigned count, enum tbd_level level)
{
    struct tbd_block_table *table = tbd_block_table_new();

    seed = count;
    *m = (struct tbd_merge){ .count = count,
                             .parts = calloc(count, sizeof(*m->parts)),
                             .shifts = calloc(count, sizeof(*m->shifts)),
                             .out = tbd_window_new(table) };
    m->out->level = level;
    for (unsigned i = 0; i < count; i++) {
        m->parts[i] = (struct tbd_merge_part){ .window = tbd_window_new(table),
                                               .events_before = i * 5000ull };
        m->shifts[i].time = i * 1000ull;
        fill_part(m->parts[i].window, i);
    }
    tbd_block_table_release(table);
}

static void free_merge(struct tbd_merge *m)
{
    for (unsigned i = 0; i < m->count; i++)
        tbd_window_free(m->parts[i].window);
    tbd_window_free(m->out);
    free(m->parts);
    free(m->shifts);
}

/* The same numbers again, in the same order. */
static void expect(unsigned count, enum tbd_level level, unsigned key,
                   struct tbd_word_summary *word, struct tbd_block_summary *block)
{
    *word = (struct tbd_word_summary){ .word = key * 8 };
    *block = (struct tbd_block_summary){ .id = key };
    seed = count;
    for (unsigned part = 0; part < count; part++)
        for (unsigned k = 0; k < KEYS; k++) {
            unsigned enters = random_below(3);

            if (k != key || !has_key(part, k))
                continue;
            word->count = level > TBD_LEVEL_BITS ? word->count + enters + 1 : 1;
            word->last = level > TBD_LEVEL_BITS ? key + 1 + part * 5000 : 0;
            block->count = level > TBD_LEVEL_BITS ? block->count + enters + 1 : 1;
            block->last = level > TBD_LEVEL_BITS ? key + 2 + part * 1000 : 0;
            block->enters =
                level > TBD_LEVEL_BITS ? block->enters + enters : block->enters | (enters != 0);
            if (level > TBD_LEVEL_BITS && enters)
                block->last_enter = key + 1 + part * 1000;
        }
}

static void check(const struct tbd_merge *m)
{
    size_t at = 0;

    for (unsigned key = 0; key < KEYS; key++) {
        struct tbd_word_summary word;
        struct tbd_block_summary block;

        expect(m->count, m->out->level, key, &word, &block);
        if (!block.count)
            continue;
        assert_true(at < m->out->word_count);
        assert_memory_equal(&m->out->words[at], &word, sizeof(word));
        assert_memory_equal(&m->out->block_summaries[at], &block, sizeof(block));
        assert_int_equal(m->out->read_pages[at], key * 4096);
        at++;
    }
    assert_int_equal(m->out->word_count, at);
    assert_int_equal(m->out->block_summary_count, at);
    assert_int_equal(m->out->read_page_count, at);
}

static void lists_are_united_in_order(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= PARTS_MOST; count++)
        for (enum tbd_level level = TBD_LEVEL_BITS; level <= TBD_LEVEL_COUNTS; level++) {
            struct tbd_merge m;

            make(&m, count, level);
            assert_true(tbd_merge_words(&m));
            assert_true(tbd_merge_blocks(&m));
            assert_true(tbd_merge_read_pages(&m));
            check(&m);
            free_merge(&m);
        }
}

/* Every second page of the first few, then some far apart in no order, so that their slots collide. */
static uint64_t page_address(uint64_t page)
{
    if (page >= PAGES / 2)
        page = (page * 0x2545f491ull & 0xfffffff) + PAGES;
    return page * 2 * 4096;
}

static void a_page_is_found_with_what_was_put_last(void **state)
{
    struct tbd_page_numbers table = { 0 };

    (void)state;
    assert_null(tbd_page_numbers_find(&table, 4096));
    for (uint64_t page = 0; page < PAGES; page++)
        assert_true(tbd_page_numbers_put(&table, page_address(page), 1));
    for (uint64_t page = 0; page < PAGES; page += 2)
        assert_true(tbd_page_numbers_put(&table, page_address(page), 2));
    for (uint64_t page = 0; page < PAGES; page++) {
        assert_int_equal(*tbd_page_numbers_find(&table, page_address(page)), page % 2 ? 1 : 2);
        assert_null(tbd_page_numbers_find(&table, page_address(page) + 4096));
    }
    tbd_page_numbers_free(&table);
    assert_null(tbd_page_numbers_find(&table, 0));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_united_in_order),
        cmocka_unit_test(a_page_is_found_with_what_was_put_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
