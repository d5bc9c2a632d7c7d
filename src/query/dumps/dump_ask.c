// SPDX-License-Identifier: MIT
/* dump_ask.c - print, locals and more at a position before a dump's end (dump_values.h)
 *
 * They are the commands of traces, asked twice: once with all that is known, once with what is exact alone.  An
 * answer is exact if both are the same; so it rests on nothing that is not exact, whatever it was computed from. */
#include "query/dumps/dump_values.h"

#include "query/dumps/dump_values_private.h"
#include "query/dumps/dump_why.h"
#include "query/output/output.h"
#include "query/debuginfo/dwarf_location.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static json_t *read_lines(char *text)
{
    json_t *all = json_array();
    char *rest = text;

    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line != '\0')
            json_array_append_new(all, json_loads(line, JSON_ALLOW_NUL, NULL));
    return all;
}

json_t *tbd_dump_answers_of(struct tbd_dump_values *values, tbd_dump_command *command,
                            bool exact_only, enum tbd_exit *result)
{
    struct tbd_command_run *run = values->dump.run;
    bool json = run->session->json;
    FILE *out = run->out;
    char *text = NULL;
    size_t bytes = 0;
    json_t *answers = NULL;

    run->out = open_memstream(&text, &bytes);
    if (run->out != NULL) {
        run->session->json = true;
        tbd_past_enter(values->past, exact_only);
        *result = command(run);
        tbd_past_leave(values->past);
        run->session->json = json;
        fclose(run->out);
        answers = read_lines(text);
    } else {
        *result = tbd_command_no_memory();
    }
    run->out = out;
    free(text);
    return answers;
}

/* Is something in it not known? */
static bool has_unknown(const json_t *answer)
{
    return json_is_false(json_object_get(answer, "known")) ||
           json_object_get(answer, "unknown_parts") != NULL;
}

/* What is not known was written somewhere all the same: the row of that, in the answer of print. */
static void put_written(const struct tbd_dump_values *values, json_t *answer)
{
    const struct tbd_command_run *run = values->dump.run;
    const char *expression = json_string_value(json_object_get(answer, "expression"));
    const char *at = expression == NULL ? NULL : strstr(run->text + run->arguments, expression);
    json_t *row;

    if (at == NULL || strcmp(at, expression) != 0)
        return;
    tbd_past_enter(values->past, false);
    row = tbd_dump_why_written(&values->dump, values->past, (size_t)(at - run->text));
    tbd_past_leave(values->past);
    if (row != NULL)
        json_object_set_new(answer, "written", row);
}

static void print_written(const json_t *written, FILE *out)
{
    const char *position = json_string_value(json_object_get(written, "position"));
    const char *source = json_string_value(json_object_get(written, "source"));
    const char *function = json_string_value(json_object_get(written, "function"));

    if (written == NULL)
        return;
    if (position == NULL)
        fputs("  written before what the dump has of the thread", out);
    else
        fprintf(out, "  written %s at %s, %s, %s",
                json_is_true(json_object_get(written, "certain")) ? "last" : "perhaps", position,
                tbd_shown(function), tbd_shown(source != NULL ? source : "no line"));
}

static void print_answer(const struct tbd_dump_values *values, json_t *answer, const char *name,
                         enum tbd_certainty certainty)
{
    FILE *out = values->dump.run->out;

    if (values->dump.run->session->json) {
        tbd_dump_values_put_position(values, answer);
        tbd_dump_values_put_certainty(answer, certainty);
        tbd_output_line(json_incref(answer), out);
        return;
    }
    if (name != NULL)
        fprintf(out, "%s = ", tbd_shown(name));
    fprintf(out, "%s%s%s", json_string_value(json_object_get(answer, "value")),
            certainty == TBD_EXACT ? "" : "  ",
            certainty == TBD_EXACT ? "" : tbd_certainty_text(certainty));
    print_written(json_object_get(answer, "written"), out);
    fputc('\n', out);
}

/* Looks back for what is unknown in the answers of print. */
static void print_answers(const struct tbd_dump_values *values, json_t *all, const json_t *exact)
{
    size_t index;
    json_t *answer;

    json_array_foreach(all, index, answer)
    {
        bool is_same = json_equal(answer, json_array_get(exact, index)) != 0;

        if (has_unknown(answer))
            put_written(values, answer);
        print_answer(values, answer, json_string_value(json_object_get(answer, "name")),
                     has_unknown(answer) ? TBD_UNKNOWN
                     : is_same           ? TBD_EXACT
                                         : TBD_INFERRED);
    }
}

/* The program has no such value there. */
static bool is_nowhere(const json_t *answer)
{
    const char *text = json_string_value(json_object_get(answer, "value"));

    return json_is_false(json_object_get(answer, "known")) && text != NULL &&
           (strcmp(text, "<optimized out: " TBD_DATA_NO_LOCATION ">") == 0 ||
            strcmp(text, "<optimized out: " TBD_DATA_NO_POINTER TBD_DATA_NO_LOCATION ">") == 0);
}

static bool any_unknown(const json_t *all)
{
    size_t index;
    json_t *answer;

    json_array_foreach(all, index, answer)
    {
        if (has_unknown(answer) && !is_nowhere(answer))
            return true;
    }
    return false;
}

/* An error is told once: what fails with all that is known is not asked again. */
static enum tbd_exit ask_twice(struct tbd_command_run *run, tbd_dump_command *command)
{
    struct tbd_dump_values values;
    enum tbd_exit result = tbd_dump_values_open(run, &values), again;
    json_t *all = NULL, *exact = NULL;

    if (result == TBD_EXIT_FOUND)
        all = tbd_dump_answers_of(&values, command, false, &result);
    if (result == TBD_EXIT_FOUND && any_unknown(all) && tbd_dump_values_look_farther(&values)) {
        json_decref(all);
        all = tbd_dump_answers_of(&values, command, false, &result);
    }
    if (result == TBD_EXIT_FOUND)
        exact = tbd_dump_answers_of(&values, command, true, &again);
    if (result == TBD_EXIT_FOUND)
        print_answers(&values, all, exact);
    json_decref(all);
    json_decref(exact);
    tbd_dump_values_close(&values);
    return result;
}

enum tbd_exit tbd_dump_run_print(struct tbd_command_run *run)
{
    return ask_twice(run, tbd_command_print);
}

enum tbd_exit tbd_dump_run_locals(struct tbd_command_run *run)
{
    return ask_twice(run, tbd_command_locals);
}

/* What a command answers there that shows no values. */
static enum tbd_exit ask_there(struct tbd_command_run *run, tbd_dump_command *command,
                               bool exact_only)
{
    struct tbd_dump_values values;
    enum tbd_exit result = tbd_dump_values_open(run, &values);

    if (result == TBD_EXIT_FOUND) {
        tbd_past_enter(values.past, exact_only);
        result = command(run);
        tbd_past_leave(values.past);
    }
    tbd_dump_values_close(&values);
    return result;
}

enum tbd_exit tbd_dump_run_list(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_list, false);
}

enum tbd_exit tbd_dump_run_frame(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_frame, false);
}

enum tbd_exit tbd_dump_run_up(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_up, false);
}

enum tbd_exit tbd_dump_run_down(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_down, false);
}

enum tbd_exit tbd_dump_run_ptype(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_ptype, false);
}

enum tbd_exit tbd_dump_run_symbol(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_symbol, false);
}

enum tbd_exit tbd_dump_run_line(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_line, false);
}

/* It has no place for a mark: what rests on an assumption is unavailable. */
enum tbd_exit tbd_dump_run_printf(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_printf, true);
}

/* An assumption proves nothing. */
enum tbd_exit tbd_dump_run_assert(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_assert, true);
}
