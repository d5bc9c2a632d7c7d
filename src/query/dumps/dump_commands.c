// SPDX-License-Identifier: MIT
/* dump_commands.c - goto, calls, lines and bt in a dump (dump_commands.h) */
#include "query/dumps/dump_commands.h"

#include "query/dumps/dump_advise.h"
#include "query/dumps/dump_count.h"
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

/* FILE:LINE */
struct dump_line_name {
    char file[4096];
    uint32_t line; /* 0: any */
};

static bool read_line_name(const char *text, bool needs_line, struct dump_line_name *out)
{
    const char *colon = strrchr(text, ':');
    char *end;

    snprintf(out->file, sizeof(out->file), "%s", text);
    out->line = 0;
    if (colon == NULL)
        return !needs_line;
    out->line = (uint32_t)strtoul(colon + 1, &end, 10);
    if (*end != '\0' || out->line == 0)
        return false;
    out->file[colon - text] = '\0';
    return true;
}

/* A path, or the end of one. */
static bool is_file(const char *path, const char *name)
{
    size_t length = strlen(path), end = strlen(name);

    return end <= length && strcmp(path + length - end, name) == 0 &&
           (end == length || path[length - end - 1] == '/');
}

static bool is_line(struct tbd_dump_run *dump, const struct tbd_dump_place *place,
                    const struct dump_line_name *wanted)
{
    const struct tbd_rings_place *names = tbd_dump_names(dump, place);
    const struct tbd_source_line *line = &names->line;

    return names->begins_line && (wanted->line == 0 || line->line == wanted->line) &&
           is_file(line->file, wanted->file);
}

static bool is_wanted(const struct tbd_dump_run *dump, const struct tbd_rings_thread *thread)
{
    return dump->tid == 0 || thread->tid == dump->tid;
}

/* ---- lines ---- */

static bool add_lines(struct tbd_dump_run *dump, struct tbd_rings_thread *thread,
                      const struct dump_line_name *wanted, struct tbd_rows *rows)
{
    const struct tbd_rings_step *steps = tbd_rings_steps(dump->ring, thread);

    for (uint64_t i = 0; steps != NULL && i < thread->count; i++)
        for (uint32_t k = 0; k < steps[i].insns; k++) {
            struct tbd_dump_place place = { thread, i, k };

            if (is_line(dump, &place, wanted))
                tbd_rows_add(rows, tbd_dump_row(dump, &place));
        }
    return steps != NULL;
}

static enum tbd_exit print_lines(struct tbd_dump_run *dump, const struct dump_line_name *wanted)
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
    struct dump_line_name wanted;
    struct tbd_dump_run dump;
    enum tbd_exit result = tbd_dump_open(run, &dump);

    if (result == TBD_EXIT_FOUND && run->argc == 1 && read_line_name(run->argv[0], false, &wanted))
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
    at.insn = thread->steps[call->until].insns - 1u;
    return tbd_dump_position_text(&at);
}

static json_t *call_row(struct tbd_dump_run *dump, struct tbd_rings_thread *thread,
                        const struct tbd_rings_call *call, uint64_t entered, uint32_t nesting)
{
    struct tbd_dump_place at = { thread, entered, 0 };
    struct tbd_dump_place from = { thread, call->from, thread->steps[call->from].insns - 1u };
    json_t *row = tbd_dump_row(dump, &at);

    json_object_set_new(row, "exit", exit_of(thread, call));
    json_object_set_new(row, "nesting", json_integer(nesting));
    json_object_set_new(row, "duration",
                        has_returned(call) ? json_integer((json_int_t)(call->until - entered))
                                           : json_null());
    json_object_set_new(row, "caller", tbd_dump_function_text(tbd_dump_names(dump, &from), true));
    if (call->was_left)
        json_object_set_new(row, "left", json_true());
    return row;
}

/* Calls of the same function in the ring that had not ended: `open` has their ends. */
static uint32_t nesting_of(uint64_t *open, uint32_t *count, const struct tbd_rings_call *call)
{
    while (*count != 0 && open[*count - 1] < call->from)
        --*count;
    open[*count] = call->until;
    return (*count)++;
}

static enum tbd_status add_calls(struct tbd_dump_run *dump, struct tbd_rings_thread *thread,
                                 const char *name, struct tbd_rows *rows)
{
    struct tbd_rings_call *calls;
    size_t count;
    uint32_t open_count = 0;
    enum tbd_status status = tbd_rings_calls(dump->ring, thread, &calls, &count);
    uint64_t *open = calloc(count + 1, sizeof(*open));

    for (size_t i = 0; status == TBD_OK && open != NULL && i < count; i++) {
        uint64_t entered = tbd_dump_entered(dump, thread, calls[i].from);
        struct tbd_dump_place at = { thread, entered, 0 };

        if (tbd_dump_is_function(tbd_dump_names(dump, &at), name))
            tbd_rows_add(rows, call_row(dump, thread, &calls[i], entered,
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
    enum tbd_status status = TBD_OK;
    struct tbd_rows rows;

    tbd_rows_start(&rows, dump->run, columns);
    for (uint32_t i = 0; status == TBD_OK && i < dump->ring->dump.head->thread_count; i++)
        if (is_wanted(dump, &dump->ring->threads[i]))
            status = add_calls(dump, &dump->ring->threads[i], name, &rows);
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

/* ---- goto ---- */

static enum tbd_exit print_place(struct tbd_dump_run *dump, const struct tbd_dump_place *place)
{
    static const char *const columns[] = { "position", "thread", "pc", "insn",
                                           "function", "source", NULL };
    const struct tbd_rings_step *step = &place->thread->steps[place->step];
    const struct tbd_rings_insn *insn = &dump->ring->blocks[step->block].insns[place->insn];
    const uint8_t *code = tbd_rings_code(dump->ring, step->block, place->insn);
    json_t *row = tbd_dump_row(dump, place);
    struct tbd_rows rows;
    char text[256];

    if (code != NULL &&
        tbd_disas_new(NULL, NULL, dump->run->session->syntax, &dump->disas) == TBD_OK) {
        tbd_disas_text(dump->disas, 0, code, insn->length, insn->pc, text, sizeof(text));
        json_object_set_new(row, "insn", tbd_output_text(text));
    }
    tbd_rows_start(&rows, dump->run, columns);
    tbd_rows_add(&rows, row);
    return tbd_rows_end(&rows);
}

/* "where EXPRESSION" after the first argument; the caller frees it.  NULL: there is none. */
static char *take_where(struct tbd_command_run *run)
{
    char *text = NULL;
    size_t bytes;
    FILE *out;

    if (run->argc < 3 || strcmp(run->argv[1], "where") != 0 ||
        (out = open_memstream(&text, &bytes)) == NULL)
        return NULL;
    for (unsigned i = 2; i < run->argc; i++)
        fprintf(out, "%s%s", i == 2 ? "" : " ", run->argv[i]);
    fclose(out);
    run->argc = 1;
    return text;
}

/* Where a function, or a line, was reached last, and `where` (NULL: none) was true. */
static bool find_last(struct tbd_dump_run *dump, const char *name, struct tbd_dump_where *where,
                      struct tbd_dump_place *out)
{
    struct tbd_rings_thread *thread = tbd_dump_thread(dump);
    struct dump_line_name line;
    bool is_place = read_line_name(name, true, &line);

    for (uint64_t i = thread != NULL ? thread->count : 0; i-- > 0;)
        for (uint32_t k = thread->steps[i].insns; k-- > 0;) {
            const struct tbd_rings_place *names;

            *out = (struct tbd_dump_place){ thread, i, k };
            names = tbd_dump_names(dump, out);
            if ((is_place ? is_line(dump, out, &line)
                          : names->address == names->function_start &&
                                tbd_dump_is_function(names, name)) &&
                (where == NULL || tbd_dump_where_holds(dump, where, out)))
                return true;
            if (where != NULL && where->status != TBD_OK)
                return false;
        }
    return false;
}

static bool find_end(struct tbd_dump_run *dump, const char *name, struct tbd_dump_place *out)
{
    struct tbd_rings_thread *thread = tbd_dump_thread(dump);
    uint64_t step = strcmp(name, "first") == 0 ? 0 : thread != NULL ? thread->count - 1 : 0;

    if (thread == NULL || thread->count == 0)
        return false;
    *out = (struct tbd_dump_place){ thread, step, 0 };
    if (step != 0 && thread->steps[step].insns != 0)
        out->insn = thread->steps[step].insns - 1u;
    return true;
}

static enum tbd_exit not_in_ring(const struct tbd_dump_run *dump, const char *name)
{
    fprintf(stderr, "tbdq: goto: %s is not in the ring of thread %u\n", tbd_shown(name),
            dump->tid != 0 ? dump->tid : dump->ring->dump.head->tid);
    return TBD_EXIT_NOT_FOUND;
}

/* NULL: to the dump's end. */
static void move(struct tbd_session *session, const struct tbd_dump_place *place)
{
    struct tbd_session_before before = { 0 };

    if (place != NULL)
        before = (struct tbd_session_before){ .back = place->thread->count - place->step,
                                              .insn = place->insn,
                                              .thread = place->thread->tid };
    tbd_session_move_before(session, before);
}

/* Also where a condition holds. */
static enum tbd_exit goto_last(struct tbd_dump_run *dump, const char *name, char *text,
                               struct tbd_dump_place *out)
{
    struct tbd_dump_where where = { .condition.text = text };
    bool lies = find_last(dump, name, text != NULL ? &where : NULL, out);
    enum tbd_exit result = lies ? TBD_EXIT_FOUND : TBD_EXIT_NOT_FOUND;

    if (where.status != TBD_OK)
        result = tbd_command_fail(dump->run, where.status);
    else if (text != NULL && !tbd_past_condition_tell(&where.condition))
        result = TBD_EXIT_USAGE;
    else if (!lies && text != NULL)
        fprintf(stderr, "tbdq: goto: in the ring it is never known to be true at %s that %s\n",
                tbd_shown(name), text);
    else if (!lies)
        result = not_in_ring(dump, name);
    tbd_past_give_back(where.past);
    return result;
}

/* The place that the first argument names. */
static enum tbd_exit goto_word(struct tbd_dump_run *dump, char *where, struct tbd_dump_place *out)
{
    const char *word = dump->run->argv[0];
    bool lies = false;

    if (strcmp(word, "first") == 0 || strcmp(word, "last") == 0)
        lies = find_end(dump, word, out);
    else if (!tbd_dump_position(dump, word, out, &lies))
        return goto_last(dump, word, where, out);
    return lies ? TBD_EXIT_FOUND : not_in_ring(dump, word);
}

static enum tbd_exit dump_goto(struct tbd_command_run *run)
{
    struct tbd_dump_place place;
    struct tbd_dump_run dump;
    char *where = NULL;
    enum tbd_exit result = tbd_dump_open(run, &dump);

    if (result == TBD_EXIT_FOUND) {
        where = take_where(run);
        result =
            run->argc == 1
                ? goto_word(&dump, where, &place)
                : tbd_dump_refuse(run, "goto takes -N, -N+K, first, last, or FUNCTION or "
                                       "FILE:LINE (where it was last) [where EXPRESSION] there");
    }
    if (result == TBD_EXIT_FOUND) {
        result = print_place(&dump, &place);
        move(run->session, strcmp(run->argv[0], "last") == 0 ? NULL : &place);
    }
    free(where);
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

static enum tbd_exit print_stack(struct tbd_dump_run *dump, const struct tbd_dump_place *place,
                                 const struct tbd_rings_stack *stack)
{
    static const char *const columns[] = {
        "frame", "pc", "module", "function", "file", "line", NULL
    };
    uint32_t block = place->thread->steps[place->step].block;
    struct tbd_rows rows;

    stack->frames[0].pc = dump->ring->blocks[block].insns[place->insn].pc;
    tbd_rows_start(&rows, dump->run, columns);
    for (size_t i = 0; i < stack->count && i < MAX_FRAMES; i++)
        tbd_rows_add(&rows, frame_row(dump, i, place->thread->tid, &stack->frames[i]));
    if (!stack->is_whole)
        fprintf(stderr, "tbdq: note: what called the last of these is not known: the ring does not "
                        "reach back to it, and the stack at the end does not show it\n");
    return tbd_rows_end(&rows);
}

static enum tbd_exit bt_at(struct tbd_dump_run *dump, const struct tbd_dump_place *place)
{
    size_t last_count;
    struct tbd_rings_frame *last = last_stack(dump, place->thread, &last_count);
    struct tbd_rings_stack stack;
    enum tbd_status status =
        tbd_rings_stack(dump->ring, place->thread, place->step, last, last_count, &stack);
    enum tbd_exit result =
        status == TBD_OK ? print_stack(dump, place, &stack) : tbd_command_fail(dump->run, status);

    free(stack.frames);
    free(last);
    return result;
}

/* Where questions are, unless that is the dump's end. */
static bool current_place(struct tbd_dump_run *dump, struct tbd_dump_place *out, bool *out_lies)
{
    struct tbd_session_before before = tbd_session_before(dump->run->session);
    char text[64];

    if (before.thread != 0)
        dump->tid = before.thread;
    snprintf(text, sizeof(text), "-%" PRIu64 "+%" PRIu32, before.back, before.insn);
    return tbd_dump_position(dump, text, out, out_lies);
}

static enum tbd_exit dump_bt(struct tbd_command_run *run)
{
    struct tbd_dump_place place;
    struct tbd_dump_run dump;
    bool lies = false;
    enum tbd_exit result = tbd_dump_open(run, &dump);

    if (result == TBD_EXIT_FOUND &&
        !(run->argc == 0 ? current_place(&dump, &place, &lies)
                         : run->argc == 1 && tbd_dump_position(&dump, run->argv[0], &place, &lies)))
        result = tbd_command_usage(run, "bt takes a position -N or -N+K, and a thread");
    else if (result == TBD_EXIT_FOUND)
        result = lies ? bt_at(&dump, &place)
                      : not_in_ring(&dump, run->argc == 0 ? "the position" : run->argv[0]);
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
        result = current_place(&dump, &place, &lies) && lies ? print_place(&dump, &place)
                                                             : not_in_ring(&dump, "the position");
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

/* `is_before`: only where questions are about a moment before the dump's end; there they are about its state as a trace. */
static const struct {
    struct tbd_dump_command command;
    bool is_before;
} commands[] = {
    { { "goto", dump_goto }, false },
    { { "calls", dump_calls }, false },
    { { "lines", dump_lines }, false },
    { { "count", tbd_dump_run_count }, false },
    { { "bt", dump_bt }, true },
    { { "where", dump_where }, true },
    { { "regs", tbd_dump_run_regs }, true },
    { { "mem", tbd_dump_run_mem }, true },
    { { "print", tbd_dump_run_print }, true },
    { { "locals", tbd_dump_run_locals }, true },
    { { "x", tbd_dump_run_examine }, true },
    { { "list", tbd_dump_run_list }, true },
    { { "frame", tbd_dump_run_frame }, true },
    { { "up", tbd_dump_run_up }, true },
    { { "down", tbd_dump_run_down }, true },
    { { "ptype", tbd_dump_run_ptype }, true },
    { { "assert", tbd_dump_run_assert }, true },
    { { "disas", dump_disas }, true },
    { { "history", tbd_dump_run_history }, false },
    { { "why", tbd_dump_run_why }, false },
    { { "advise", tbd_dump_run_advise }, false },
};

static bool is_before(const struct tbd_command_run *run, const char *name)
{
    return tbd_session_before(run->session).back != 0 ||
           (strcmp(name, "bt") == 0 && run->argc != 0 && run->argv[0][0] == '-');
}

const struct tbd_dump_command *tbd_dump_command_find(const struct tbd_command_run *run,
                                                     const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].command.name, name) == 0)
            return !commands[i].is_before || is_before(run, name) ? &commands[i].command : NULL;
    return NULL;
}
