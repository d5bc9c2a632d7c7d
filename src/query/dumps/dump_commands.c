// SPDX-License-Identifier: MIT
/* dump_commands.c - calls, lines and bt in a dump, and which commands there are (dump_commands.h) */
#include "query/dumps/dump_commands.h"

#include "query/dumps/dump_advise.h"
#include "query/dumps/dump_count.h"
#include "query/dumps/dump_function.h"
#include "query/dumps/dump_goto.h"
#include "query/dumps/dump_line.h"
#include "query/dumps/dump_run.h"
#include "query/dumps/dump_values.h"
#include "query/dumps/dump_why.h"
#include "query/dumps/dump_where.h"
#include "query/output/output.h"

#include "base/safe_stream.h"
#include "base/string.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES 4096u

static bool is_wanted(const struct tbd_dump_run *dump, const struct tbd_rings_thread *thread)
{
    return dump->tid == 0 || thread->tid == dump->tid;
}

/* ---- lines ---- */

static bool add_lines(struct tbd_dump_run *dump, struct tbd_rings_thread *thread,
                      const struct tbd_dump_line *wanted, struct tbd_rows *rows)
{
    const struct tbd_rings_step *steps = tbd_rings_steps(dump->ring, thread);

    tbd_dump_tell_part(dump, thread);
    for (uint64_t i = 0; steps != NULL && i < thread->count; i++)
        for (uint32_t k = 0; k < steps[i].insns; k++) {
            struct tbd_dump_place place = { thread, i, k };

            if (tbd_dump_is_line(tbd_dump_names(dump, &place), wanted))
                tbd_rows_add(rows, tbd_dump_row(dump, &place));
        }
    return steps != NULL;
}

static enum tbd_exit print_lines(struct tbd_dump_run *dump, const struct tbd_dump_line *wanted)
{
    static const char *const columns[] = { "position", "thread", "source", "function", NULL };
    struct tbd_rows rows;

    tbd_rows_start(&rows, dump->run, columns);
    for (uint32_t i = 0; i < dump->ring->dump.head->thread_count; i++)
        if (is_wanted(dump, &dump->ring->threads[i]) &&
            !add_lines(dump, &dump->ring->threads[i], wanted, &rows)) {
            tbd_rows_drop(&rows);
            return tbd_command_no_memory();
        }
    return tbd_rows_end(&rows);
}

static enum tbd_exit dump_lines(struct tbd_command_run *run)
{
    struct tbd_dump_line wanted;
    struct tbd_dump_run dump;
    enum tbd_exit result = tbd_dump_open(run, &dump);

    if (result == TBD_EXIT_FOUND && run->argc == 1 &&
        tbd_dump_line_read(run->argv[0], false, &wanted))
        result = print_lines(&dump, &wanted);
    else if (result == TBD_EXIT_FOUND)
        result = tbd_dump_refuse(run, "lines takes FILE or FILE:LINE there, without a condition");
    tbd_dump_close(&dump);
    return result;
}

/* ---- calls ---- */

static bool has_returned(const struct tbd_rings_call *call)
{
    return call->until != UINT64_MAX && !call->was_left;
}

static json_t *exit_of(struct tbd_rings_thread *thread, const struct tbd_rings_call *call)
{
    struct tbd_dump_place at = { thread, call->until, 0 };

    if (!has_returned(call))
        return json_null();
    at.insn = thread->walked.steps[call->until].insns - 1u;
    return tbd_dump_position_text(&at);
}

/* Where a signal's handler goes back to. */
static struct tbd_rings_place interrupted(struct tbd_dump_run *dump,
                                          const struct tbd_rings_step *step)
{
    const struct tbd_rings_block *block = tbd_rings_block(dump->ring, step->block);
    uint64_t address = block == NULL                     ? 0
                       : step->insns < block->insn_count ? block->insns[step->insns].pc
                                                         : block->after;

    return tbd_rings_place_at(dump->ring, address);
}

/* What led to the function: of one that a stub jumped to, the call in whose frame it runs. */
static struct tbd_rings_place caller_of(struct tbd_dump_run *dump, struct tbd_rings_thread *thread,
                                        const struct tbd_rings_call *calls,
                                        const struct tbd_rings_call *call)
{
    struct tbd_dump_place from = { .thread = thread };
    uint32_t insns;

    if ((thread->walked.steps[call->entered].flags & TBD_RINGS_HANDLER) != 0)
        return interrupted(dump, &thread->walked.steps[call->from]);
    while (call->by_stub && call->before != UINT64_MAX)
        call = &calls[call->before];
    from.step = call->from;
    insns = thread->walked.steps[from.step].insns;
    from.insn = insns != 0 ? insns - 1 : 0;
    return *tbd_dump_names(dump, &from);
}

static json_t *call_row(struct tbd_dump_run *dump, struct tbd_rings_thread *thread,
                        const struct tbd_rings_call *calls, const struct tbd_rings_call *call,
                        uint32_t nesting)
{
    struct tbd_dump_place at = { thread, call->entered, 0 };
    struct tbd_rings_place from = caller_of(dump, thread, calls, call);
    json_t *row = tbd_dump_row(dump, &at);

    json_object_set_new(row, "exit", exit_of(thread, call));
    json_object_set_new(row, "nesting", json_integer(nesting));
    json_object_set_new(row, "duration",
                        has_returned(call) ? json_integer((json_int_t)(call->until - call->entered))
                                           : json_null());
    json_object_set_new(row, "caller", tbd_dump_function_text(&from, true));
    if (call->was_left)
        json_object_set_new(row, "left", json_true());
    return row;
}

/* Calls of the same function in the ring that had neither ended nor jumped away: `open` has those that had not ended. */
static uint32_t nesting_of(const struct tbd_rings_call **open, uint32_t *count,
                           const struct tbd_rings_call *call)
{
    uint32_t nesting = 0;

    while (*count != 0 && open[*count - 1]->until < call->from)
        --*count;
    for (uint32_t i = 0; i < *count; i++)
        nesting += open[i]->jumped > call->from;
    open[(*count)++] = call;
    return nesting;
}

static enum tbd_status add_calls(struct tbd_dump_run *dump, struct tbd_rings_thread *thread,
                                 const struct tbd_dump_function *function, struct tbd_rows *rows)
{
    struct tbd_rings_call *calls;
    size_t count;
    uint32_t open_count = 0;
    enum tbd_status status = tbd_rings_calls(dump->ring, thread, &calls, &count);
    const struct tbd_rings_call **open = calloc(count + 1, sizeof(*open));

    tbd_dump_tell_part(dump, thread);
    for (size_t i = 0; status == TBD_OK && open != NULL && i < count; i++) {
        uint64_t entered = calls[i].entered;
        struct tbd_dump_place at = { thread, entered, 0 };

        if (entered != UINT64_MAX && tbd_dump_is_function(tbd_dump_names(dump, &at), function))
            tbd_rows_add(rows, call_row(dump, thread, calls, &calls[i],
                                        nesting_of(open, &open_count, &calls[i])));
    }
    free(calls);
    if (open == NULL)
        return TBD_NOMEM;
    free(open);
    return status;
}

static enum tbd_exit print_calls(struct tbd_dump_run *dump, const char *name)
{
    static const char *const columns[] = { "position", "exit",     "nesting", "thread",
                                           "function", "duration", "caller",  NULL };
    struct tbd_dump_function function;
    enum tbd_status status =
        tbd_dump_function_find(dump->run, name, &function) ? TBD_OK : TBD_NOMEM;
    struct tbd_rows rows;

    tbd_rows_start(&rows, dump->run, columns);
    for (uint32_t i = 0; status == TBD_OK && i < dump->ring->dump.head->thread_count; i++)
        if (is_wanted(dump, &dump->ring->threads[i]))
            status = add_calls(dump, &dump->ring->threads[i], &function, &rows);
    tbd_dump_function_free(&function);
    if (status == TBD_OK)
        return tbd_rows_end(&rows);
    tbd_rows_drop(&rows);
    return tbd_command_fail(dump->run, status);
}

static enum tbd_exit dump_calls(struct tbd_command_run *run)
{
    struct tbd_dump_run dump;
    enum tbd_exit result = tbd_dump_open(run, &dump);

    if (result == TBD_EXIT_FOUND)
        result = run->argc == 1
                     ? print_calls(&dump, run->argv[0])
                     : tbd_dump_refuse(run, "calls takes FUNCTION there, without a condition");
    tbd_dump_close(&dump);
    return result;
}

/* ---- bt ---- */

/* The stack where the thread was when the dump was taken; *count 0: the dump does not have it. */
static struct tbd_rings_frame *last_stack(struct tbd_dump_run *dump,
                                          const struct tbd_rings_thread *thread, size_t *count)
{
    struct tbd_session *session = dump->run->session;
    uint32_t before = session->thread;
    struct tbd_source_stack stack;
    struct tbd_rings_frame *frames = NULL;

    *count = 0;
    if (thread->after != 0)
        return NULL; /* what has run since is not followed */
    session->thread = thread->tid;
    if (tbd_source_stack(session, (struct tbd_position){ 0 }, &stack) == TBD_OK) {
        frames = calloc(stack.frame_count + 1, sizeof(*frames));
        for (size_t i = 0; frames != NULL && i < stack.frame_count; i++)
            frames[(*count)++] =
                (struct tbd_rings_frame){ stack.frames[i].pc,
                                          stack.frames[i].call_pc == stack.frames[i].pc };
        tbd_source_stack_free(&stack);
    }
    session->thread = before;
    return frames;
}

static json_t *frame_row(struct tbd_dump_run *dump, size_t number, uint32_t tid,
                         const struct tbd_rings_frame *frame)
{
    bool after_call = number != 0 && !frame->is_signal;
    struct tbd_rings_place names = tbd_rings_place_at(dump->ring, frame->pc - after_call);
    json_t *row = json_object();

    json_object_set_new(row, "frame", json_integer((json_int_t)number));
    json_object_set_new(row, "thread", json_integer(tid));
    json_object_set_new(row, "pc", tbd_output_hex(frame->pc));
    if (names.module != NULL)
        json_object_set_new(row, "module", tbd_output_text(names.module));
    if (names.function != NULL) {
        json_object_set_new(row, "function", tbd_output_text(names.function));
        json_object_set_new(row, "function_offset",
                            json_integer((json_int_t)(frame->pc - names.function_start)));
    }
    if (names.line.line != 0)
        tbd_output_source(&names.line, row);
    json_object_set_new(row, "inlined", json_false());
    json_object_set_new(row, "guess", json_false());
    return row;
}

/* The innermost `most` frames; as elsewhere, text says how many there are besides. */
static enum tbd_exit print_stack(struct tbd_dump_run *dump, const struct tbd_dump_place *place,
                                 const struct tbd_rings_stack *stack, size_t most)
{
    static const char *const columns[] = {
        "frame", "pc", "module", "function", "file", "line", NULL
    };
    uint32_t block = place->thread->walked.steps[place->step].block;
    struct tbd_rows rows;

    stack->frames[0].pc = dump->ring->blocks[block].insns[place->insn].pc;
    tbd_rows_start(&rows, dump->run, columns);
    for (size_t i = 0; i < stack->count && i < most; i++)
        tbd_rows_add(&rows, frame_row(dump, i, place->thread->tid, &stack->frames[i]));
    if (stack->count > most && most < MAX_FRAMES)
        fprintf(stderr, "tbdq: note: %zu more frame%s\n", stack->count - most,
                stack->count - most == 1 ? " follows" : "s follow");
    if (!stack->is_whole)
        fprintf(stderr, "tbdq: note: what called the last of these is not known: the ring does not "
                        "reach back to it, and the stack at the end does not show it\n");
    return tbd_rows_end(&rows);
}

static enum tbd_exit bt_at(struct tbd_dump_run *dump, const struct tbd_dump_place *place,
                           size_t most)
{
    size_t last_count;
    struct tbd_rings_frame *last = last_stack(dump, place->thread, &last_count);
    struct tbd_rings_stack stack;
    enum tbd_status status =
        tbd_rings_stack(dump->ring, place->thread, place->step, last, last_count, &stack);
    enum tbd_exit result = status == TBD_OK ? print_stack(dump, place, &stack, most)
                                            : tbd_command_fail(dump->run, status);

    free(stack.frames);
    free(last);
    return result;
}

/* Where questions are, unless that is the dump's end.  Of another thread than theirs, and without a state at the end, the last block that
 * was entered. */
static bool current_place(struct tbd_dump_run *dump, struct tbd_dump_place *out, bool *out_lies)
{
    struct tbd_session_before before = tbd_session_before(dump->run->session);
    char text[64];

    if (before.thread != 0 && dump->names_thread && before.thread != dump->tid)
        before = (struct tbd_session_before){ .back = 0 };
    if (before.thread != 0)
        dump->tid = before.thread;
    snprintf(text, sizeof(text), "-%" PRIu64 "+%" PRIu32, before.back == 0 ? 1 : before.back,
             before.insn);
    return tbd_dump_position(dump, text, out, out_lies);
}

/* The last block that thread number `i` entered.  False: none is known. */
static bool last_place(struct tbd_dump_run *dump, uint32_t i, struct tbd_dump_place *out)
{
    *out = (struct tbd_dump_place){ .thread = &dump->ring->threads[i] };
    if (out->thread->newest.count == 0 || !tbd_dump_reach(dump, out->thread, 1))
        return false;
    out->step = tbd_rings_step_at(out->thread, 1);
    return true;
}

/* Each thread has its stack where its ring ends. */
static enum tbd_exit bt_threads(struct tbd_dump_run *dump)
{
    enum tbd_exit result = TBD_EXIT_FOUND;

    for (uint32_t i = 0; result == TBD_EXIT_FOUND && i < dump->ring->dump.head->thread_count; i++) {
        struct tbd_dump_place last;

        if (!last_place(dump, i, &last))
            continue;
        if (!dump->run->session->json)
            fprintf(dump->run->out, "thread %" PRIu32 "\n", last.thread->tid);
        result = bt_at(dump, &last, MAX_FRAMES);
    }
    return result;
}

/* "20": the innermost frames of the current position. */
static bool take_frame_count(const char *text, size_t *out)
{
    size_t length = strspn(text, "0123456789");

    *out = length > 0 && length <= 9 && text[length] == '\0' ? strtoul(text, NULL, 10) : 0;
    return *out != 0;
}

static enum tbd_exit dump_bt(struct tbd_command_run *run)
{
    struct tbd_dump_place place;
    struct tbd_dump_run dump;
    size_t most = MAX_FRAMES;
    bool lies = false, is_of_all = run->session->info->has_rings_only && run->argc == 1 &&
                                   strcmp(run->argv[0], "threads") == 0;
    enum tbd_exit result = tbd_dump_open(run, &dump); /* takes the thread's words away */
    bool is_current = run->argc == 0 || (run->argc == 1 && take_frame_count(run->argv[0], &most));

    if (result == TBD_EXIT_FOUND && is_of_all)
        result = bt_threads(&dump);
    else if (result == TBD_EXIT_FOUND &&
             !(is_current
                   ? current_place(&dump, &place, &lies)
                   : run->argc == 1 && tbd_dump_position(&dump, run->argv[0], &place, &lies)))
        result = tbd_command_usage(
            run, "bt takes a number of frames, or a position -N or -N+K, and a thread");
    else if (result == TBD_EXIT_FOUND)
        result = lies ? bt_at(&dump, &place, is_current && most < MAX_FRAMES ? most : MAX_FRAMES)
                      : tbd_dump_not_in_ring(&dump, is_current ? "the position" : run->argv[0]);
    tbd_dump_close(&dump);
    return result;
}

static enum tbd_exit dump_where(struct tbd_command_run *run)
{
    struct tbd_dump_place place;
    struct tbd_dump_run dump;
    bool lies = false;
    enum tbd_exit result = tbd_dump_open(run, &dump);

    if (result == TBD_EXIT_FOUND && run->argc != 0)
        result = tbd_command_usage(run, "where takes no arguments but a thread");
    else if (result == TBD_EXIT_FOUND)
        result = current_place(&dump, &place, &lies) && lies
                     ? tbd_dump_print_place(&dump, &place)
                     : tbd_dump_not_in_ring(&dump, "the position");
    tbd_dump_close(&dump);
    return result;
}

/* Those of a function are the same everywhere. */
static enum tbd_exit dump_disas(struct tbd_command_run *run)
{
    struct tbd_session_before before = tbd_session_before(run->session);

    if (run->argc == 1 && !isdigit((unsigned char)run->argv[0][0]))
        return tbd_command_disas(run);
    fprintf(stderr,
            "tbdq: disas: before a dump's end it takes a function\n"
            "hint: `path 10 insns from -%" PRIu64 "+%" PRIu32 " forward` shows what ran there\n",
            before.back, before.insn);
    return TBD_EXIT_TRACE;
}

/* The threads of a program that was killed: only their rings tell of them. */
static enum tbd_exit dump_threads(struct tbd_command_run *run)
{
    static const char *const columns[] = { "thread",   "blocks", "position", "pc",
                                           "function", "source", NULL };
    struct tbd_dump_run dump;
    struct tbd_rows rows;
    enum tbd_exit result = tbd_dump_open(run, &dump);

    if (result == TBD_EXIT_FOUND && run->argc != 0)
        result = tbd_command_usage(run, "threads takes no arguments");
    if (result != TBD_EXIT_FOUND) {
        tbd_dump_close(&dump);
        return result;
    }
    tbd_rows_start(&rows, run, columns);
    for (uint32_t i = 0; i < dump.ring->dump.head->thread_count; i++) {
        struct tbd_dump_place last;
        uint64_t blocks;
        json_t *row;

        if (!last_place(&dump, i, &last))
            continue;
        blocks = last.thread->older + last.thread->newest.count;
        row = tbd_dump_row(&dump, &last);
        json_object_set_new(row, "blocks", json_integer((json_int_t)blocks));
        tbd_rows_add(&rows, row);
    }
    tbd_dump_close(&dump);
    return tbd_rows_end(&rows);
}

/* Which dumps have a command of their own. */
enum when {
    ALWAYS,
    BEFORE, /* where questions are about a moment before the dump's end; there they are about its state as a trace */
    KILLED, /* those that have no state at the end */
};

static const struct {
    struct tbd_dump_command command;
    enum when when;
} commands[] = {
    { { "goto", tbd_dump_run_goto }, ALWAYS },
    { { "calls", dump_calls }, ALWAYS },
    { { "lines", dump_lines }, ALWAYS },
    { { "count", tbd_dump_run_count }, ALWAYS },
    { { "threads", dump_threads }, KILLED },
    { { "bt", dump_bt }, BEFORE },
    { { "where", dump_where }, BEFORE },
    { { "regs", tbd_dump_run_regs }, BEFORE },
    { { "mem", tbd_dump_run_mem }, BEFORE },
    { { "print", tbd_dump_run_print }, BEFORE },
    { { "locals", tbd_dump_run_locals }, BEFORE },
    { { "x", tbd_dump_run_examine }, BEFORE },
    { { "list", tbd_dump_run_list }, BEFORE },
    { { "frame", tbd_dump_run_frame }, BEFORE },
    { { "up", tbd_dump_run_up }, BEFORE },
    { { "down", tbd_dump_run_down }, BEFORE },
    { { "ptype", tbd_dump_run_ptype }, BEFORE },
    { { "symbol", tbd_dump_run_symbol }, BEFORE },
    { { "line", tbd_dump_run_line }, BEFORE },
    { { "printf", tbd_dump_run_printf }, BEFORE },
    { { "assert", tbd_dump_run_assert }, BEFORE },
    { { "disas", dump_disas }, BEFORE },
    { { "history", tbd_dump_run_history }, ALWAYS },
    { { "why", tbd_dump_run_why }, ALWAYS },
    { { "advise", tbd_dump_run_advise }, ALWAYS },
};

static bool applies(enum when when, const struct tbd_command_run *run, const char *name)
{
    if (when != BEFORE)
        return when == ALWAYS || run->session->info->has_rings_only;
    return tbd_session_before(run->session).back != 0 ||
           (strcmp(name, "bt") == 0 && run->argc != 0 && run->argv[0][0] == '-');
}

const struct tbd_dump_command *tbd_dump_command_find(const struct tbd_command_run *run,
                                                     const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].command.name, name) == 0)
            return applies(commands[i].when, run, name) ? &commands[i].command : NULL;
    return NULL;
}

enum tbd_status tbd_dump_begin(struct tbd_session *session)
{
    struct tbd_rings *rings;

    return session->info->has_rings_only ? tbd_past_rings(session, &rings) : TBD_OK;
}
