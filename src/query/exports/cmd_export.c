// SPDX-License-Identifier: MIT
/* cmd_export.c - export: files that other programs read
 *
 *   export FORMAT FILE [func PATTERN | module NAME] [depth N] [where CONTEXT] [counter EXPRESSION]...
 *                                                                       the calls of these functions
 *   export lcov FILE [module NAME]                                      lines and functions of the run
 *   export lackey FILE [from TIME] [to TIME]                            references to memory
 *   export core FILE                                                    the state at the current position
 *
 * Without a choice the calls, or lines, are those of the program's own functions. */
#include "query/exports/counter.h"
#include "query/exports/lackey.h"
#include "query/exports/lcov.h"
#include "query/exports/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNTERS_MAX 16u

static const struct export_format {
    const char *name;
    bool (*write)(const struct tbd_export *export);
    bool has_counters;
} formats[] = {
    { "folded", tbd_export_folded, false },
    { "speedscope", tbd_export_speedscope, false },
    { "callgrind", tbd_export_callgrind, false },
    { "perfetto", tbd_export_perfetto, true },
};

/* The file that the user named; a link that is there already is not followed. */
static FILE *create_file(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

    if (out == NULL) {
        fprintf(stderr, "tbdq: cannot write %s: %s\n", name, strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    return out;
}

/* Closes it; says what went wrong. */
static enum tbd_exit finish_file(FILE *out, const char *name, enum tbd_exit result)
{
    bool is_bad = ferror(out) != 0;

    is_bad |= fclose(out) != 0;
    if (!is_bad)
        return result;
    fprintf(stderr, "tbdq: cannot write %s: %s\n", name, strerror(errno));
    return TBD_EXIT_SYSTEM;
}

/* ---- which calls ---- */

static enum tbd_exit add_condition(struct tbd_command_run *run, const char *text,
                                   struct tbd_question *question)
{
    struct tbd_command_run own = *run;
    struct tbd_query_error error = { 0 };
    struct tbd_expr *expr;

    own.text = text;
    own.arguments = 0;
    if (tbd_expr_parse(text, 0, TBD_EVENT_FUNC_ENTER, &expr, &error) != TBD_OK)
        return tbd_command_wrong(&own, &error);
    tbd_question_where(question, expr);
    return TBD_EXIT_FOUND;
}

/* The program's own module, as a condition names it. */
static const char *own_module(const struct tbd_session *session)
{
    const char *slash = strrchr(session->info->program, '/');

    return slash == NULL ? session->info->program : slash + 1;
}

/* What the words after the file say. */
struct export_choice {
    const char *pattern, *condition; /* NULL: not given */
    enum tbd_name_kind kind;         /* of the pattern */
    uint32_t depth;                  /* 0: no limit */
    const char *expressions[COUNTERS_MAX];
    uint32_t count; /* of counters */
};

static bool take_depth(const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    *out = (uint32_t)value;
    return *text >= '1' && *text <= '9' && *end == '\0' && value <= UINT32_MAX;
}

static bool take_choice(const char *word, const char *value, struct export_choice *out)
{
    bool is_function = strcmp(word, "func") == 0;

    if ((is_function || strcmp(word, "module") == 0) && out->pattern == NULL) {
        out->kind = is_function ? TBD_NAME_FUNCTION : TBD_NAME_MODULE;
        out->pattern = value;
        return true;
    }
    if (strcmp(word, "where") == 0 && out->condition == NULL) {
        out->condition = value;
        return true;
    }
    if (strcmp(word, "counter") == 0 && out->count < COUNTERS_MAX) {
        out->expressions[out->count++] = value;
        return true;
    }
    return strcmp(word, "depth") == 0 && out->depth == 0 && take_depth(value, &out->depth);
}

static enum tbd_exit read_choice(struct tbd_command_run *run, const struct export_format *format,
                                 struct export_choice *out)
{
    unsigned next = 2;

    while (next + 1 < run->argc && take_choice(run->argv[next], run->argv[next + 1], out))
        next += 2;
    if (next != run->argc)
        return tbd_command_usage(run, "export takes a format, a file, and which functions' calls");
    if (out->count != 0 && !format->has_counters)
        return tbd_command_usage(run, "only perfetto has counters");
    return TBD_EXIT_FOUND;
}

static enum tbd_exit read_calls(struct tbd_command_run *run, const struct export_choice *choice,
                                struct tbd_question *out)
{
    struct tbd_expr_name name = { .kind = choice->kind };
    const char *text = choice->pattern == NULL ? own_module(run->session) : choice->pattern;

    *out = tbd_question_all(TBD_EVENT_FUNC_ENTER);
    name.text = strdup(text);
    if (name.text == NULL)
        return tbd_command_no_memory();
    tbd_question_where(out, tbd_expr_is_in(&name));
    free(name.text);
    return choice->condition == NULL ? TBD_EXIT_FOUND : add_condition(run, choice->condition, out);
}

static enum tbd_exit write_calls(const struct export_format *format,
                                 const struct tbd_export *export, const char *path)
{
    struct tbd_export own = *export;

    own.out = create_file(path);
    if (own.out == NULL)
        return TBD_EXIT_SYSTEM;
    return finish_file(own.out, path,
                       format->write(&own) ? TBD_EXIT_FOUND : tbd_command_no_memory());
}

static enum tbd_exit find_calls(struct tbd_command_run *run, const struct export_choice *choice,
                                struct tbd_timeline *out)
{
    struct tbd_question question = { .type = TBD_EVENT_FUNC_ENTER };
    enum tbd_exit result = read_calls(run, choice, &question);

    if (result == TBD_EXIT_FOUND)
        result = tbd_timeline_read(run, &question, out);
    else
        tbd_question_free(&question);
    if (result == TBD_EXIT_NOT_FOUND)
        fprintf(stderr, "tbdq: there are no such calls in this trace\n");
    if (choice->depth != 0)
        tbd_timeline_limit(out, choice->depth);
    return result;
}

static enum tbd_exit export_calls(struct tbd_command_run *run, const struct export_format *format)
{
    struct tbd_counter *counters = calloc(COUNTERS_MAX, sizeof(*counters));
    struct tbd_timeline timeline = { 0 };
    struct tbd_export export = { .run = run, .timeline = &timeline, .counters = counters };
    struct export_choice choice = { .kind = TBD_NAME_MODULE };
    enum tbd_exit result =
        counters == NULL ? tbd_command_no_memory() : read_choice(run, format, &choice);

    while (result == TBD_EXIT_FOUND && export.counter_count < choice.count) {
        result = tbd_counter_open(run, choice.expressions[export.counter_count],
                                  &counters[export.counter_count]);
        export.counter_count += result == TBD_EXIT_FOUND;
    }
    if (result == TBD_EXIT_FOUND)
        result = find_calls(run, &choice, &timeline);
    if (result == TBD_EXIT_FOUND)
        result = write_calls(format, &export, run->argv[1]);
    for (uint32_t i = 0; i < export.counter_count; i++)
        tbd_counter_close(&counters[i]);
    tbd_timeline_free(&timeline);
    free(counters);
    return result;
}

static enum tbd_exit export_lcov(struct tbd_command_run *run)
{
    const char *pattern = own_module(run->session);
    struct tbd_lcov *lcov = NULL;
    enum tbd_exit result;
    enum tbd_status status;
    FILE *out;

    if (run->argc == 4 && strcmp(run->argv[2], "module") == 0)
        pattern = run->argv[3];
    else if (run->argc != 2)
        return tbd_command_usage(run, "export lcov takes a file, and perhaps module NAME");
    status = tbd_lcov_make(run->session, pattern, &lcov);
    if (status == TBD_NOTFOUND) {
        fprintf(stderr, "tbdq: no module of that name has line information in this trace\n");
        result = TBD_EXIT_NOT_FOUND;
    } else if (status != TBD_OK) {
        result = tbd_command_fail(run, status);
    } else {
        out = create_file(run->argv[1]);
        result = TBD_EXIT_SYSTEM;
        if (out != NULL) {
            tbd_lcov_write(lcov, out);
            result = finish_file(out, run->argv[1], TBD_EXIT_FOUND);
        }
    }
    tbd_lcov_free(lcov);
    return result;
}

static bool take_time(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
}

static bool take_span(const struct tbd_command_run *run, struct tbd_lackey_span *out)
{
    bool is_good = run->argc % 2 == 0;

    *out = (struct tbd_lackey_span){ .end = UINT64_MAX };
    for (unsigned i = 2; i + 1 < run->argc && is_good; i += 2) {
        bool is_end = strcmp(run->argv[i], "to") == 0;

        is_good = (is_end || strcmp(run->argv[i], "from") == 0) &&
                  take_time(run->argv[i + 1], is_end ? &out->end : &out->first);
    }
    return is_good;
}

static enum tbd_exit export_lackey(struct tbd_command_run *run)
{
    struct tbd_lackey_span span;
    enum tbd_exit result = TBD_EXIT_FOUND;
    enum tbd_status status;
    FILE *out;

    if (!take_span(run, &span))
        return tbd_command_usage(run, "export lackey takes a file, and perhaps from TIME, to TIME");
    out = create_file(run->argv[1]);
    if (out == NULL)
        return TBD_EXIT_SYSTEM;
    status = tbd_lackey_write(run->session, span, out);
    if (status == TBD_NOTFOUND) {
        fprintf(stderr, "tbdq: nothing ran there in this trace\n");
        result = TBD_EXIT_NOT_FOUND;
    } else if (status != TBD_OK) {
        result = tbd_command_fail(run, status);
    }
    return finish_file(out, run->argv[1], result);
}

static enum tbd_exit export_core(struct tbd_command_run *run)
{
    struct tbd_position position = tbd_session_current(run->session);
    uint32_t window;
    enum tbd_status status;
    FILE *out;

    if (run->argc != 2)
        return tbd_command_usage(run, "export core takes a file");
    status = tbd_session_window_at(run->session, position, &window);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    out = create_file(run->argv[1]);
    if (out == NULL)
        return TBD_EXIT_SYSTEM;
    return finish_file(out, run->argv[1], tbd_export_core(run, position, out));
}

enum tbd_exit tbd_command_export(struct tbd_command_run *run)
{
    if (run->argc >= 2 && strcmp(run->argv[0], "core") == 0)
        return export_core(run);
    if (run->argc >= 2 && strcmp(run->argv[0], "lcov") == 0)
        return export_lcov(run);
    if (run->argc >= 2 && strcmp(run->argv[0], "lackey") == 0)
        return export_lackey(run);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && run->argc >= 2; i++) {
        if (strcmp(run->argv[0], formats[i].name) == 0)
            return export_calls(run, &formats[i]);
    }
    return tbd_command_usage(
        run,
        "export takes folded, speedscope, callgrind, perfetto, lcov, lackey or core, and a file");
}
