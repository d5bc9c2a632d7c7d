// SPDX-License-Identifier: MIT
/* cmd_context.c - context: the stacks of calls that a value of tbd_context() stands for (mode=context)
 *
 * It needs the program's files, no trace: a crash dump only says which files these are, and which values its threads had.  Stacks that
 * recordings have had (--learn) are looked up first. */
#include "query/commands/commands.h"
#include "query/commands/rows.h"
#include "query/commands/value_words.h"
#include "query/contexts/call_edges.h"
#include "query/contexts/context_learn.h"
#include "query/output/output.h"
#include "query/session/dump_state.h"

#include "query/debuginfo/dwarf_file.h"
#include "query/contexts/call_graph.h"

#include "base/safe_stream.h"
#include "base/string.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct asked {
    struct tbd_value_words words;
    unsigned scheme; /* enum tbd_calling_scheme */
    const char *program, *log, *learn;
    const char *seconds; /* of processor time for each search; NULL: TBD_CALL_GRAPH_SECONDS */
    struct tbd_call_question question;
    const char *values; /* a file of values, "-": standard input; NULL: there is one in `words` */
    bool is_scheme_given;
    bool is_of_threads; /* the values are those of a dump's threads */
};

/* What values are decoded with, one after another. */
struct decoding {
    struct tbd_command_run *run;
    const struct asked *asked;
    struct tbd_context_dictionary dictionary;
    struct tbd_call_graph *graph; /* NULL: no value has needed it yet */
    struct tbd_rows rows;
    double seconds;           /* of processor time that the present value has taken */
    uint32_t thread, threads; /* the first one that has the present value, and how many have */
};

static bool has_values(const struct asked *asked)
{
    return asked->words.has_value || asked->values != NULL;
}

static bool take_seconds(const char *word, uint32_t *out)
{
    char *end;
    unsigned long seconds = strtoul(word, &end, 10);

    *out = (uint32_t)seconds;
    return *word >= '0' && *word <= '9' && *end == '\0' && seconds != 0 && seconds <= 3600;
}

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
        { "--values", .text = &asked->values },
        { "--seconds", .text = &asked->seconds },
        { "--scheme", .names = names, .name_count = TBD_CALLING_SCHEMES, .chosen = &asked->scheme,
          .wrong = "the scheme is order, xor or sum" },
        { .name = NULL }
    };
    const char *wrong;

    *asked = (struct asked){ .scheme = TBD_CALLING_SCHEMES };
    wrong = tbd_value_words_take(run, options, &asked->words);
    if (wrong != NULL)
        return wrong;
    asked->is_scheme_given = asked->scheme != TBD_CALLING_SCHEMES;
    if (!asked->is_scheme_given)
        asked->scheme = TBD_CALLING_ORDER;
    if (asked->words.has_value && asked->values != NULL)
        return "it is one value, or --values";
    if (asked->learn != NULL && !has_values(asked))
        return NULL;
    if (!has_values(asked) && asked->program != NULL)
        return "a value is needed";
    asked->question =
        (struct tbd_call_question){ asked->scheme, asked->log, TBD_CALL_GRAPH_SECONDS };
    if (asked->seconds != NULL && !take_seconds(asked->seconds, &asked->question.seconds))
        return "--seconds takes a number from 1 to 3600";
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

static bool has_many(const struct decoding *d)
{
    return d->asked->values != NULL || d->asked->is_of_threads;
}

/* One of many. */
static void set_value(const struct decoding *d, uint64_t value, json_t *row)
{
    if (d->asked->is_of_threads) {
        json_object_set_new(row, "thread", json_integer(d->thread));
        json_object_set_new(row, "threads", json_integer(d->threads));
    }
    json_object_set_new(row, "value", tbd_output_hex(value));
    if (!d->asked->is_of_threads)
        json_object_set_new(row, "seconds", json_real(d->seconds));
}

/* A call that repeats itself directly is one row, with how often. */
static void add_stack(struct decoding *d, uint64_t value, const struct tbd_call_stack *stack,
                      size_t number)
{
    for (size_t i = 0; i < stack->count;) {
        size_t times = 1;
        json_t *row = frame_object(&stack->frames[i]);
        const char *file = json_string_value(json_object_get(row, "file"));

        while (i + times < stack->count && is_same(&stack->frames[i], &stack->frames[i + times]))
            times++;
        json_object_set_new(row, "stack", json_integer((json_int_t)number));
        json_object_set_new(row, "frame", json_integer((json_int_t)i));
        json_object_set_new(row, "times", json_integer((json_int_t)times));
        json_object_set_new(row, "begins", json_string(stack->from_start ? "start" : "elsewhere"));
        if (has_many(d))
            set_value(d, value, row);
        if (file != NULL)
            tbd_output_source_cell(file, (uint32_t)json_integer_value(json_object_get(row, "line")),
                                   row);
        tbd_rows_add(&d->rows, row);
        i += times;
    }
}

static void say_none(uint64_t value, const struct tbd_call_answer *answer)
{
    fprintf(stderr, "tbdq: no stack has this value%s (%" PRIu64 " calls were tried)%s\n",
            answer->is_complete ? "" : ", as far as the search came", answer->tried,
            value == 0 ? "; tbd_context() returns 0 where contexts are not followed" : "");
}

/* Each of many values has a row. */
static void add_none(struct decoding *d, uint64_t value, const struct tbd_call_answer *answer)
{
    json_t *row = json_object();

    set_value(d, value, row);
    json_object_set_new(row, "stack", json_integer(0));
    json_object_set_new(row, "function",
                        json_string(answer->is_complete ? "(none)" : "(none was found)"));
    tbd_rows_add(&d->rows, row);
}

static void add_answer(struct decoding *d, uint64_t value, const struct tbd_call_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++)
        add_stack(d, value, &answer->stacks[i], i + 1);
    if (answer->count == 0 && has_many(d))
        add_none(d, value, answer);
    else if (answer->count == 0)
        say_none(value, answer);
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

/* ---- values ---- */

static enum tbd_status make_graph(struct decoding *d)
{
    const struct asked *asked = d->asked;
    const char *missing;
    enum tbd_status status =
        tbd_call_graph_new(asked->program, asked->words.more, asked->words.more_count, &d->graph);

    if (status == TBD_OK)
        status = tbd_call_graph_learn(d->graph, &d->dictionary);
    for (size_t i = 0; status == TBD_OK && (missing = tbd_call_graph_missing(d->graph, i)) != NULL;
         i++)
        fprintf(stderr, "tbdq: library %s was not found: its calls are missing (--library FILE)\n",
                missing);
    return status;
}

/* The stacks that recordings had with this value; without any, those in the calls that the files have, and that
 * recordings had.  A text as evidence is looked for in the calls of the files. */
static enum tbd_status find(struct decoding *d, uint64_t value, struct tbd_call_answer *out)
{
    const struct asked *asked = d->asked;
    enum tbd_status status = TBD_OK;

    *out = (struct tbd_call_answer){ .count = 0 };
    if (asked->log == NULL)
        status = tbd_contexts_find(&d->dictionary, asked->scheme, value, out);
    if (status != TBD_OK || out->count != 0)
        return status;
    if (d->graph == NULL)
        status = make_graph(d);
    if (status == TBD_OK)
        status = tbd_call_graph_find(d->graph, &asked->question, value, out);
    return status;
}

static enum tbd_exit fail(const struct decoding *d, enum tbd_status status)
{
    if (status == TBD_NOMEM)
        return tbd_command_no_memory();
    if (access(d->asked->program, R_OK) != 0)
        fprintf(stderr, "tbdq: --program %s: %s\n", tbd_shown(d->asked->program), strerror(errno));
    else
        fprintf(stderr, "tbdq: the files cannot be read: %s: %s\n", tbd_shown(d->asked->program),
                tbd_status_text(status));
    return TBD_EXIT_SYSTEM;
}

static double processor_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static enum tbd_exit find_value(struct decoding *d, uint64_t value)
{
    struct tbd_call_answer answer;
    double begin = processor_seconds();
    enum tbd_status status = find(d, value, &answer);
    enum tbd_exit result = answer.count != 0 ? TBD_EXIT_FOUND : TBD_EXIT_NOT_FOUND;

    d->seconds = processor_seconds() - begin;
    if (status != TBD_OK)
        return fail(d, status);
    add_answer(d, value, &answer);
    tbd_call_answer_free(&answer);
    return result;
}

static bool is_answer(enum tbd_exit result)
{
    return result == TBD_EXIT_FOUND || result == TBD_EXIT_NOT_FOUND;
}

/* The first word of each line; empty lines are left out.  Not found: one of them was not. */
static enum tbd_exit find_listed(struct decoding *d, FILE *list)
{
    enum tbd_exit result = TBD_EXIT_FOUND, found = TBD_EXIT_FOUND;
    size_t capacity = 0;
    char *line = NULL;

    for (uint64_t number = 1; is_answer(found) && getline(&line, &capacity, list) >= 0; number++) {
        uint64_t value;

        line[strcspn(line, " \t\r\n")] = '\0';
        if (*line == '\0')
            continue;
        if (tbd_value_word_take(line, &value)) {
            found = find_value(d, value);
        } else {
            fprintf(stderr, "tbdq: %s: line %" PRIu64 " has no value: '%s'\n",
                    tbd_shown(d->asked->values), number, tbd_shown(line));
            found = TBD_EXIT_USAGE;
        }
        if (found != TBD_EXIT_FOUND)
            result = found;
    }
    free(line);
    return result;
}

static enum tbd_exit find_file(struct decoding *d)
{
    bool is_input = strcmp(d->asked->values, "-") == 0;
    FILE *list = is_input ? stdin : fopen(d->asked->values, "re");
    enum tbd_exit result;

    if (list == NULL) {
        fprintf(stderr, "tbdq: %s cannot be read: %s\n", tbd_shown(d->asked->values),
                strerror(errno));
        return TBD_EXIT_SYSTEM;
    }
    result = find_listed(d, list);
    if (!is_input)
        fclose(list);
    return result;
}

/* ---- a dump ---- */

/* Each value once, whichever threads have it. */
static enum tbd_exit find_of_threads(struct decoding *d, struct tbd_session *session)
{
    uint32_t count = tbd_trace_thread_count(session->trace);
    struct tbd_msg_calling *all = calloc(count + 1, sizeof(*all));
    enum tbd_exit result = TBD_EXIT_FOUND, found = TBD_EXIT_FOUND;

    if (all == NULL)
        return tbd_command_no_memory();
    for (uint32_t i = 0; i < count; i++)
        if (tbd_dump_calling(session, 0, tbd_trace_thread(session->trace, i)->tid, &all[i]) !=
            TBD_OK)
            all[i] = (struct tbd_msg_calling){ .thread = 0 };
    for (uint32_t i = 0; i < count && is_answer(found); i++) {
        if (all[i].thread == 0)
            continue;
        d->thread = all[i].thread;
        d->threads = 1;
        for (uint32_t k = i + 1; k < count; k++) {
            if (all[k].thread == 0 || all[k].value != all[i].value)
                continue;
            all[k].thread = 0;
            d->threads++;
        }
        found = find_value(d, all[i].value);
        if (found != TBD_EXIT_FOUND)
            result = found;
    }
    free(all);
    return result;
}

/* What the values are made by is known, unless it was said.  False: the dump has no values. */
static bool take_scheme(struct tbd_session *session, struct asked *asked)
{
    struct tbd_msg_calling calling;

    for (uint32_t i = 0; i < tbd_trace_thread_count(session->trace); i++) {
        if (tbd_dump_calling(session, 0, tbd_trace_thread(session->trace, i)->tid, &calling) !=
            TBD_OK)
            continue;
        if (!asked->is_scheme_given && calling.scheme < TBD_CALLING_SCHEMES)
            asked->scheme = asked->question.scheme = calling.scheme;
        return true;
    }
    return false;
}

/* The dump's files stand for --program and --library; they are read where the program had them. */
static void take_files(struct tbd_session *session, struct asked *asked)
{
    const struct tbd_module *modules;
    size_t count;

    asked->program = session->info->program;
    if (tbd_symbols_modules(session->symbols, 0, &modules, &count) != TBD_OK)
        return;
    for (size_t i = 0; i < count && asked->words.more_count < TBD_CALL_GRAPH_FILES; i++) {
        struct tbd_elf_file *file = NULL;

        if (strcmp(modules[i].path, asked->program) != 0 && modules[i].path[0] == '/')
            asked->words.more[asked->words.more_count++] = (char *)(uintptr_t)modules[i].path;
        if (tbd_elf_open(modules[i].path, &file) != TBD_OK)
            continue;
        if (strcmp(file->build_id_text, modules[i].build_id) != 0)
            fprintf(stderr, "tbdq: note: %s is another file than the dump's: stacks may be wrong\n",
                    tbd_shown(modules[i].path));
        tbd_elf_close(file);
    }
}

static enum tbd_exit decode(struct tbd_command_run *run, const struct asked *asked,
                            struct tbd_session *dump)
{
    static const char *const columns[] = { "thread", "threads",  "value", "stack",  "frame",
                                           "times",  "function", "call",  "source", NULL };
    struct decoding d = { .run = run, .asked = asked };
    enum tbd_exit result;

    if (open_dictionary(asked, &d.dictionary) != TBD_OK ||
        (dump != NULL && tbd_contexts_learn_dump(dump, &d.dictionary) != TBD_OK)) {
        tbd_contexts_close(&d.dictionary);
        return tbd_command_no_memory();
    }
    tbd_rows_start(&d.rows, run,
                   columns + (asked->is_of_threads    ? 0
                              : asked->values != NULL ? 2
                                                      : 3));
    if (asked->is_of_threads)
        result = find_of_threads(&d, dump);
    else
        result = asked->values != NULL ? find_file(&d) : find_value(&d, asked->words.value);
    if (d.rows.count != 0)
        tbd_rows_end(&d.rows);
    else
        tbd_rows_drop(&d.rows);
    tbd_call_graph_free(d.graph);
    tbd_contexts_close(&d.dictionary);
    return result;
}

static enum tbd_exit decode_dump(struct tbd_command_run *run, struct asked *asked,
                                 struct tbd_session *session)
{
    bool has_contexts;

    if (!session->info->is_dump || session->info->program[0] == '\0')
        return tbd_command_usage(run,
                                 "--program is needed: this trace is no crash dump that names it");
    has_contexts = take_scheme(session, asked);
    asked->is_of_threads = !has_values(asked);
    if (asked->is_of_threads && !has_contexts) {
        fprintf(stderr, "tbdq: the dump has no calling contexts\n"
                        "hint: tbd crash --mode=crash,context -- PROGRAM\n");
        return TBD_EXIT_NOT_FOUND;
    }
    take_files(session, asked);
    return decode(run, asked, session);
}

/* The trace that is open, or else the one that the command line names. */
static enum tbd_exit with_dump(struct tbd_command_run *run, struct asked *asked)
{
    struct tbd_session session = { .workers = run->session->workers,
                                   .no_cache = run->session->no_cache,
                                   .takes_rings = true };
    enum tbd_exit result;
    enum tbd_status status;

    if (run->session->trace != NULL)
        return decode_dump(run, asked, run->session);
    status = tbd_session_open(&session, run->trace);
    if (status == TBD_OK) {
        result = decode_dump(run, asked, &session);
    } else if (status == TBD_NOTRACE && run->trace == NULL) {
        result =
            tbd_command_usage(run, "--program is needed: there is no crash dump that names it");
    } else {
        run->session->why = session.why;
        result = tbd_command_fail(run, status);
    }
    tbd_session_close(&session);
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
    if (result != TBD_EXIT_FOUND || (asked.learn != NULL && !has_values(&asked)))
        return result;
    return asked.program != NULL ? decode(run, &asked, NULL) : with_dump(run, &asked);
}
