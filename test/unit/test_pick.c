// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: stream_maker.c
/* test_pick.c - picked windows (format/coding/pick.h) against a walk over the whole window that decides
 * for each entry
 *
 * Windows of simulated programs: stores of all sizes at addresses relative to a recorded base,
 * blocks left in the middle, system calls with writes, mappings.  Each is picked twice: from the
 * window in memory, and from its files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "folder.h"
#include "format/coding/pick.h"
#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "format/window/window_make.h"
#include "organizer/organize.h"
#include "stream_maker.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (random_state >> 33) % limit;
}

/* ---- what is wanted ---- */

struct wish {
    struct tbd_pick pick;
    uint8_t blocks[SIM_BLOCKS + 1];
};

static void wish_at_random(struct wish *wish, const struct sim *s)
{
    static const uint8_t kinds[] = { 0, TBD_PICK_ENTRIES, TBD_PICK_OPS, TBD_PICK_ENTERED,
                                     TBD_PICK_LEADING };
    uint8_t kind = kinds[random_below(5)];

    memset(wish, 0, sizeof(*wish));
    for (uint32_t id = 1; id <= SIM_BLOCKS; id++)
        wish->blocks[id] = random_below(8) == 0 ? kind : 0;
    wish->pick.blocks = wish->blocks;
    wish->pick.block_count =
        random_below(4) ? SIM_BLOCKS + 1 : 1 + (uint32_t)random_below(SIM_BLOCKS);
    wish->pick.calls = random_below(4) == 0;
    wish->pick.range_count = (uint32_t)random_below(4);
    for (uint32_t i = 0; i < wish->pick.range_count; i++) {
        const struct sim_store *store = &s->stores[random_below(s->store_count)];
        uint64_t start = store->address + random_below(64) - 32;

        wish->pick.ranges[i] = (struct tbd_pick_range){ start, start + 1 + random_below(200) };
    }
    if (random_below(8) == 0 && wish->pick.range_count)
        wish->pick.ranges[0] = (struct tbd_pick_range){ 0, UINT64_MAX };
}

/* ---- what must be picked ---- */

static bool is_block(const struct tbd_window *window, size_t i)
{
    return i < window->entry_count && !(window->entries[i] & TBD_ENTRY_MESSAGE);
}

static bool has_kind(const struct tbd_block *block, uint8_t kind)
{
    for (uint16_t i = 0; i < block->def.op_count; i++) {
        if (block->ops[i].kind == kind)
            return true;
    }
    return false;
}

static bool touches(const struct wish *wish, const struct tbd_cursor *c)
{
    for (uint16_t i = 0; i < c->block->def.op_count; i++) {
        const struct tbd_op *op = &c->block->ops[i];
        uint64_t address = 0;

        if (op->kind != TBD_OP_STORE)
            continue;
        if (op->base != TBD_BASE_NONE)
            memcpy(&address, c->record + op->base, sizeof(address));
        address += (uint64_t)op->add;
        for (uint32_t k = 0; k < wish->pick.range_count; k++) {
            const struct tbd_pick_range *range = &wish->pick.ranges[k];

            if (address < range->end && address + op->size > range->start)
                return true;
        }
    }
    return false;
}

static uint8_t wanted(const struct wish *wish, uint32_t id)
{
    return id < wish->pick.block_count ? wish->blocks[id] : 0;
}

static bool wants_entered(const struct wish *wish)
{
    for (uint32_t id = 0; id < wish->pick.block_count; id++) {
        if (wish->blocks[id] == TBD_PICK_ENTERED)
            return true;
    }
    return false;
}

static bool is_call(const struct tbd_window *window, size_t i)
{
    return is_block(window, i) &&
           has_kind(tbd_window_block(window, window->entries[i]), TBD_OP_CALL);
}

static bool with_ops(const struct wish *wish, const struct tbd_cursor *c)
{
    const struct tbd_window *window = c->window;
    bool calls = has_kind(c->block, TBD_OP_CALL);

    if (wanted(wish, c->id) == TBD_PICK_OPS || touches(wish, c))
        return true;
    if (wish->pick.calls && (calls || has_kind(c->block, TBD_OP_RET)))
        return true;
    return wants_entered(wish) && calls &&
           (!is_block(window, c->entry + 1) ||
            wanted(wish, window->entries[c->entry + 1]) == TBD_PICK_ENTERED);
}

static bool is_led(const struct wish *wish, const struct tbd_window *window, size_t i)
{
    return wanted(wish, window->entries[i]) == TBD_PICK_LEADING ||
           (i && is_block(window, i - 1) &&
            wanted(wish, window->entries[i - 1]) == TBD_PICK_LEADING);
}

/* `before`: the entry before was a call that is picked with its ops. */
static bool without_ops(const struct wish *wish, const struct tbd_cursor *c, bool before)
{
    const struct tbd_window *window = c->window;

    return !c->entry || !is_block(window, c->entry - 1) || !is_block(window, c->entry + 1) ||
           wanted(wish, c->id) == TBD_PICK_ENTRIES || (before && wants_entered(wish)) ||
           is_led(wish, window, c->entry) ||
           (wanted(wish, c->id) == TBD_PICK_ENTERED && is_call(window, c->entry - 1));
}

/* ---- comparing ---- */

static void compare_block(const struct tbd_cursor *c, const struct tbd_cursor *p, bool ops)
{
    assert_int_equal(p->kind, TBD_AT_BLOCK);
    assert_int_equal(p->id, c->id);
    assert_ptr_equal(p->block, c->block);
    assert_int_equal(p->time, c->time);
    assert_int_equal(p->thread, c->thread);
    assert_int_equal(p->op_limit, ops ? c->op_limit : 0);
    assert_int_equal(tbd_cursor_insn_limit(p), tbd_cursor_insn_limit(c));
    if (ops)
        assert_memory_equal(p->record, c->record, c->block->def.operand_bytes);
}

static void compare_message(const struct tbd_cursor *c, const struct tbd_cursor *p)
{
    struct tbd_message head, other;

    memcpy(&head, c->message, sizeof(head));
    assert_int_equal(p->kind, TBD_AT_MESSAGE);
    memcpy(&other, p->message, sizeof(other));
    assert_int_equal(other.kind, head.kind);
    assert_int_equal(other.bytes, head.bytes);
    assert_memory_equal((const uint8_t *)p->message + sizeof(head),
                        (const uint8_t *)c->message + sizeof(head), head.bytes);
    assert_int_equal(p->time, c->time);
    assert_int_equal(p->began, c->began);
    assert_int_equal(p->thread, c->thread);
}

/* Returns how many entries were picked. */
static size_t compare(const struct wish *wish, const struct tbd_window *whole,
                      const struct tbd_window *picked)
{
    struct tbd_cursor c, p, found;
    bool before = false;
    size_t count = 0;

    assert_true(picked->is_picked && picked->has_events);
    tbd_cursor_first(picked, &p);
    for (tbd_cursor_first(whole, &c); c.kind != TBD_AT_END; tbd_cursor_skip_block(&c)) {
        bool ops = c.kind == TBD_AT_BLOCK && with_ops(wish, &c);

        if (c.kind == TBD_AT_MESSAGE)
            compare_message(&c, &p);
        else if (ops || without_ops(wish, &c, before))
            compare_block(&c, &p, ops);
        else
            continue;
        before = ops && has_kind(c.block, TBD_OP_CALL);
        if (c.kind == TBD_AT_BLOCK) {
            assert_true(tbd_cursor_seek(picked, c.time, &found));
            assert_int_equal(found.id, c.id);
            assert_int_equal(found.thread, c.thread);
        }
        tbd_cursor_skip_block(&p);
        count++;
    }
    assert_int_equal(p.kind, TBD_AT_END);
    return count;
}

static size_t pick_both_ways(struct tbd_trace *trace, struct tbd_picker *picker,
                             const struct wish *wish, uint32_t index)
{
    struct tbd_window *whole, *raw, *coded;
    struct tbd_error why;
    size_t count;

    assert_int_equal(tbd_window_load(trace, index, true, &whole, &why), TBD_OK);
    assert_int_equal(tbd_picker_pick(picker, whole, &raw), TBD_OK);
    assert_int_equal(tbd_window_load_picked(trace, index, picker, &coded, &why), TBD_OK);
    count = compare(wish, whole, raw);
    assert_int_equal(compare(wish, whole, coded), count);
    tbd_window_free(coded);
    tbd_window_free(raw);
    tbd_window_free(whole);
    return count;
}

/* ---- traces ---- */

static void *organize(void *options)
{
    enum tbd_status status = tbd_organize(options, NULL);

    return status == TBD_OK ? options : NULL;
}

/* Up to a hundred blocks, without a message between them. */
static void enter_many(struct sim *s)
{
    for (int i = 0; i < 100; i++) {
        uint32_t b = (uint32_t)random_below(SIM_BLOCKS);
        uint64_t address = SIM_BASE + random_below(SIM_PAGES * 4096ull - 512);
        uint8_t record[512] = { 0 };

        if (s->defs[b].end == TBD_END_SYSCALL)
            continue;
        memcpy(record, &address, sizeof(address));
        record[sizeof(address)] = (uint8_t)i;
        maker_enter(s->maker, s->ids[b], record, s->defs[b].operand_bytes);
    }
}

static void fill_long(struct sim *s, struct maker *m)
{
    sim_start(s, m, 77);
    for (int i = 0; i < 2500; i++) {
        sim_step(s);
        enter_many(s);
    }
    sim_end_window(s);
    sim_end(s);
}

/* `window_steps` 0: one long window. */
static void record(char *root, struct sim *s, uint64_t seed, uint32_t steps, uint32_t window_steps)
{
    struct tbd_organize_options options = { .root = root, .program = "pick", .threads = 1 };
    struct maker m;
    pthread_t organizer;
    void *good;

    assert_true(folder_make(root, "pick"));
    maker_open(&m, 0);
    options.stream_fd = m.fd;
    assert_int_equal(pthread_create(&organizer, NULL, organize, &options), 0);
    if (window_steps)
        sim_run(s, &m, seed, steps, window_steps);
    else
        fill_long(s, &m);
    pthread_join(organizer, &good);
    assert_non_null(good);
    maker_close(&m);
}

static struct tbd_trace *open_latest(const char *root)
{
    struct tbd_trace *trace;
    struct tbd_error why;
    char path[FOLDER_BYTES + 16];

    snprintf(path, sizeof(path), "%s/latest", root);
    assert_int_equal(tbd_trace_open(path, &trace, &why), TBD_OK);
    return trace;
}

static void what_is_picked_is_what_a_walk_would_find(void **state)
{
    size_t some = 0;
    uint64_t last = getenv("TBD_LONG") ? 6 : 4;

    (void)state;
    for (uint64_t seed = 1; seed <= last; seed++) {
        static struct sim s;
        struct tbd_trace *trace;
        char root[FOLDER_BYTES];

        random_state = seed;
        record(root, &s, seed, 3000, 700);
        trace = open_latest(root);
        for (int i = 0; i < 60; i++) {
            struct tbd_picker *picker;
            struct wish wish;

            wish_at_random(&wish, &s);
            picker = tbd_picker_new(&wish.pick);
            assert_non_null(picker);
            for (uint32_t w = 0; w < tbd_trace_window_count(trace); w++)
                some += pick_both_ways(trace, picker, &wish, w);
            tbd_picker_free(picker);
        }
        tbd_trace_close(trace);
        sim_free(&s);
        assert_true(folder_remove(root));
    }
    assert_true(some > 100000);
}

/* More than one segment of coded records, and segments without wanted blocks. */
static void long_windows_are_picked_and_too_much_is_refused(void **state)
{
    static struct sim s;
    struct tbd_trace *trace;
    struct tbd_picker *picker;
    struct tbd_window *window;
    struct tbd_error why;
    struct wish wish;
    char root[FOLDER_BYTES];

    (void)state;
    random_state = 5;
    record(root, &s, 77, 0, 0);
    trace = open_latest(root);
    for (int i = 0; i < 4; i++) {
        wish_at_random(&wish, &s);
        memset(wish.blocks, 0, sizeof(wish.blocks));
        wish.pick.calls = false;
        wish.pick.range_count = 1;
        wish.pick.ranges[0] =
            (struct tbd_pick_range){ s.stores[i * 100].address, s.stores[i * 100].address + 8 };
        picker = tbd_picker_new(&wish.pick);
        assert_in_range(pick_both_ways(trace, picker, &wish, 0), 1000, 60000);
        tbd_picker_free(picker);
    }
    memset(wish.blocks, TBD_PICK_OPS, sizeof(wish.blocks));
    wish.pick.block_count = SIM_BLOCKS + 1;
    picker = tbd_picker_new(&wish.pick);
    assert_int_equal(tbd_window_load_picked(trace, 0, picker, &window, &why), TBD_NOTFOUND);
    assert_null(window);
    tbd_picker_free(picker);
    tbd_trace_close(trace);
    sim_free(&s);
    assert_true(folder_remove(root));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_picked_is_what_a_walk_would_find),
        cmocka_unit_test(long_windows_are_picked_and_too_much_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
