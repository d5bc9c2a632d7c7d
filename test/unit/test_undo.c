// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
/* Windows of random blocks, some left in the middle, and of system calls, that store to pages which
 * are mapped and unmapped: after undo, each page is as it was when its mapping, or the window,
 * began (undo.h), however few or many stores go there. */
#include "organizer/undo.h"

#include "format/coding/coding.h"
#include "format/window/window_make.h"
#include "organizer/shadow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE_BYTES    4096u
#define PAGES         5u
#define FIRST_PAGE    UINT64_C(0x7f0000004000)
#define FAR           (UINT64_C(32768) * PAGE_BYTES) /* pages that share a bit with ours */
#define BLOCKS        6u
#define INSNS         6u
#define MOST_EVENTS   4000u
#define MOST_LIVES    64u
#define MESSAGE_BYTES 8192u

/* A page from one mapping to its capture. */
struct life {
    uint8_t before[PAGE_BYTES];
    uint8_t captured[PAGE_BYTES];
    uint64_t address;
    uint64_t birth_time;
    uint32_t birth_order;
};

struct scene {
    unsigned wanted_percent; /* of the stores */
    uint8_t memory[PAGES][PAGE_BYTES];
    struct life lives[MOST_LIVES];
    size_t life_count, life_of[PAGES];
    struct tbd_page_note notes[MOST_LIVES];
    struct tbd_side_message sides[MOST_LIVES];
    struct tbd_range ranges[MOST_LIVES];
    size_t side_count;
    struct cut_block cuts[MOST_EVENTS];
    size_t cut_count;
    struct tbd_shadow shadow;
    struct tbd_block_table *table;
    struct tbd_window *window;
    uint32_t entries[MOST_EVENTS];
    struct tbd_log_entry log[MOST_EVENTS];
    size_t offsets[MOST_EVENTS];
    uint8_t *operands;
    size_t used;
    uint32_t counts[BLOCKS + 1];
    uint32_t index;
};

static unsigned pick(unsigned n)
{
    return (unsigned)rand() % n;
}

static void fill(void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)rand();
}

/* ---- blocks ---- */

/* In our pages, or around the beginning of one, or elsewhere. */
static uint64_t some_address(const struct scene *s)
{
    uint64_t address = pick(8) ? FIRST_PAGE + pick(PAGES * PAGE_BYTES)
                               : FIRST_PAGE + pick(PAGES) * PAGE_BYTES + pick(20) - 20;

    return pick(100) < s->wanted_percent ? address : address + FAR * (1 + pick(3));
}

/* A call, and some stores: at a constant, or relative to one of two values at the record's start. */
static void make_block(struct scene *s, uint32_t id)
{
    struct tbd_block_def def = {
        .start = 0x1000 * id, .operand_bytes = 16, .insn_count = INSNS, .end = TBD_END_FAULT
    };
    uint16_t stores = (uint16_t)(id - 1);
    struct tbd_op ops[BLOCKS + 1];

    for (uint16_t i = 0; i < stores; i++) {
        bool has_base = pick(4) != 0;

        ops[def.op_count] = (struct tbd_op){
            .kind = TBD_OP_STORE,
            .insn = i,
            .size = pick(8) ? 1u << pick(5) : 1 + pick(20),
            .data = def.operand_bytes,
            .base = has_base ? 8 * pick(2) : TBD_BASE_NONE,
            .add = has_base ? (int64_t)pick(20) : (int64_t)some_address(s),
        };
        def.operand_bytes += ops[def.op_count++].size;
        if (i == 1) {
            ops[def.op_count++] = (struct tbd_op){
                .kind = TBD_OP_CALL, .insn = i, .data = def.operand_bytes, .base = TBD_BASE_NONE
            };
            def.operand_bytes += 56;
        }
    }
    assert_null(tbd_block_check(&def, ops, false));
    assert_int_equal(tbd_block_table_put(s->table, id, &def, ops, NULL), TBD_OK);
}

/* ---- memory ---- */

/* The model's byte at this address; NULL outside our pages. */
static uint8_t *byte_at(struct scene *s, uint64_t address)
{
    uint64_t offset = address - FIRST_PAGE;

    return offset < PAGES * PAGE_BYTES ? &s->memory[offset / PAGE_BYTES][offset % PAGE_BYTES]
                                       : NULL;
}

static void store(struct scene *s, uint64_t address, uint32_t bytes, uint8_t *old_bytes,
                  uint32_t index)
{
    for (uint32_t i = 0; i < bytes; i++) {
        uint8_t *byte = byte_at(s, address + i);

        old_bytes[i] = byte ? *byte : 0;
        if (byte)
            *byte = (uint8_t)rand();
    }
    tbd_shadow_store(&s->shadow, address, bytes, index);
}

static void begin_life(struct scene *s, unsigned page, uint64_t time, uint32_t order)
{
    struct life *life = &s->lives[s->life_count];

    life->address = FIRST_PAGE + page * PAGE_BYTES;
    life->birth_time = time;
    life->birth_order = order;
    memcpy(life->before, s->memory[page], PAGE_BYTES);
    s->life_of[page] = s->life_count++;
}

static void capture(struct scene *s, unsigned page, bool at_end)
{
    struct life *life = &s->lives[s->life_of[page]];

    memcpy(life->captured, s->memory[page], PAGE_BYTES);
    s->notes[s->life_of[page]] = (struct tbd_page_note){
        .address = life->address,
        .flags = TBD_PAGE_FIRST | TBD_PAGE_DIRTY,
        .bytes = life->captured,
        .time = s->window->blocks,
        .order = (uint32_t)s->window->log_count,
        .at_end = at_end,
    };
}

/* ---- events ---- */

static void put_message(struct scene *s, uint32_t kind, uint32_t bytes)
{
    struct tbd_window *window = s->window;
    struct tbd_message head = { kind, bytes };

    memcpy(s->operands + s->used, &head, sizeof(head));
    s->offsets[window->log_count] = s->used;
    s->log[window->log_count++].time = window->blocks;
    s->entries[window->entry_count++] = TBD_ENTRY_MESSAGE | kind;
    s->used += sizeof(head) + bytes;
    s->index++;
}

/* Some writes, which may overlap earlier ones; a write with unknown old bytes changes nothing. */
static void add_call(struct scene *s)
{
    struct tbd_msg_syscall call = { .write_count = 1 + pick(4) };
    uint8_t *payload = s->operands + s->used + sizeof(struct tbd_message),
            *at = payload + sizeof(call);

    memcpy(payload, &call, sizeof(call));
    for (uint32_t i = 0; i < call.write_count; i++) {
        bool is_known = pick(4) != 0;
        struct tbd_write write = { some_address(s), pick(40), is_known ? 0 : TBD_WRITE_NO_OLD };

        memcpy(at, &write, sizeof(write));
        at += sizeof(write);
        if (is_known)
            store(s, write.address, write.bytes, at, s->index);
        else
            tbd_shadow_range(&s->shadow, write.address, write.bytes, s->index, 1);
        at += write.bytes * (is_known ? 2 : 1);
    }
    put_message(s, TBD_MSG_SYSCALL, (uint32_t)(at - payload));
}

/* A call unmaps the page, and maps a new one. */
static void replace(struct scene *s, unsigned page)
{
    struct tbd_msg_syscall call = { 0 };
    struct tbd_range *range = &s->ranges[s->side_count];
    uint64_t time = s->window->blocks;
    uint32_t order;

    if (s->life_count == MOST_LIVES)
        return;
    capture(s, page, false);
    memcpy(s->operands + s->used + sizeof(struct tbd_message), &call, sizeof(call));
    put_message(s, TBD_MSG_SYSCALL, sizeof(call));
    order = (uint32_t)s->window->log_count;
    *range =
        (struct tbd_range){ FIRST_PAGE + page * PAGE_BYTES, FIRST_PAGE + (page + 1) * PAGE_BYTES };
    s->sides[s->side_count++] =
        (struct tbd_side_message){ TBD_MSG_UNMAP, sizeof(*range), (void *)range, time, order };
    fill(s->memory[page], PAGE_BYTES);
    begin_life(s, page, time, order);
}

/* Instructions from `limit` on do not run. */
static void add_block(struct scene *s, uint32_t id, uint32_t limit)
{
    const struct tbd_block *block = tbd_block_table_get(s->table, id);
    uint64_t bases[2] = { some_address(s), some_address(s) };
    uint8_t *record = s->operands + s->used;

    memset(record, 0, block->def.operand_bytes);
    memcpy(record, bases, sizeof(bases));
    for (uint16_t i = 0; i < block->def.op_count; i++) {
        const struct tbd_op *op = &block->ops[i];
        uint64_t base = op->base == TBD_BASE_NONE ? 0 : bases[op->base / 8];

        if (op->kind == TBD_OP_STORE && op->insn < limit)
            store(s, base + (uint64_t)op->add, op->size, record + op->data, s->index + i + 1);
    }
    if (limit < INSNS)
        s->cuts[s->cut_count++] = (struct cut_block){ s->index, limit };
    s->counts[id]++;
    s->used += block->def.operand_bytes;
    s->index += block->def.op_count + 1u;
    s->entries[s->window->entry_count++] = id;
    s->window->blocks++;
}

static void add_cut_block(struct scene *s)
{
    uint64_t limit = pick(INSNS);

    add_block(s, 1 + pick(BLOCKS), (uint32_t)limit);
    memcpy(s->operands + s->used + sizeof(struct tbd_message), &limit, sizeof(limit));
    put_message(s, TBD_MSG_INTERRUPTED, sizeof(limit));
}

static void add_event(struct scene *s)
{
    unsigned what = pick(100);

    if (what < 5)
        add_call(s);
    else if (what < 10)
        add_cut_block(s);
    else if (what < 12)
        replace(s, pick(PAGES));
    else
        add_block(s, 1 + pick(BLOCKS), INSNS);
}

/* ---- the window ---- */

static void open_scene(struct scene *s, unsigned wanted_percent)
{
    memset(s, 0, sizeof(*s));
    s->wanted_percent = wanted_percent;
    s->table = tbd_block_table_new();
    s->window = tbd_window_new(s->table);
    s->operands = calloc(1, MOST_EVENTS * 512 + MESSAGE_BYTES);
    assert_non_null(s->operands);
    for (uint32_t id = 1; id <= BLOCKS; id++)
        make_block(s, id);
    fill(s->memory, sizeof(s->memory));
    for (unsigned page = 0; page < PAGES; page++)
        begin_life(s, page, 0, 0);
    s->window->complete = true;
}

static void close_scene(struct scene *s)
{
    tbd_shadow_free(&s->shadow);
    tbd_window_free(s->window);
    tbd_block_table_release(s->table);
    free(s->operands);
}

static void summarize(struct scene *s)
{
    struct tbd_window *window = s->window;
    struct tbd_word_summary *words;
    struct tbd_block_summary *blocks;

    window->word_count = s->shadow.word_count;
    window->words = words = tbd_window_memory(window, window->word_count * sizeof(*words));
    window->block_summaries = blocks = tbd_window_memory(window, BLOCKS * sizeof(*blocks));
    assert_true(words && blocks);
    tbd_shadow_drain(&s->shadow, words);
    for (uint32_t id = 1; id <= BLOCKS; id++)
        if (s->counts[id])
            blocks[window->block_summary_count++] =
                (struct tbd_block_summary){ .id = id, .count = s->counts[id] };
}

static void end_window(struct scene *s)
{
    struct tbd_window *window = s->window;

    for (unsigned page = 0; page < PAGES; page++)
        capture(s, page, true);
    for (size_t i = 0; i < window->log_count; i++)
        s->log[i].message = (const void *)(s->operands + s->offsets[i]);
    window->entries = s->entries;
    window->log = s->log;
    window->operands = s->operands;
    window->operand_bytes = s->used;
    summarize(s);
}

static const struct life *life_of(const struct scene *s, const struct tbd_page_contents *first)
{
    for (size_t i = 0; i < s->life_count; i++)
        if (s->lives[i].address == first->address && s->lives[i].birth_time == first->time &&
            s->lives[i].birth_order == first->order)
            return &s->lives[i];
    return NULL;
}

static void check(struct scene *s, size_t note_count)
{
    const struct tbd_page_notes notes = { s->notes, note_count,   s->sides, s->side_count,
                                          s->cuts,  s->cut_count, s->index };
    const struct tbd_window *window = s->window;

    assert_true(tbd_undo_first_contents(s->window, &notes));
    assert_int_equal(window->first_count, note_count);
    for (size_t i = 0; i < window->first_count; i++) {
        const struct life *life = life_of(s, &window->first[i]);

        assert_non_null(life);
        assert_memory_equal(window->first[i].bytes, life->before, PAGE_BYTES);
    }
}

static void test_pages_become_what_they_were(void **state)
{
    static const unsigned percents[] = { 100, 50, 2, 1, 0 };
    struct scene *s = malloc(sizeof(*s));

    (void)state;
    srand(11);
    for (unsigned round = 0; s && round < 60; round++) {
        unsigned events = 1 + pick(MOST_EVENTS / 3);

        open_scene(s, percents[round % 5]);
        for (unsigned i = 0; i < events; i++)
            add_event(s);
        end_window(s);
        check(s, s->life_count);
        close_scene(s);
    }
    free(s);
}

/* Stores to a page that is not wanted are ignored; a page without stores is not copied. */
static void test_a_page_that_was_only_read_is_not_copied(void **state)
{
    struct scene *s = malloc(sizeof(*s));

    (void)state;
    srand(12);
    open_scene(s, 0);
    for (unsigned i = 0; i < 100; i++)
        add_block(s, 1 + pick(BLOCKS), INSNS);
    end_window(s);
    check(s, PAGES);
    for (size_t i = 0; i < s->window->first_count; i++)
        assert_ptr_equal(s->window->first[i].bytes, s->notes[i].bytes);
    close_scene(s);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_become_what_they_were),
        cmocka_unit_test(test_a_page_that_was_only_read_is_not_copied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
