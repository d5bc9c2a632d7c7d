// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* What a window in memory says of its words and pages, against the list that it was made of. */
#include "format/window/cursor.h"
#include "format/window/window_make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCKS 3000u
#define WORDS  1000u
#define START  0x600000u

/* One store: where, and the bytes before. */
struct record {
    uint64_t address;
    uint64_t old;
};

static const uint8_t code[4] = { 0x48, 0x89, 0x03, 0xc3 }; /* mov [rbx], rax; ret */

/* Block 1 stores `size` bytes at the address in its record. */
static struct tbd_block_table *make_blocks(uint8_t size)
{
    struct tbd_block_table *table = tbd_block_table_new();
    struct tbd_op op = { .kind = TBD_OP_STORE, .size = size, .data = 8, .base = 0 };
    struct tbd_block_def def = { .start = 0x400000,
                                 .code_bytes = 4,
                                 .op_count = 1,
                                 .operand_bytes = sizeof(struct record),
                                 .insn_count = 2,
                                 .end = TBD_END_RETURN,
                                 .last_insn = 3 };

    assert_int_equal(tbd_block_table_put(table, 1, &def, &op, code), TBD_OK);
    return table;
}

/* A window of level 1 whose events are back: its summaries do not say when a word was stored to. */
static struct tbd_window *make_window(uint8_t size, struct record *records, uint32_t *entries)
{
    struct tbd_block_table *table = make_blocks(size);
    struct tbd_window *window = tbd_window_new(table);
    struct tbd_word_summary *words = tbd_window_memory(window, WORDS * sizeof(*words));
    size_t entry;

    for (size_t i = 0; i < BLOCKS; i++)
        entries[i] = 1;
    for (size_t i = 0; i < WORDS; i++)
        words[i].word = START + i * 8;
    window->words = words;
    window->word_count = WORDS;
    window->entries = entries;
    window->entry_count = window->blocks = BLOCKS;
    window->operands = (const uint8_t *)records;
    window->operand_bytes = BLOCKS * sizeof(*records);
    window->level = TBD_LEVEL_BITS;
    window->has_events = true;
    assert_int_equal(tbd_window_index(window, &entry), TBD_OK);
    tbd_block_table_release(table);
    return window;
}

static void check_last_stores(uint8_t size)
{
    static struct record records[BLOCKS];
    static uint32_t entries[BLOCKS], wanted[WORDS + 2];
    struct tbd_window *window;
    const uint32_t *last;

    memset(wanted, 0, sizeof(wanted));
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint64_t offset = i * 7919ull % (WORDS * 8); /* some touch two words */

        records[i].address = START + offset;
        for (uint64_t word = offset / 8; word * 8 < offset + size; word++)
            wanted[word] = 2 * i + 2; /* events: the block's entry, its store */
    }
    window = make_window(size, records, entries);
    last = tbd_window_last_stores(window);
    assert_non_null(last);
    assert_memory_equal(last, wanted, WORDS * sizeof(*last));
    assert_ptr_equal(tbd_window_last_stores(window), last); /* found once */
    tbd_window_free(window);
}

static void each_word_has_its_last_store(void **state)
{
    (void)state;
    for (unsigned size = 1; size <= 16; size *= 2)
        check_last_stores((uint8_t)size);
}

/* The first block from `from` on whose store touches [start, end). */
static uint64_t time_of_store(const struct record *records, uint64_t from, uint64_t start,
                              uint64_t end)
{
    for (; from + 1 < BLOCKS; from++)
        if (records[from].address < end && records[from].address + 4 > start)
            return from;
    return BLOCKS - 1;
}

static void blocks_are_passed_up_to_a_store_that_is_wanted(void **state)
{
    static struct record records[BLOCKS];
    static uint32_t entries[BLOCKS];
    static const uint8_t blocks[2] = { 0, 1 };
    struct tbd_window *window;

    (void)state;
    for (uint32_t i = 0; i < BLOCKS; i++)
        records[i].address = START + i * 7919ull % (WORDS * 8);
    window = make_window(4, records, entries);
    for (uint64_t i = 0; i < 400; i++) {
        uint64_t start = START + i * 31 % (WORDS * 8), end = start + 1 + i % 9;
        struct tbd_pass wanted = { .blocks = blocks,
                                   .accesses = TBD_OP_STORE,
                                   .start = start,
                                   .end = end,
                                   .until = UINT64_MAX };
        struct tbd_pass watched = { .watch_start = start, .watch_end = end, .until = UINT64_MAX };
        struct tbd_cursor cursor;

        assert_true(tbd_cursor_seek(window, i, &cursor));
        tbd_cursor_pass(&cursor, i % 2 ? &wanted : &watched);
        assert_int_equal(cursor.kind, TBD_AT_BLOCK);
        assert_int_equal(cursor.time, time_of_store(records, i, start, end));
    }
    tbd_window_free(window);
}

static void a_page_is_found_by_its_address_alone(void **state)
{
    static const struct tbd_page_contents pages[] = { { .address = 0x2000 },
                                                      { .address = 0x3000 },
                                                      { .address = 0x7000 } };
    struct tbd_block_table *table = tbd_block_table_new();
    struct tbd_window *window = tbd_window_new(table);

    (void)state;
    window->dirty = window->first = window->start = pages;
    window->dirty_count = window->first_count = window->start_count = 3;
    for (uint64_t address = 0; address <= 0x9000; address += 0x1000) {
        const struct tbd_page_contents *wanted = NULL;

        for (size_t i = 0; i < 3; i++)
            wanted = pages[i].address == address ? &pages[i] : wanted;
        assert_ptr_equal(tbd_window_dirty(window, address), wanted);
        assert_ptr_equal(tbd_window_first(window, address), wanted);
        assert_ptr_equal(tbd_window_start(window, address), wanted);
    }
    tbd_window_free(window);
    tbd_block_table_release(table);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_has_its_last_store),
        cmocka_unit_test(blocks_are_passed_up_to_a_store_that_is_wanted),
        cmocka_unit_test(a_page_is_found_by_its_address_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
