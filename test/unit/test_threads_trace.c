// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: stream_maker.c
/* Threads that take turns, from a stream through the organizer into a trace and back: each block's
 * thread, each thread's registers when a window began, and which blocks were entered by a call. */
#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "format/window/window_make.h"

#include "folder.h"
#include "organizer/organize.h"
#include "stream_maker.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define MAIN    77u
#define THREADS 4u
#define STEPS   6000u
#define WINDOW  37u
#define XSAVE   64u

enum { PLAIN = 1, CALL, FUNCTION, SYSTEM, IDS };

/* What the simulated program did. */
struct model {
    struct maker maker;
    uint64_t seed;
    uint32_t running; /* index of the thread */
    bool lives[THREADS];
    bool waits[THREADS];  /* in a system call */
    bool called[THREADS]; /* its last block was a call */
    uint64_t last_block[THREADS];
    uint64_t entered[THREADS];
    uint64_t switches;
    uint8_t thread_of[STEPS]; /* by time */
    uint8_t id_of[STEPS];
    bool by_call[STEPS];
    uint64_t window_start[STEPS];
    /* at the window's start, by window: rax + 1, 0: no such thread */
    uint64_t regs_at[STEPS][THREADS];
    uint8_t running_at[STEPS];
    bool called_at[STEPS][THREADS];
    uint32_t windows;
};

static uint32_t draw(struct model *m, uint32_t below)
{
    m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(m->seed >> 33) % below;
}

/* Every thread's rax counts the blocks it has entered. */
static size_t put_regs(const struct model *m, uint32_t thread, uint8_t *out)
{
    struct tbd_regs regs = { .thread = MAIN + thread, .xsave_bytes = XSAVE };

    regs.gpr[TBD_RAX] = m->entered[thread];
    memcpy(out, &regs, sizeof(regs));
    memset(out + sizeof(regs), (int)(m->entered[thread] & 0x7f), XSAVE);
    return sizeof(regs) + XSAVE;
}

static void send_regs(struct model *m, uint32_t thread)
{
    uint8_t payload[sizeof(struct tbd_regs) + XSAVE];

    put_regs(m, thread, payload);
    maker_message(&m->maker, TBD_MSG_REGS, payload, sizeof(payload));
}

static void send_thread(struct model *m, enum tbd_thread_event event, uint32_t thread,
                        uint32_t reason, uint64_t block_time)
{
    struct tbd_msg_thread message = { .event = event,
                                      .thread = MAIN + thread,
                                      .from = MAIN + m->running,
                                      .reason = reason,
                                      .block_time = block_time };
    uint8_t payload[sizeof(message) + sizeof(struct tbd_regs) + XSAVE];
    size_t bytes = sizeof(message);

    memcpy(payload, &message, sizeof(message));
    if (event == TBD_THREAD_START)
        bytes += put_regs(m, thread, payload + bytes);
    maker_message(&m->maker, TBD_MSG_THREAD, payload, bytes);
}

static void send_call(struct model *m, uint64_t number, uint64_t arg0, uint64_t arg1)
{
    struct tbd_msg_syscall call = { .number = number, .args = { arg0, arg1 } };

    maker_message(&m->maker, TBD_MSG_SYSCALL, &call, sizeof(call));
}

static void send_start(struct model *m)
{
    static const char strings[] = "/bin/sim\0sim\0/tmp";
    struct tbd_msg_start start = {
        .pid = MAIN, .tid = MAIN, .xsave_bytes = XSAVE, .argc = 1, .hook_set = TBD_HOOKS_PLAY
    };
    uint8_t payload[sizeof(start) + sizeof(strings)];

    memcpy(payload, &start, sizeof(start));
    memcpy(payload + sizeof(start), strings, sizeof(strings));
    maker_message(&m->maker, TBD_MSG_START, payload, sizeof(payload));
    send_regs(m, 0);
}

static void define_blocks(struct model *m)
{
    static const uint8_t ends[IDS] = { [PLAIN] = TBD_END_JUMP,
                                       [CALL] = TBD_END_CALL,
                                       [FUNCTION] = TBD_END_JUMP,
                                       [SYSTEM] = TBD_END_SYSCALL };
    struct tbd_op call = { .kind = TBD_OP_CALL, .insn = 1, .base = TBD_BASE_NONE };
    uint8_t code[16] = { 0 };

    for (uint32_t id = PLAIN; id < IDS; id++) {
        struct tbd_block_def def = { .start = 0x400000 + id * 16,
                                     .code_bytes = 16,
                                     .insn_count = 2,
                                     .last_insn = 8,
                                     .end = ends[id],
                                     .op_count = id == CALL,
                                     .operand_bytes = id == CALL ? 56 : 0 };

        code[0] = (uint8_t)id;
        assert_int_equal(maker_define(&m->maker, &def, &call, code), id);
    }
}

static void enter(struct model *m, uint32_t id)
{
    uint64_t time = m->maker.time;
    uint32_t thread = m->running;
    uint8_t record[56] = { 0 };

    m->thread_of[time] = (uint8_t)thread;
    m->id_of[time] = (uint8_t)id;
    m->by_call[time] = m->called[thread];
    m->called[thread] = id == CALL;
    m->last_block[thread] = time;
    m->entered[thread]++;
    maker_enter(&m->maker, id, record, id == CALL ? 56 : 0);
}

static void end_window(struct model *m)
{
    struct tbd_msg_window_end end = { .time = m->maker.time };

    for (uint32_t t = THREADS; t-- > 0;) /* any order: the reader has them by tid */
        if (m->lives[t] && t != m->running)
            send_regs(m, t);
    send_regs(m, m->running);
    maker_message(&m->maker, TBD_MSG_WINDOW_END, &end, sizeof(end));
    maker_turn(&m->maker, TBD_CHUNK_ENDS_WINDOW);
    m->windows++;
    m->window_start[m->windows] = end.time;
    m->running_at[m->windows] = (uint8_t)m->running;
    memcpy(m->called_at[m->windows], m->called, sizeof(m->called));
    for (uint32_t t = 0; t < THREADS; t++)
        m->regs_at[m->windows][t] = m->lives[t] ? m->entered[t] + 1 : 0;
}

/* Another thread gets control; one that waited in a system call returns from it. */
static void switch_to(struct model *m, uint32_t thread, enum tbd_thread_reason reason)
{
    send_thread(m, TBD_THREAD_SWITCH, thread, reason,
                m->waits[thread] ? m->last_block[thread] : TBD_NO_BLOCK_TIME);
    m->running = thread;
    m->switches++;
    if (m->waits[thread])
        send_call(m, SYS_read, 0, 0);
    m->waits[thread] = false;
}

static void step(struct model *m)
{
    uint32_t other = draw(m, THREADS), what = draw(m, 8);

    enter(m, what < 2 ? CALL : what < 4 ? FUNCTION : what < 5 ? SYSTEM : PLAIN);
    if (what == 4 && !m->lives[other]) {
        send_call(m, SYS_clone, 0, 0);
        m->lives[other] = true;
        send_thread(m, TBD_THREAD_START, other, 0, TBD_NO_BLOCK_TIME);
    } else if (what == 4 && other != m->running) {
        m->waits[m->running] = true;
        switch_to(m, other, TBD_SWITCH_BLOCKED);
    } else if (what == 4) {
        send_call(m, SYS_prctl, PR_SET_NAME, 0x1234);
    } else if (m->lives[other] && other != m->running && draw(m, 4) == 0) {
        switch_to(m, other, TBD_SWITCH_QUANTUM);
    }
    if (m->maker.time % WINDOW == 0)
        end_window(m);
}

static void *run_organizer(void *context)
{
    const struct tbd_organize_options *options = context;
    enum tbd_status status = tbd_organize(options, NULL);

    return (void *)(uintptr_t)status;
}

static char root[FOLDER_BYTES];

/* The program runs beside the organizer; the trace is opened afterwards. */
static struct tbd_trace *record(struct model *m, unsigned threads)
{
    struct tbd_organize_options options = { .root = root, .program = "sim", .threads = threads };
    struct tbd_trace *trace;
    pthread_t thread;
    void *status;

    m->lives[0] = true;
    maker_open(&m->maker, 23);
    options.stream_fd = m->maker.fd;
    assert_int_equal(pthread_create(&thread, NULL, run_organizer, &options), 0);
    send_start(m);
    define_blocks(m);
    while (m->maker.time < STEPS)
        step(m);
    if (m->maker.time % WINDOW)
        end_window(m);
    maker_finish(&m->maker);
    pthread_join(thread, &status);
    assert_int_equal((uintptr_t)status, TBD_OK);
    maker_close(&m->maker);
    assert_int_equal(tbd_trace_open(NULL, &trace, NULL), TBD_OK);
    assert_int_equal(tbd_trace_info(trace)->blocks, STEPS);
    assert_int_equal(tbd_trace_window_count(trace), m->windows);
    return trace;
}

/* ---- checks ---- */

static void check_states(const struct model *m, const struct tbd_window *window)
{
    size_t others = 0;

    if (!window->index)
        return;
    assert_int_equal(window->regs.thread, MAIN + m->running_at[window->index]);
    for (uint32_t t = 0; t < THREADS; t++) {
        const struct tbd_thread_state *state = &window->threads[others];

        if (!m->regs_at[window->index][t] || t == m->running_at[window->index])
            continue;
        assert_true(others++ < window->thread_count);
        assert_int_equal(state->regs.thread, MAIN + t);
        assert_int_equal(state->regs.gpr[TBD_RAX] + 1, m->regs_at[window->index][t]);
        assert_int_equal(state->xsave[XSAVE - 1], state->regs.gpr[TBD_RAX] & 0x7f);
    }
    assert_int_equal(others, window->thread_count);
}

static void check_called(const struct model *m, const struct tbd_window *window)
{
    for (uint32_t t = 0; t < THREADS && window->thread_count; t++) {
        bool called = false;

        for (size_t i = 0; i < window->called_count; i++)
            if (window->called[i].thread == MAIN + t) {
                called = true;
                assert_int_equal(window->called[i].id, CALL);
            }
        assert_int_equal(called, m->called_at[window->index][t]);
    }
}

static void check_enters(const struct model *m, const struct tbd_window *window)
{
    uint32_t enters[IDS] = { 0 }, last[IDS] = { 0 };

    for (uint64_t time = 0; time < window->blocks; time++)
        if (m->by_call[window->first_time + time]) {
            enters[m->id_of[window->first_time + time]]++;
            last[m->id_of[window->first_time + time]] = (uint32_t)time;
        }
    for (size_t i = 0; i < window->block_summary_count; i++) {
        const struct tbd_block_summary *block = &window->block_summaries[i];

        assert_int_equal(block->enters, enters[block->id]);
        if (block->enters)
            assert_int_equal(block->last_enter, last[block->id]);
    }
}

static void check_who_ran(const struct model *m, const struct tbd_trace *trace,
                          const struct tbd_window *window)
{
    for (uint32_t t = 0; t < THREADS; t++) {
        bool ran = false;

        for (uint64_t time = 0; time < window->blocks; time++)
            ran |= m->thread_of[window->first_time + time] == t;
        assert_true(tbd_trace_thread_ran(trace, window->index, MAIN + t) || !ran);
    }
}

static void check_order(const struct model *m, const struct tbd_window *window)
{
    struct tbd_cursor cursor, sought;

    for (tbd_cursor_first(window, &cursor); cursor.kind != TBD_AT_END; tbd_cursor_next(&cursor)) {
        if (cursor.kind == TBD_AT_BLOCK) {
            assert_int_equal(cursor.thread, MAIN + m->thread_of[cursor.time]);
            assert_int_equal(cursor.id, m->id_of[cursor.time]);
            assert_true(tbd_cursor_seek(window, cursor.time, &sought));
            assert_int_equal(sought.thread, cursor.thread);
        }
        assert_true(tbd_cursor_seek_index(window, cursor.index, &sought));
        assert_int_equal(sought.thread, cursor.thread);
        assert_int_equal(sought.began, cursor.began);
        /* the system call that a message is about is its thread's own */
        if (cursor.kind == TBD_AT_MESSAGE && tbd_message_kind(cursor.message) == TBD_MSG_SYSCALL) {
            assert_int_equal(m->thread_of[cursor.began] + MAIN, cursor.thread);
            assert_int_equal(m->id_of[cursor.began], SYSTEM);
        }
    }
}

static void check_table(const struct model *m, const struct tbd_trace *trace)
{
    uint64_t switches = 0;

    assert_int_equal(tbd_trace_thread_count(trace), THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        const struct tbd_thread_info *thread = tbd_trace_thread(trace, i);

        assert_int_equal(thread->blocks, m->entered[thread->tid - MAIN]);
        assert_ptr_equal(tbd_trace_thread_of(trace, thread->tid, STEPS), thread);
        switches += thread->switches;
    }
    assert_int_equal(switches, m->switches);
    assert_int_equal(tbd_trace_info(trace)->switches, m->switches);
    assert_null(tbd_trace_thread_of(trace, 1, 0));
}

static void check_trace(uint64_t seed, unsigned threads)
{
    struct model *m = calloc(1, sizeof(*m));
    struct tbd_trace *trace;

    assert_non_null(m);
    m->seed = seed;
    trace = record(m, threads);
    check_table(m, trace);
    for (uint32_t w = 0; w < m->windows; w++) {
        struct tbd_window *window;

        assert_int_equal(tbd_window_load(trace, w, true, &window, NULL), TBD_OK);
        assert_int_equal(tbd_window_digest(window), window->digest);
        check_states(m, window);
        check_called(m, window);
        check_enters(m, window);
        check_who_ran(m, trace, window);
        check_order(m, window);
        tbd_window_free(window);
    }
    tbd_trace_close(trace);
    free(m);
}

static void test_turns_in_order(void **state)
{
    (void)state;
    check_trace(1, 1);
}

static void test_turns_in_parallel(void **state)
{
    (void)state;
    for (uint64_t seed = 2; seed < 6; seed++)
        check_trace(seed, 4);
}

static void test_messages_are_checked(void **state)
{
    struct tbd_msg_thread message = { .event = TBD_THREAD_SWITCH, .thread = 5 };
    uint8_t payload[sizeof(message) + sizeof(struct tbd_regs)] = { 0 };

    (void)state;
    memcpy(payload, &message, sizeof(message));
    assert_true(tbd_message_check(TBD_MSG_THREAD, payload, sizeof(message)));
    assert_false(tbd_message_check(TBD_MSG_THREAD, payload, sizeof(message) - 1));
    message.event = TBD_THREAD_START;
    memcpy(payload, &message, sizeof(message));
    assert_false(tbd_message_check(TBD_MSG_THREAD, payload, sizeof(message)));
    assert_true(tbd_message_check(TBD_MSG_THREAD, payload, sizeof(payload)));
    message.event = 0;
    memcpy(payload, &message, sizeof(message));
    assert_false(tbd_message_check(TBD_MSG_THREAD, payload, sizeof(payload)));
    message.event = TBD_THREAD_END + 1;
    memcpy(payload, &message, sizeof(message));
    assert_false(tbd_message_check(TBD_MSG_THREAD, payload, sizeof(payload)));
}

static int make_root(void **state)
{
    (void)state;
    return folder_make(root, "threads") && !setenv("TBD_DIR", root, 1) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return folder_remove(root) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_in_order),
        cmocka_unit_test(test_turns_in_parallel),
        cmocka_unit_test(test_messages_are_checked),
    };

    return cmocka_run_group_tests_name("threads in a trace", tests, make_root, remove_root);
}
