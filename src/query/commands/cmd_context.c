// SPDX-License-Identifier: MIT
/* cmd_context.c - context: the stacks of calls that a value of tbd_context() stands for (mode=context)
 *
 * It needs the program's files, no trace.  Stacks that recordings have had (--learn) are looked up first. */
#include "query/commands/commands.h"
#include "query/commands/rows.h"
#include "query/commands/value_words.h"
#include "query/contexts/call_edges.h"
#include "query/contexts/context_learn.h"
#include "query/output/output.h"

#include "query/debuginfo/dwarf_file.h"
#include "query/contexts/call_graph.h"

#include "base/safe_stream.h"
#include "base/string.h"

#include <inttypes.h>

struct asked {
    struct tbd_value_words words;
    unsigned scheme; /* enum tbd_calling_scheme */
    const char *program, *log, *learn;
};

/* NULL: well; otherwise what is wrong. */
static const char *take_words(const struct tbd_command_run *run, struct asked *asked)
{
    static const char *const names[] = {
        [TBD_CALLING_ORDER] = "order", [TBD_CALLING_XOR] = "xor", [TBD_CALLING_SUM] = "sum"
    };
    const struct tbd_value_option options[] = {
        { "--program", .text = &asked->program },
        { "--log", .text = &asked->log },
        { "--learn", .text = &asked->learn },
        { "--scheme", .names = names, .name_count = TBD_CALLING_SCHEMES, .chosen = &asked->scheme,
          .wrong = "the scheme is order, xor or sum" },
        { NULL }
    };
    const char *wrong;

    *asked = (struct asked){ .scheme = TBD_CALLING_ORDER };
    wrong = tbd_value_words_take(run, options, &asked->words);
    if (wrong != NULL || (asked->learn != NULL && !asked->words.has_value))
        return wrong;
    if (!asked->words.has_value || asked->program == NULL)
        return "a value and --program are needed";
    return NULL;
}

/* ---- rows ---- */

static json_t *frame_object(const struct tbd_call_frame *frame)
{
    json_t *object = json_object();
    struct tbd_source_line line = { .line = 0 };
    struct tbd_dwarf *dwarf;
    char text[512];

    if (frame->module == NULL) {
        snprintf(text, sizeof(text), frame->signo ? "<signal %u>" : "<no file>", frame->signo);
        json_object_set_new(object, "function", json_string(text));
        return object;
    }
    snprintf(text, sizeof(text), "%s!%s", frame->module, frame->function);
    json_object_set_new(object, "function", tbd_output_text(text));
    json_object_set_new(object, "function_offset", json_integer((json_int_t)frame->offset));
    json_object_set_new(object, "address", tbd_output_hex(frame->address));
    if (frame->is_indirect)
        json_object_set_new(object, "call", json_string("indirect"));
    dwarf = frame->file != NULL ? tbd_dwarf_of(frame->file) : NULL;
    if (dwarf != NULL && tbd_dwarf_line_at(dwarf, frame->address - 1, &line) && line.line != 0)
        tbd_output_source(&line, object);
    return object;
}

static bool is_same(const struct tbd_call_frame *one, const struct tbd_call_frame *other)
{
    return one->file == other->file && one->address == other->address && one->signo == other->signo;
}

/* A call that repeats itself directly is one row, with how often. */
static void add_stack(struct tbd_rows *rows, const struct tbd_call_stack *stack, size_t number)
{
    for (size_t i = 0; i < stack->count;) {
        size_t times = 1;
        json_t *row = frame_object(&stack->frames[i]);
        const char *file = json_string_value(json_object_get(row, "file"));
        char text[512];

        while (i + times < stack->count && is_same(&stack->frames[i], &stack->frames[i + times]))
            times++;
        json_object_set_new(row, "stack", json_integer((json_int_t)number));
        json_object_set_new(row, "frame", json_integer((json_int_t)i));
        json_object_set_new(row, "times", json_integer((json_int_t)times));
        json_object_set_new(row, "begins", json_string(stack->from_start ? "start" : "elsewhere"));
        if (file != NULL) {
            snprintf(text, sizeof(text), "%s:%" JSON_INTEGER_FORMAT, tbd_base_name(file),
                     json_integer_value(json_object_get(row, "line")));
            json_object_set_new(row, "source", tbd_output_text(text));
        }
        tbd_rows_add(rows, row);
        i += times;
    }
}

static enum tbd_exit print_answer(struct tbd_command_run *run, const struct tbd_call_answer *answer)
{
    static const char *const columns[] = { "stack", "frame",  "times", "function",
                                           "call",  "source", NULL };
    struct tbd_rows rows;

    if (answer->count == 0) {
        fprintf(stderr, "tbdq: no stack has this value%s (%" PRIu64 " calls were tried)\n",
                answer->is_complete ? "" : ", as far as the search came", answer->tried);
        return TBD_EXIT_NOT_FOUND;
    }
    tbd_rows_start(&rows, run, columns);
    for (size_t i = 0; i < answer->count; i++)
        add_stack(&rows, &answer->stacks[i], i + 1);
    return tbd_rows_end(&rows);
}

/* ---- the dictionary ---- */

/* The build id of the program that a trace is of; "" if it is not known. */
static const char *build_id_of(struct tbd_session *session)
{
    const struct tbd_module *modules;
    size_t count;

    if (tbd_symbols_modules(session->symbols, 0, &modules, &count) != TBD_OK)
        return "";
    for (size_t i = 0; i < count; i++)
        if (strcmp(modules[i].path, session->info->program) == 0)
            return modules[i].build_id;
    return "";
}

static enum tbd_exit learn_from(struct tbd_command_run *run, struct tbd_session *session)
{
    struct tbd_context_dictionary dictionary;
    const char *build_id = build_id_of(session);
    enum tbd_status status = tbd_contexts_open(build_id, &dictionary);
    size_t before = dictionary.node_count;
    bool is_kept;

    if (status == TBD_OK)
        status = tbd_contexts_learn(session, &dictionary);
    is_kept = status == TBD_OK && tbd_contexts_keep(&dictionary, build_id);
    if (is_kept)
        fprintf(stderr, "tbdq: %zu stacks of %s are known, %zu of them new\n",
                dictionary.node_count, tbd_shown(session->info->program),
                dictionary.node_count - before);
    tbd_contexts_close(&dictionary);
    if (status != TBD_OK) {
        run->session->why = session->why;
        return tbd_command_fail(run, status);
    }
    if (is_kept)
        return TBD_EXIT_FOUND;
    fprintf(stderr, "tbdq: the stacks cannot be kept: %s\n",
            *build_id == '\0' ? "the program has no build id" : "there is no cache for this user");
    return TBD_EXIT_SYSTEM;
}

static enum tbd_exit learn(struct tbd_command_run *run, const char *trace)
{
    struct tbd_session session = { .workers = run->session->workers,
                                   .no_cache = run->session->no_cache };
    enum tbd_status status = tbd_session_open(&session, trace);
    enum tbd_exit result;

    if (status == TBD_OK) {
        result = session.info->is_dump
                     ? tbd_command_usage(run, "--learn takes a recording, not a dump")
                     : learn_from(run, &session);
    } else {
        run->session->why = session.why;
        result = tbd_command_fail(run, status);
    }
    tbd_session_close(&session);
    return result;
}

/* What recordings of the program had; empty if nothing was learned. */
static enum tbd_status open_dictionary(const struct asked *asked,
                                       struct tbd_context_dictionary *dictionary)
{
    struct tbd_elf_file *file = NULL;
    enum tbd_status status;

    *dictionary = (struct tbd_context_dictionary){ .nodes = NULL };
    if (tbd_elf_open(asked->program, &file) != TBD_OK)
        return TBD_OK; /* the search says it */
    status = tbd_contexts_open(file->build_id_text, dictionary);
    tbd_elf_close(file);
    return status;
}

/* Prints the stacks that recordings had with this value; TBD_EXIT_NOT_FOUND, and nothing, if there are none.  A text
 * as evidence is looked for in the calls of the files. */
static enum tbd_exit look_up(struct tbd_command_run *run, const struct asked *asked,
                             struct tbd_context_dictionary *dictionary)
{
    struct tbd_call_answer answer = { .count = 0 };
    enum tbd_exit result = TBD_EXIT_NOT_FOUND;

    if (asked->log != NULL)
        return TBD_EXIT_NOT_FOUND;
    if (tbd_contexts_find(dictionary, asked->scheme, asked->words.value, &answer) != TBD_OK)
        return tbd_command_no_memory();
    if (answer.count != 0)
        result = print_answer(run, &answer);
    tbd_call_answer_free(&answer);
    return result;
}

/* In the calls that the files have, and in those that recordings had. */
static enum tbd_exit search(struct tbd_command_run *run, const struct asked *asked,
                            const struct tbd_context_dictionary *dictionary)
{
    struct tbd_call_graph *graph = NULL;
    struct tbd_call_answer answer = { .count = 0 };
    const char *missing;
    enum tbd_status status =
        tbd_call_graph_new(asked->program, asked->words.more, asked->words.more_count, &graph);
    enum tbd_exit result;

    if (status == TBD_OK)
        status = tbd_call_graph_learn(graph, dictionary);
    if (status == TBD_OK)
        status = tbd_call_graph_find(graph, asked->scheme, asked->words.value, asked->log, &answer);
    if (status == TBD_NOMEM)
        result = tbd_command_no_memory();
    else if (status != TBD_OK) {
        fprintf(stderr, "tbdq: the files cannot be read: %s: %s\n", asked->program,
                tbd_status_text(status));
        result = TBD_EXIT_SYSTEM;
    } else {
        for (size_t i = 0; (missing = tbd_call_graph_missing(graph, i)) != NULL; i++)
            fprintf(stderr,
                    "tbdq: library %s was not found: its calls are missing (--library FILE)\n",
                    missing);
        result = print_answer(run, &answer);
    }
    tbd_call_answer_free(&answer);
    tbd_call_graph_free(graph);
    return result;
}

static enum tbd_exit find_value(struct tbd_command_run *run, const struct asked *asked)
{
    struct tbd_context_dictionary dictionary;
    enum tbd_exit result;

    if (open_dictionary(asked, &dictionary) != TBD_OK)
        return tbd_command_no_memory();
    result = look_up(run, asked, &dictionary);
    if (result == TBD_EXIT_NOT_FOUND)
        result = search(run, asked, &dictionary);
    tbd_contexts_close(&dictionary);
    return result;
}

enum tbd_exit tbd_command_context(struct tbd_command_run *run)
{
    struct asked asked;
    const char *wrong = take_words(run, &asked);
    enum tbd_exit result;

    if (wrong != NULL)
        return tbd_command_usage(run, wrong);
    result = asked.learn != NULL ? learn(run, asked.learn) : TBD_EXIT_FOUND;
    if (result != TBD_EXIT_FOUND || !asked.words.has_value)
        return result;
    return find_value(run, &asked);
}
