// links: tbd_replay tbd_format tbd_base
// SPDX-License-Identifier: MIT
/* A replayed window against a recorded one: equal windows agree, and each kind of difference is
 * found and reported with its position. */
#include "base/layout.h"
#include "format/window/window_make.h"
#include "replay/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FIRST_TIME 1000u
#define BLOCKS     3u

static const uint8_t code[4] = { 0x48, 0x89, 0x03, 0xc3 }; /* mov [rbx], rax; ret */

/* Record: address of the store, its old bytes. */
struct record {
    uint64_t address;
    uint64_t old;
};

struct call {
    struct tbd_message head;
    struct tbd_msg_syscall call;
};

/* A window and the memory that it points to. */
struct made {
    struct tbd_window *window;
    uint32_t entries[BLOCKS + 1];
    uint8_t operands[BLOCKS * sizeof(struct record) + sizeof(struct call)];
    struct tbd_log_entry log;
    uint8_t xsave[64];
    uint8_t page[TBD_PAGE_SIZE];
    struct tbd_page_contents dirty;
};

static struct tbd_block_table *make_blocks(void)
{
    struct tbd_block_table *table = tbd_block_table_new();
    struct tbd_op op = { .kind = TBD_OP_STORE, .size = 8, .data = 8, .base = 0 };

    for (uint32_t id = 1; id <= 2; id++) {
        struct tbd_block_def def = { .start = 0x400000 + id,
                                     .code_bytes = 4,
                                     .op_count = 1,
                                     .operand_bytes = sizeof(struct record),
                                     .insn_count = 2,
                                     .end = TBD_END_RETURN,
                                     .last_insn = 3 };

        assert_int_equal(tbd_block_table_put(table, id, &def, &op, code), TBD_OK);
    }
    return table;
}

static void index_window(struct made *made)
{
    size_t entry;

    assert_int_equal(tbd_window_index(made->window, &entry), TBD_OK);
}

/* Three blocks that store, a system call after the second. */
static void make(struct made *made, struct tbd_block_table *table)
{
    struct call call = { { TBD_MSG_SYSCALL, sizeof(call.call) }, { .number = 39, .result = 7 } };
    uint8_t *at = made->operands;

    memset(made, 0, sizeof(*made));
    made->window = tbd_window_new(table);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct record record = { 0x600000 + 8 * i, i };

        made->entries[i + (i == 2)] = 1;
        memcpy(at, &record, sizeof(record));
        at += sizeof(record);
        if (i != 1)
            continue;
        made->entries[2] = TBD_ENTRY_MESSAGE | TBD_MSG_SYSCALL;
        made->log = (struct tbd_log_entry){ 2, (const void *)at };
        memcpy(at, &call, sizeof(call));
        at += sizeof(call);
    }
    made->dirty = (struct tbd_page_contents){ .address = 0x600000, .bytes = made->page };
    made->window->first_time = FIRST_TIME;
    made->window->blocks = BLOCKS;
    made->window->complete = made->window->has_events = true;
    made->window->entries = made->entries;
    made->window->entry_count = BLOCKS + 1;
    made->window->operands = made->operands;
    made->window->operand_bytes = sizeof(made->operands);
    made->window->log = &made->log;
    made->window->log_count = 1;
    made->window->end_regs.xsave_bytes = sizeof(made->xsave);
    made->window->end_xsave = made->xsave;
    made->window->dirty = &made->dirty;
    made->window->dirty_count = 1;
    index_window(made);
}

static struct tbd_block_table *table;
static struct made play, replay;

static int set_up(void **state)
{
    (void)state;
    table = make_blocks();
    make(&play, table);
    make(&replay, table);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tbd_window_free(play.window);
    tbd_window_free(replay.window);
    tbd_block_table_release(table);
    return 0;
}

static void expect(uint64_t time, uint32_t offset, const char *words)
{
    struct tbd_divergence found = { 0 };

    index_window(&replay);
    assert_int_equal(tbd_compare_windows(play.window, replay.window, &found), TBD_DIVERGED);
    assert_int_equal(found.position.time, FIRST_TIME + time);
    assert_int_equal(found.position.offset, offset);
    if (!strstr(found.what, words))
        fail_msg("\"%s\" is not in \"%s\"", words, found.what);
    assert_int_equal(tbd_compare_windows(play.window, replay.window, NULL), TBD_DIVERGED);
}

static struct record *record_of(struct made *made, unsigned i)
{
    return (void *)(made->operands + i * sizeof(struct record) + (i > 1 ? sizeof(struct call) : 0));
}

static void equal_windows_agree(void **state)
{
    struct tbd_divergence found;

    (void)state;
    assert_int_equal(tbd_compare_windows(play.window, replay.window, &found), TBD_OK);
    play.window->has_events = false; /* level 1: the rest is compared */
    replay.entries[0] = 2;
    assert_int_equal(tbd_compare_windows(play.window, replay.window, &found), TBD_OK);
}

static void another_block(void **state)
{
    (void)state;
    replay.entries[1] = 2;
    expect(1, 0, "block 0x400002 where play had block 0x400001");
}

static void another_store(void **state)
{
    (void)state;
    record_of(&replay, 2)->address = 0x600018;
    expect(2, 0, "a store to 0x600018 where play had one to 0x600010");
}

static void other_old_bytes(void **state)
{
    (void)state;
    record_of(&replay, 1)->old = 0x501;
    expect(1, 0, "the byte at 0x600009 is 0x5 before the store, in play it was 0x0");
}

static void another_message(void **state)
{
    (void)state;
    replay.operands[2 * sizeof(struct record) + sizeof(struct tbd_message) + 56] = 8;
    expect(1, 1, "byte 56 of a system call differs");
}

static void an_end_too_early(void **state)
{
    (void)state;
    replay.window->entry_count--;
    replay.window->operand_bytes -= sizeof(struct record);
    replay.window->blocks--;
    expect(2, 0, "the end of the window where play had block 0x400001");
}

/* All fields of a thread's registers at a window's end. */
static const struct {
    const char *name;
    size_t at;
} registers[] = {
#define GPR(name, which)                                                                           \
    {                                                                                              \
        name, offsetof(struct tbd_regs, gpr[which])                                                \
    }
    GPR("rax", TBD_RAX),
    GPR("rcx", TBD_RCX),
    GPR("rdx", TBD_RDX),
    GPR("rbx", TBD_RBX),
    GPR("rsp", TBD_RSP),
    GPR("rbp", TBD_RBP),
    GPR("rsi", TBD_RSI),
    GPR("rdi", TBD_RDI),
    GPR("r8", TBD_R8),
    GPR("r9", TBD_R9),
    GPR("r10", TBD_R10),
    GPR("r11", TBD_R11),
    GPR("r12", TBD_R12),
    GPR("r13", TBD_R13),
    GPR("r14", TBD_R14),
    GPR("r15", TBD_R15),
#undef GPR
    { "rip", offsetof(struct tbd_regs, rip) },
    { "rflags", offsetof(struct tbd_regs, rflags) },
    { "fs_base", offsetof(struct tbd_regs, fs_base) },
    { "gs_base", offsetof(struct tbd_regs, gs_base) },
};
_Static_assert(sizeof(registers) / sizeof(registers[0]) ==
                   offsetof(struct tbd_regs, thread) / sizeof(uint64_t),
               "each register has a row");

/* One bit of each register, low, in the middle and high, in the state at `replayed`. */
static void expect_each_register(struct tbd_regs *replayed)
{
    static const unsigned bits[] = { 0, 31, 32, 63 };

    for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
        for (size_t k = 0; k < sizeof(bits) / sizeof(bits[0]); k++) {
            uint64_t *reg = (void *)((uint8_t *)replayed + registers[i].at);
            char words[80];

            *reg ^= 1ull << bits[k];
            snprintf(words, sizeof(words), "%s is 0x%llx at the window's end, in play it was 0x0",
                     registers[i].name, (unsigned long long)*reg);
            expect(BLOCKS, 0, words);
            *reg = 0;
        }
    }
}

static void another_register(void **state)
{
    (void)state;
    expect_each_register(&replay.window->end_regs);
}

static void another_register_of_a_waiting_thread(void **state)
{
    struct tbd_thread_state played[2] = { { .regs.thread = 7 }, { .regs.thread = 9 } };
    struct tbd_thread_state replayed[2] = { { .regs.thread = 7 }, { .regs.thread = 9 } };

    (void)state;
    play.window->end_threads = played;
    replay.window->end_threads = replayed;
    play.window->end_thread_count = replay.window->end_thread_count = 2;
    assert_int_equal(tbd_compare_windows(play.window, replay.window, NULL), TBD_OK);
    expect_each_register(&replayed[0].regs);
    expect_each_register(&replayed[1].regs);
    replayed[1].regs.thread = 8;
    expect(BLOCKS, 0, "thread 8 waits at the window's end, in play it was 9");
    replay.window->end_thread_count = 1;
    expect(BLOCKS, 0, "1 threads wait at the window's end, in play it were 2");
    play.window->end_threads = replay.window->end_threads = NULL;
    play.window->end_thread_count = replay.window->end_thread_count = 0;
}

static void another_thread_in_control(void **state)
{
    (void)state;
    replay.window->end_regs.thread = 7;
    expect(BLOCKS, 0, "thread 7 has control at the window's end, in play it was 0");
}

static void other_vector_state(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(replay.xsave); i++) {
        char words[60];

        replay.xsave[i] = 1;
        snprintf(words, sizeof(words), "byte %u of the vector state is 0x1 at", i);
        expect(BLOCKS, 0, words);
        replay.xsave[i] = 0;
    }
    replay.window->end_regs.xsave_bytes = 8;
    expect(BLOCKS, 0, "the vector state has another size");
}

static void another_page(void **state)
{
    (void)state;
    replay.page[17] = 1;
    expect(BLOCKS, 0, "the byte at 0x600011 is 0x1 at the window's end");
    replay.dirty.address = 0x601000;
    expect(BLOCKS, 0, "page 0x600000 was not modified, in play it was");
    replay.window->dirty_count = 0;
    expect(BLOCKS, 0, "page 0x600000 was not modified, in play it was");
}

static void no_end_state(void **state)
{
    (void)state;
    replay.window->complete = false;
    expect(BLOCKS, 0, "the window has no end");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(equal_windows_agree),
        CASE(another_block),
        CASE(another_store),
        CASE(other_old_bytes),
        CASE(another_message),
        CASE(an_end_too_early),
        CASE(another_register),
        CASE(another_register_of_a_waiting_thread),
        CASE(another_thread_in_control),
        CASE(other_vector_state),
        CASE(another_page),
        CASE(no_end_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
