// SPDX-License-Identifier: MIT
// links: tbd_query
/* test_query_scan.c - events of a window made by hand, values found late, call stacks kept up */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "format/coding/pick.h"
#include "format/window/window_make.h"
#include "query/search/probes.h"
#include "query/search/scan.h"
#include "query/session/callers.h"

#include <stdlib.h>
#include <string.h>

/* ---- probes against a model: a page of memory that really changes ---- */

#define PAGE   0x700000ull
#define PROBES 3000

static uint32_t random_state = 12345;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % limit;
}

struct expectation {
    uint32_t number;
    uint64_t value;
};

static uint64_t model_value(const uint8_t *memory, uint32_t offset, uint32_t size)
{
    uint64_t value = 0;

    memcpy(&value, memory + offset, size);
    return value;
}

static void probe_model(struct tbd_probes *probes, const uint8_t *memory, bool after,
                        struct expectation *out)
{
    uint32_t size = 1 + random_below(8);
    uint32_t offset = random_below(96);

    out->number = tbd_probes_add(probes, (struct tbd_position){ 0 }, PAGE + offset, size, after);
    out->value = model_value(memory, offset, size);
}

/* A place that is asked for again and again, so that some of its probes share an answer. */
static void probe_again(struct tbd_probes *probes, const uint8_t *memory, struct expectation *out)
{
    uint32_t offset = 8 * random_below(4);

    out->number = tbd_probes_add(probes, (struct tbd_position){ 0 }, PAGE + offset, 8, false);
    out->value = model_value(memory, offset, 8);
}

/* An instruction with up to two stores, probes before and one after it. */
static void one_instruction(struct tbd_probes *probes, uint8_t *memory, uint8_t *log,
                            struct expectation *out)
{
    uint32_t stores = random_below(3);

    probe_model(probes, memory, false, &out[0]);
    probe_again(probes, memory, &out[2]);
    for (uint32_t i = 0; i < stores; i++) {
        uint32_t size = random_below(10) == 0 ? 1 + random_below(60) : 1 + random_below(8);
        uint32_t offset = random_below(64);

        memcpy(log + (size_t)i * 64, memory + offset, size);
        for (uint32_t b = 0; b < size; b++)
            memory[offset + b] = (uint8_t)random_below(256);
        tbd_probes_store(probes, 0, PAGE + offset, size, log + (size_t)i * 64);
    }
    probe_model(probes, memory, true, &out[1]);
    tbd_probes_step(probes);
}

static void probes_find_what_memory_held(void **state)
{
    static struct expectation expected[PROBES * 3];
    static uint8_t memory[4096];
    uint8_t *log = calloc(PROBES, 128);
    struct tbd_page_contents page = { .address = PAGE, .bytes = memory };
    struct tbd_window window = { .dirty = &page, .dirty_count = 1 };
    struct tbd_probes *probes;
    uint64_t value;

    (void)state;
    assert_non_null(log);
    assert_int_equal(tbd_probes_new(NULL, &window, &probes), TBD_OK);
    for (size_t i = 0; i < PROBES; i++)
        one_instruction(probes, memory, log + i * 128, &expected[i * 3]);
    tbd_probes_finish(probes);
    for (size_t i = 0; i < PROBES * 3; i++) {
        assert_true(tbd_probes_answer(probes, expected[i].number, &value));
        assert_int_equal(value, expected[i].value);
    }
    tbd_probes_free(probes);
    free(log);
}

/* So many words that the table of those that are waited for grows. */
static void many_words_can_be_waited_for(void **state)
{
    enum { WORDS = 2000 };
    static uint32_t numbers[WORDS];
    static uint64_t old[WORDS]; /* stays, as in a window */
    struct tbd_window window = { .complete = true };
    struct tbd_probes *probes;

    (void)state;
    assert_int_equal(tbd_probes_new(NULL, &window, &probes), TBD_OK);
    for (uint64_t i = 0; i < WORDS; i++)
        numbers[i] = tbd_probes_add(probes, (struct tbd_position){ 0 }, PAGE + i * 296, 8, false);
    for (uint64_t i = 0; i < WORDS; i++) {
        old[i] = i * 3 + 1;
        tbd_probes_step(probes);
        tbd_probes_store(probes, 0, PAGE + i * 296, 8, (const uint8_t *)&old[i]);
    }
    tbd_probes_finish(probes);
    for (uint64_t i = 0; i < WORDS; i++) {
        uint64_t value;

        assert_true(tbd_probes_answer(probes, numbers[i], &value));
        assert_int_equal(value, old[i]);
    }
    tbd_probes_free(probes);
}

static void probes_do_not_invent_bytes(void **state)
{
    static const uint8_t memory[4096] = { 1, 2, 3 };
    struct tbd_page_contents page = { .address = PAGE, .bytes = memory };
    struct tbd_window window = { .dirty = &page, .dirty_count = 1 };
    struct tbd_probes *probes;
    uint64_t value;
    uint32_t number;

    (void)state;
    assert_int_equal(tbd_probes_new(NULL, &window, &probes), TBD_OK);
    number = tbd_probes_add(probes, (struct tbd_position){ 0 }, PAGE, 2, false);
    tbd_probes_store(probes, 0, PAGE + 1, 1, NULL); /* old bytes not known */
    tbd_probes_finish(probes);
    assert_false(tbd_probes_answer(probes, number, &value));
    assert_false(tbd_probes_answer(probes, 99, &value));
    tbd_probes_free(probes);
}

/* ---- stack of callers ---- */

static void returns_and_calls_remove_dead_frames(void **state)
{
    struct tbd_callers callers = { 0 };
    const uint64_t *pcs;
    size_t count;

    (void)state;
    assert_true(tbd_callers_call(&callers, 0x1000, 0xa, 0));
    assert_true(tbd_callers_call(&callers, 0x0f00, 0xb, 0));
    assert_true(tbd_callers_call(&callers, 0x0e00, 0xc, 0));
    pcs = tbd_callers_pcs(&callers, 0xd, &count);
    assert_int_equal(count, 4);
    assert_int_equal(pcs[0], 0xd);
    assert_int_equal(pcs[1], 0xc);
    assert_int_equal(pcs[3], 0xa);
    tbd_callers_return(&callers, 0x0e00);
    tbd_callers_pcs(&callers, 1, &count);
    assert_int_equal(count, 3);
    assert_true(
        tbd_callers_call(&callers, 0x0f80, 0xe, 0)); /* longjmp dropped the frame at 0x0f00 */
    pcs = tbd_callers_pcs(&callers, 1, &count);
    assert_int_equal(count, 3);
    assert_int_equal(pcs[1], 0xe);
    tbd_callers_free(&callers);
}

static void a_frame_is_found_by_its_slot(void **state)
{
    struct tbd_callers callers = { 0 };
    const struct tbd_callers_frame *frame;
    bool is_over;

    (void)state;
    assert_true(tbd_callers_call(&callers, 0x1000, 0xa, 7));
    assert_true(tbd_callers_call(&callers, 0x0f00, 0xb, 8));
    frame = tbd_callers_at(&callers, 0x0f00, &is_over);
    assert_true(frame != NULL && !is_over);
    assert_int_equal(frame->call_pc, 0xb);
    assert_int_equal(frame->time, 8);
    frame = tbd_callers_at(&callers, 0x1000, &is_over);
    assert_true(frame != NULL && is_over && frame->time == 7);
    assert_null(tbd_callers_at(&callers, 0x0f80, &is_over));
    assert_true(is_over);
    assert_null(tbd_callers_at(&callers, 0x0e00, &is_over));
    assert_false(is_over);
    assert_null(tbd_callers_at(&callers, 0x1008, &is_over));
    assert_true(is_over);
    tbd_callers_free(&callers);
}

/* ---- a window by hand ----
 * block 1 at 0x1000: store of 8 bytes to 0x4000 (insn 0); call (insn 1) with its push
 * block 2 at 0x2000: store of 4 bytes to 0x4004 (insn 0); return (insn 1)
 * block 3 at 0x3000: system call (insn 0) */

#define SP 0x8000ull

struct maker {
    uint32_t entries[64];
    size_t entry_count;
    uint8_t operands[4096];
    size_t operand_bytes;
};

static void put(struct maker *m, const void *bytes, size_t count)
{
    memcpy(m->operands + m->operand_bytes, bytes, count);
    m->operand_bytes += count;
}

static void put_number(struct maker *m, uint64_t value, size_t bytes)
{
    put(m, &value, bytes);
}

static void enter_caller(struct maker *m, uint64_t old)
{
    m->entries[m->entry_count++] = 1;
    put_number(m, old, 8);
    put_number(m, SP, 8);
    for (uint64_t i = 1; i <= 6; i++)
        put_number(m, i * 0x10, 8);
    put_number(m, 0, 8); /* what the push overwrote */
}

static void enter_callee(struct maker *m, uint32_t old, uint64_t retval)
{
    m->entries[m->entry_count++] = 2;
    put_number(m, old, 4);
    put_number(m, SP - 8, 8);
    put_number(m, retval, 8);
}

static void enter_syscall(struct maker *m)
{
    struct tbd_message message = { TBD_MSG_SYSCALL, sizeof(struct tbd_msg_syscall) + 16 + 4 };
    struct tbd_msg_syscall call = {
        .number = 0, .args = { 3, 0x4000, 2 }, .result = 2, .write_count = 1
    };
    struct tbd_write write = { .address = 0x4000, .bytes = 2 };

    m->entries[m->entry_count++] = 3;
    m->entries[m->entry_count++] = TBD_ENTRY_MESSAGE | TBD_MSG_SYSCALL;
    put(m, &message, sizeof(message));
    put(m, &call, sizeof(call));
    put(m, &write, sizeof(write));
    put(m, "\x01\x02\x0a\x0b", 4);
}

static const struct tbd_op caller_ops[] = {
    { .kind = TBD_OP_STORE, .insn = 0, .size = 8, .data = 0, .base = TBD_BASE_NONE, .add = 0x4000 },
    { .kind = TBD_OP_CALL, .insn = 1, .data = 8, .base = TBD_BASE_NONE },
    { .kind = TBD_OP_STORE, .insn = 1, .size = 8, .data = 64, .base = 8, .add = -8 },
};
static const struct tbd_op callee_ops[] = {
    { .kind = TBD_OP_STORE, .insn = 0, .size = 4, .data = 0, .base = TBD_BASE_NONE, .add = 0x4004 },
    { .kind = TBD_OP_RET, .insn = 1, .data = 4, .base = TBD_BASE_NONE },
};

static void define(struct tbd_block_table *table, uint32_t id, uint64_t start,
                   const struct tbd_op *ops, uint16_t op_count, uint32_t operand_bytes, uint8_t end)
{
    static const uint8_t code[4] = { 0x90, 0x90, 0x90, 0x90 };
    struct tbd_block_def def = { .start = start,
                                 .code_bytes = 2,
                                 .operand_bytes = operand_bytes,
                                 .op_count = op_count,
                                 .insn_count = 2,
                                 .end = end,
                                 .last_insn = 1 };

    assert_int_equal(tbd_block_table_put(table, id, &def, ops, code), TBD_OK);
}

static struct tbd_window *make_window(struct maker *m)
{
    struct tbd_block_table *table = tbd_block_table_new();
    struct tbd_window *window;
    size_t entry;

    define(table, 1, 0x1000, caller_ops, 3, 72, TBD_END_CALL);
    define(table, 2, 0x2000, callee_ops, 2, 20, TBD_END_RETURN);
    define(table, 3, 0x3000, NULL, 0, 0, TBD_END_SYSCALL);
    window = tbd_window_new(table);
    tbd_block_table_release(table);
    assert_non_null(window);
    window->first_time = 100;
    window->complete = true;
    window->end_regs.rip = 0x2000;
    window->entries = m->entries;
    window->entry_count = m->entry_count;
    window->operands = m->operands;
    window->operand_bytes = m->operand_bytes;
    for (size_t i = 0; i < m->entry_count; i++)
        window->blocks += (m->entries[i] & TBD_ENTRY_MESSAGE) == 0;
    assert_int_equal(tbd_window_index(window, &entry), TBD_OK);
    return window;
}

struct collected {
    struct tbd_event events[32];
    size_t count;
    size_t stop_at;
};

static bool collect(void *context, struct tbd_event *event)
{
    struct collected *all = context;

    assert_true(all->count < 32);
    all->events[all->count++] = *event;
    return all->count != all->stop_at;
}

static struct collected scan(const struct tbd_window *window, enum tbd_event_type type,
                             struct tbd_span span)
{
    struct collected all = { 0 };
    struct tbd_disas *disas;
    struct tbd_scan walk = {
        .window = window, .type = type, .span = span, .emit = collect, .context = &all
    };

    assert_int_equal(tbd_disas_new(NULL, NULL, TBD_SYNTAX_INTEL, &disas), TBD_OK);
    walk.disas = disas;
    tbd_scan_run(&walk);
    tbd_disas_free(disas);
    return all;
}

static const struct tbd_span everything = { .from_start = true, .to_end = true };

/* Borrows from *m. */
static struct tbd_window *usual_window(struct maker *m)
{
    *m = (struct maker){ 0 };
    enter_caller(m, 0x1111111111111111);
    enter_callee(m, 0x22222222, 42);
    enter_syscall(m);
    enter_caller(m, 0x3333333333333333);
    return make_window(m);
}

static void stores_include_those_of_system_calls(void **state)
{
    struct maker m;
    struct tbd_window *window = usual_window(&m);
    struct collected all;

    (void)state;
    all = scan(window, TBD_EVENT_STORE, everything);
    assert_int_equal(all.count, 6);
    assert_int_equal(all.events[0].addr, 0x4000);
    assert_int_equal(tbd_event_bytes_value(all.events[0].old, 8), 0x1111111111111111);
    assert_int_equal(all.events[1].addr, SP - 8);
    assert_int_equal(all.events[1].position.offset, 1);
    assert_int_equal(all.events[2].position.time, 101);
    assert_int_equal(all.events[3].addr, 0x4000); /* by read() */
    assert_int_equal(all.events[3].size, 2);
    assert_int_equal(all.events[3].position.time, 102);
    assert_memory_equal(all.events[3].fresh, "\x0a\x0b", 2);
    assert_memory_equal(all.events[3].old, "\x01\x02", 2);
    assert_int_equal(all.events[4].position.time, 103);
    tbd_window_free(window);
}

static void functions_are_entered_at_the_called_block(void **state)
{
    struct maker m;
    struct tbd_window *window = usual_window(&m);
    struct collected all;

    (void)state;
    all = scan(window, TBD_EVENT_FUNC_ENTER, everything);
    assert_int_equal(all.count, 2);
    assert_int_equal(all.events[0].position.time, 101);
    assert_int_equal(all.events[0].position.offset, 0);
    assert_int_equal(all.events[0].pc, 0x2000);
    assert_int_equal(all.events[0].sp, SP - 8);
    assert_int_equal(all.events[0].args[5], 0x60);
    assert_int_equal(all.events[1].position.time, 104); /* the window ends with this call */
    assert_int_equal(all.events[1].pc, 0x2000);
    all = scan(window, TBD_EVENT_FUNC_EXIT, everything);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.events[0].retval, 42);
    assert_int_equal(all.events[0].sp, SP - 8);
    assert_int_equal(all.events[0].position.offset, 1);
    tbd_window_free(window);
}

static void system_calls_and_block_entries_are_found(void **state)
{
    struct maker m;
    struct tbd_window *window = usual_window(&m);
    struct collected all;

    (void)state;
    all = scan(window, TBD_EVENT_SYSCALL, everything);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.events[0].args[1], 0x4000);
    assert_int_equal(all.events[0].retval, 2);
    all = scan(window, TBD_EVENT_BLOCK_ENTRY, everything);
    assert_int_equal(all.count, 4);
    assert_int_equal(all.events[3].position.time, 103);
    tbd_window_free(window);
}

static void spans_are_strict_on_both_sides(void **state)
{
    struct maker m;
    struct tbd_window *window = usual_window(&m);
    struct collected all;
    struct tbd_span span = { .after = { 100, 0 }, .before = { 103, 1 } };

    (void)state;
    all = scan(window, TBD_EVENT_STORE, span);
    assert_int_equal(all.count, 4); /* not 100+0, not 103+1 */
    assert_int_equal(all.events[0].position.offset, 1);
    assert_int_equal(all.events[3].position.time, 103);
    span = (struct tbd_span){ .after = { 101, 5 }, .to_end = true };
    all = scan(window, TBD_EVENT_FUNC_ENTER, span);
    assert_int_equal(all.count, 1);
    tbd_window_free(window);
}

static void interrupted_blocks_have_only_what_ran(void **state)
{
    struct maker m = { 0 };
    struct tbd_message message = { TBD_MSG_INTERRUPTED, 8 };
    struct tbd_window *window;
    struct collected all;

    (void)state;
    enter_callee(&m, 1, 2);
    enter_caller(&m, 0);
    m.entries[m.entry_count++] = TBD_ENTRY_MESSAGE | TBD_MSG_INTERRUPTED;
    put(&m, &message, sizeof(message));
    put_number(&m, 1, 8); /* instruction 0 ran, the call did not */
    window = make_window(&m);
    all = scan(window, TBD_EVENT_STORE, everything);
    assert_int_equal(all.count, 2);
    all = scan(window, TBD_EVENT_FUNC_ENTER, everything);
    assert_int_equal(all.count, 0);
    tbd_window_free(window);
}

/* The events of a question: all in the callee, and stores that touch 0x4000 .. 0x4008. */
static bool is_asked_for(const struct tbd_event *event)
{
    if (event->type == TBD_EVENT_STORE)
        return event->addr < 0x4008 && event->addr + event->size > 0x4000;
    return event->type == TBD_EVENT_SYSCALL || event->pc - 0x2000 < 2;
}

static size_t next_asked_for(const struct collected *all, size_t i)
{
    while (i < all->count && !is_asked_for(&all->events[i]))
        i++;
    return i;
}

/* Returns the number of events. */
static size_t same_events(const struct collected *whole, const struct collected *picked)
{
    size_t a = next_asked_for(whole, 0), b = next_asked_for(picked, 0), count = 0;

    for (; a < whole->count && b < picked->count;
         a = next_asked_for(whole, a + 1), b = next_asked_for(picked, b + 1)) {
        const struct tbd_event *x = &whole->events[a], *y = &picked->events[b];

        assert_int_equal(tbd_position_compare(x->position, y->position), 0);
        assert_int_equal(x->pc, y->pc);
        assert_int_equal(x->addr, y->addr);
        assert_int_equal(x->size, y->size);
        assert_int_equal(x->sp, y->sp);
        assert_int_equal(x->from, y->from);
        assert_int_equal(x->retval, y->retval);
        assert_memory_equal(x->args, y->args, sizeof(x->args));
        count++;
    }
    assert_int_equal(a, whole->count);
    assert_int_equal(b, picked->count);
    return count;
}

static size_t pick_and_compare(const struct tbd_window *window, enum tbd_event_type type,
                               uint8_t callee)
{
    const uint8_t blocks[] = { 0, 0, callee, 0 };
    struct tbd_pick pick = { .blocks = blocks, .block_count = 4 };
    struct collected whole = scan(window, type, everything), few;
    struct tbd_picker *picker;
    struct tbd_window *picked;
    size_t count;

    pick.range_count = type == TBD_EVENT_STORE;
    pick.ranges[0] = (struct tbd_pick_range){ 0x4000, 0x4008 };
    picker = tbd_picker_new(&pick);
    assert_int_equal(tbd_picker_pick(picker, window, &picked), TBD_OK);
    few = scan(picked, type, everything);
    count = same_events(&whole, &few);
    tbd_window_free(picked);
    tbd_picker_free(picker);
    return count;
}

static void a_picked_window_has_the_events_asked_for(void **state)
{
    struct tbd_message message = { TBD_MSG_INTERRUPTED, 8 };
    struct maker m = { 0 };
    struct tbd_window *window;

    (void)state;
    enter_caller(&m, 1);
    enter_callee(&m, 2, 42);
    enter_syscall(&m);
    enter_caller(&m, 3);
    enter_syscall(&m);
    enter_callee(&m, 7, 9);
    enter_callee(&m, 8, 10);
    m.entries[m.entry_count++] = TBD_ENTRY_MESSAGE | TBD_MSG_INTERRUPTED;
    put(&m, &message, sizeof(message));
    put_number(&m, 1, 8);
    enter_caller(&m, 5);
    window = make_window(&m);
    assert_int_equal(pick_and_compare(window, TBD_EVENT_STORE, 0), 8);
    assert_int_equal(pick_and_compare(window, TBD_EVENT_FUNC_ENTER, TBD_PICK_ENTERED), 2);
    assert_int_equal(pick_and_compare(window, TBD_EVENT_FUNC_EXIT, TBD_PICK_OPS), 2);
    assert_int_equal(pick_and_compare(window, TBD_EVENT_BLOCK_ENTRY, TBD_PICK_ENTRIES), 3);
    assert_int_equal(pick_and_compare(window, TBD_EVENT_SYSCALL, 0), 2);
    tbd_window_free(window);
}

struct depths {
    struct tbd_callers *callers;
    size_t depth[32];
    size_t count;
};

static bool note_depth(void *context, struct tbd_event *event)
{
    struct depths *depths = context;

    (void)event;
    assert_true(depths->count < 32);
    depths->depth[depths->count++] = depths->callers->count;
    return true;
}

static void a_call_is_on_the_stack_from_the_next_instruction_on(void **state)
{
    /* the push itself is still the caller's */
    static const size_t expected[] = { 0, 0, 1, 0, 0, 0 };
    struct maker m;
    struct tbd_callers callers = { 0 };
    struct depths depths = { .callers = &callers };
    struct tbd_scan walk = { .type = TBD_EVENT_STORE,
                             .span = everything,
                             .callers = &callers,
                             .emit = note_depth,
                             .context = &depths };
    struct tbd_window *window;

    (void)state;
    window = usual_window(&m);
    walk.window = window;
    assert_int_equal(tbd_disas_new(NULL, NULL, TBD_SYNTAX_INTEL, &walk.disas), TBD_OK);
    tbd_scan_run(&walk);
    assert_int_equal(depths.count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(depths.depth[i], expected[i]);
    assert_int_equal(callers.count, 1);
    tbd_disas_free(walk.disas);
    tbd_callers_free(&callers);
    tbd_window_free(window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probes_find_what_memory_held),
        cmocka_unit_test(many_words_can_be_waited_for),
        cmocka_unit_test(probes_do_not_invent_bytes),
        cmocka_unit_test(returns_and_calls_remove_dead_frames),
        cmocka_unit_test(a_frame_is_found_by_its_slot),
        cmocka_unit_test(stores_include_those_of_system_calls),
        cmocka_unit_test(functions_are_entered_at_the_called_block),
        cmocka_unit_test(system_calls_and_block_entries_are_found),
        cmocka_unit_test(spans_are_strict_on_both_sides),
        cmocka_unit_test(interrupted_blocks_have_only_what_ran),
        cmocka_unit_test(a_picked_window_has_the_events_asked_for),
        cmocka_unit_test(a_call_is_on_the_stack_from_the_next_instruction_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
