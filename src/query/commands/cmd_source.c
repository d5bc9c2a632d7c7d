// SPDX-License-Identifier: MIT
/* cmd_source.c - frame, up, down, list: where a position is in the program's source */
#include "query/commands/commands.h"
#include "query/commands/functions.h"
#include "query/debuginfo/dwarf_file.h"
#include "query/output/output.h"
#include "query/session/code/inlined.h"
#include "query/session/source/source_place.h"

#include "base/safe_stream.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 100000u
#define DIGITS   "0123456789"

/* ---- frames ---- */

static enum tbd_exit select_frame(struct tbd_command_run *run, struct tbd_source_place *place,
                                  uint64_t number)
{
    if (number >= place->stack.count)
        return tbd_command_usage(run, "there is no such frame: see `tbdq bt`");
    tbd_source_select(run->session, place->stack.position, (size_t)number);
    tbd_command_print_frame(run, place, (size_t)number);
    return TBD_EXIT_FOUND;
}

/* `argument` is the optional number; `step` is 0 for "frame N", else the direction. */
static enum tbd_exit move_frame(struct tbd_command_run *run, int step)
{
    struct tbd_position position = tbd_session_current(run->session);
    struct tbd_source_place place;
    const struct tbd_source_stack *stack = &place.stack;
    enum tbd_exit result = TBD_EXIT_FOUND;
    enum tbd_status status;
    uint64_t number = 1;

    if (run->argc > 1)
        return tbd_command_usage(run, "it takes at most a number");
    if (run->argc == 1)
        result = tbd_command_value(run, 0, position, &number);
    if (result != TBD_EXIT_FOUND)
        return result;
    status = tbd_source_place_open(run->session, position, SIZE_MAX, &place);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    if (step == 0)
        number = run->argc == 1 ? number : stack->selected;
    else if (step > 0)
        number = number > stack->count ? stack->count : stack->selected + number;
    else
        number = number > stack->selected ? stack->count : stack->selected - number;
    result = select_frame(run, &place, number);
    tbd_source_place_close(&place);
    return result;
}

enum tbd_exit tbd_command_frame(struct tbd_command_run *run)
{
    return move_frame(run, 0);
}

enum tbd_exit tbd_command_up(struct tbd_command_run *run)
{
    return move_frame(run, 1);
}

enum tbd_exit tbd_command_down(struct tbd_command_run *run)
{
    return move_frame(run, -1);
}

/* ---- list ---- */

static void print_line(const struct tbd_command_run *run, const char *file, uint32_t line,
                       uint32_t current, const char *text)
{
    json_t *object;

    if (!run->session->json) {
        fprintf(run->out, "%s%5" PRIu32 "  %s\n", line == current ? "=>" : "  ", line, text);
        return;
    }
    object = json_object();
    json_object_set_new(object, "file", tbd_output_text(file));
    json_object_set_new(object, "line", json_integer((json_int_t)line));
    json_object_set_new(object, "current", json_boolean(line == current));
    json_object_set_new(object, "text", tbd_output_text(text));
    tbd_output_line(object, run->out);
}

/* `count` lines of the file from `first` on; `current` is the one that is marked, 0 for none. */
static enum tbd_exit print_from(const struct tbd_command_run *run, const struct tbd_source_line *at,
                                uint32_t first, uint32_t count, uint32_t current)
{
    struct tbd_source_text text;

    if (!tbd_source_load(at->file, &text)) {
        fprintf(
            stderr,
            "tbdq: cannot read %s, line %" PRIu32 "\n"
            "hint: sources are read where the debug information says that they are; `up` selects "
            "the caller's frame; `bt` shows all\n",
            tbd_shown(at->file), at->line);
        return TBD_EXIT_NOT_FOUND;
    }
    if (first > text.line_count) {
        fprintf(stderr, "tbdq: %s has %" PRIu32 " lines\n", tbd_shown(at->file), text.line_count);
        tbd_source_unload(&text);
        return TBD_EXIT_NOT_FOUND;
    }
    for (uint32_t line = first; line <= text.line_count && line - first < count; line++)
        print_line(run, at->file, line, current, text.lines[line]);
    tbd_source_unload(&text);
    return TBD_EXIT_FOUND;
}

/* The lines around `at`. */
static enum tbd_exit print_lines(const struct tbd_command_run *run,
                                 const struct tbd_source_line *at, uint32_t current, uint32_t count)
{
    uint32_t first = at->line > count / 2 ? at->line - count / 2 : 1;

    return print_from(run, at, first, count, current);
}

/* Finds the code of FILE or FILE:LINE in a module: the file's full name, and the line. */
static bool find_in_module(struct tbd_session *session, uint32_t window,
                           const struct tbd_module *module, const char *file, uint32_t line,
                           struct tbd_source_line *out)
{
    struct tbd_dwarf *dwarf = tbd_dwarf_of(module->file);
    struct tbd_elf_range range;

    if (dwarf == NULL ||
        (tbd_dwarf_line_ranges(dwarf, file, line, &range, 1) == 0 &&
         tbd_dwarf_line_ranges(dwarf, file, 0, &range, 1) == 0) ||
        !tbd_source_line_at(session, window, module->bias + range.start, out))
        return false;
    out->line = line;
    return true;
}

static bool find_file(struct tbd_session *session, uint32_t window, const char *file, uint32_t line,
                      struct tbd_source_line *out)
{
    const struct tbd_module *modules;
    size_t count;

    if (tbd_symbols_modules(session->symbols, window, &modules, &count) != TBD_OK)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (modules[i].file != NULL &&
            find_in_module(session, window, &modules[i], file, line, out))
            return true;
    }
    return false;
}

/* An inlined function begins where the code of its first copy does. */
static bool find_inlined(struct tbd_session *session, uint32_t window, const char *name,
                         struct tbd_source_line *out)
{
    size_t count;
    struct tbd_dwarf_inlined *all = tbd_inlined_find(session->symbols, window, name, &count);
    bool found = false;

    for (size_t i = 0; i < count && !found; i++)
        found = tbd_source_line_at(session, window, all[i].entry, out);
    free(all);
    return found;
}

/* Finds FUNCTION or FILE:LINE in the modules mapped at the position. */
static bool find_location(struct tbd_session *session, struct tbd_position position,
                          const char *text, struct tbd_source_line *out)
{
    uint32_t window = tbd_trace_window_of(session->trace, position.time);
    const char *colon = strrchr(text, ':');
    struct tbd_symbol symbol;
    char file[512];
    bool found;

    if (window == UINT32_MAX)
        return false;
    if ((colon == NULL || !isdigit((unsigned char)colon[1])) &&
        tbd_symbols_find(session->symbols, window, text, &symbol, 1) != 0)
        return tbd_source_line_at(session, window, symbol.start, out);
    if (colon == NULL || !isdigit((unsigned char)colon[1]))
        return find_inlined(session, window, text, out);
    snprintf(file, sizeof(file), "%.*s", (int)(colon - text), text);
    found = find_file(session, window, file, (uint32_t)strtoul(colon + 1, NULL, 10), out);
    return found && out->line != 0;
}

/* The functions that an ambiguous name means, as gdb does. */
static enum tbd_exit list_each(struct tbd_command_run *run, uint32_t window,
                               const struct tbd_symbol *all, size_t functions, uint32_t count)
{
    enum tbd_exit result = TBD_EXIT_NOT_FOUND;
    struct tbd_source_line at;

    for (size_t i = 0; i < functions; i++) {
        if (!tbd_source_line_at(run->session, window, all[i].start, &at))
            continue;
        if (!run->session->json)
            fprintf(run->out, "%sfile: \"%s\", line number: %" PRIu32 ", symbol: \"%s\"\n",
                    result == TBD_EXIT_FOUND ? "\n" : "", tbd_shown(at.file), at.line,
                    tbd_shown(all[i].name));
        if (print_lines(run, &at, 0, count) == TBD_EXIT_FOUND)
            result = TBD_EXIT_FOUND;
    }
    if (result != TBD_EXIT_FOUND)
        fprintf(stderr, "tbdq: no source is known for '%s'\n", run->argv[0]);
    return result;
}

static enum tbd_exit list_location(struct tbd_command_run *run, uint32_t count)
{
    struct tbd_symbol all[TBD_FUNCTIONS_MAX];
    struct tbd_source_line at;
    uint32_t window =
        tbd_trace_window_of(run->session->trace, tbd_session_current(run->session).time);
    size_t functions = strpbrk(run->argv[0], "*?[!") != NULL || window == UINT32_MAX
                           ? 0
                           : tbd_functions_called(run->session, window, run->argv[0], all);

    if (functions > 1)
        return list_each(run, window, all, functions, count);
    if (!find_location(run->session, tbd_session_current(run->session), run->argv[0], &at)) {
        fprintf(stderr, "tbdq: no function and no FILE:LINE with a known source is called '%s'\n",
                run->argv[0]);
        return TBD_EXIT_NOT_FOUND;
    }
    return print_lines(run, &at, 0, count);
}

/* The line of the selected frame; line 0: not known. */
static enum tbd_exit find_here(struct tbd_command_run *run, struct tbd_source_line *out)
{
    struct tbd_source_stack stack;
    enum tbd_status status =
        tbd_source_stack(run->session, tbd_session_current(run->session), &stack);

    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    *out = stack.calls[stack.selected].source;
    tbd_source_stack_free(&stack);
    return TBD_EXIT_FOUND;
}

static enum tbd_exit list_here(struct tbd_command_run *run, uint32_t count)
{
    struct tbd_source_line at;
    enum tbd_exit result = find_here(run, &at);

    if (result != TBD_EXIT_FOUND)
        return result;
    if (at.line != 0)
        return print_lines(run, &at, at.line, count);
    fprintf(stderr, "tbdq: no source line is known for this place\n"
                    "hint: `up` selects the caller's frame; `bt` shows all\n");
    return TBD_EXIT_NOT_FOUND;
}

/* gdb's "list 10,20", "list file.c:10,20" and "list main,20"; *end is what stands after the comma. */
static enum tbd_exit list_range(struct tbd_command_run *run, const char *end)
{
    struct tbd_position position = tbd_session_current(run->session);
    unsigned long last = strtoul(end + 1, NULL, 10);
    struct tbd_source_line here = { 0 }, at = { 0 };
    enum tbd_exit result = find_here(run, &here);
    char first[512];

    if (result != TBD_EXIT_FOUND)
        return result;
    snprintf(first, sizeof(first), "%.*s", (int)(end - run->argv[0]), run->argv[0]);
    if (strspn(first, DIGITS) == strlen(first)) {
        at = here;
        at.line = here.line == 0 ? 0 : (uint32_t)strtoul(first, NULL, 10);
    } else if (!find_location(run->session, position, first, &at)) {
        at.line = 0;
    }
    if (at.line == 0) {
        fprintf(stderr, "tbdq: no line with a known source is called '%s'\n", tbd_shown(first));
        return TBD_EXIT_NOT_FOUND;
    }
    if (last < at.line || last - at.line >= LIST_MAX)
        return tbd_command_usage(run, "the last line is before the first, or too far from it");
    return print_from(run, &at, at.line, (uint32_t)last - at.line + 1,
                      here.line != 0 && strcmp(at.file, here.file) == 0 ? here.line : 0);
}

/* The comma of "A,B"; NULL: it is no range of lines. */
static const char *comma_of(const struct tbd_command_run *run)
{
    const char *comma = run->argc == 1 ? strrchr(run->argv[0], ',') : NULL;

    return comma != NULL && comma != run->argv[0] && comma[1] != '\0' &&
                   strspn(comma + 1, DIGITS) == strlen(comma + 1)
               ? comma
               : NULL;
}

enum tbd_exit tbd_command_list(struct tbd_command_run *run)
{
    const char *comma = comma_of(run);
    bool is_location = run->argc != 0 && !isdigit((unsigned char)run->argv[0][0]);
    unsigned number = is_location ? 1 : 0;
    struct tbd_position position = tbd_session_current(run->session);
    enum tbd_exit result = TBD_EXIT_FOUND;
    uint64_t count = 10;

    if (comma != NULL)
        return list_range(run, comma);
    if (run->argc > number + 1)
        return tbd_command_usage(run, "list takes at most a place and a number of lines");
    if (run->argc == number + 1)
        result = tbd_command_value(run, number, position, &count);
    if (result != TBD_EXIT_FOUND)
        return result;
    count = count > LIST_MAX ? LIST_MAX : count;
    return is_location ? list_location(run, (uint32_t)count) : list_here(run, (uint32_t)count);
}
