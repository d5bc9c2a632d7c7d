// SPDX-License-Identifier: MIT
/* cmd_address.c - symbol, line: names and source lines of addresses, and the addresses of lines */
#include "query/commands/commands.h"
#include "query/commands/functions.h"
#include "query/commands/rows.h"
#include "query/output/output.h"
#include "query/session/code/inlined.h"
#include "query/session/source/source.h"
#include "query/text/shortage.h"

#include "base/safe_stream.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RANGES_MAX 4096u
#define LINES_NEXT 200u /* how far a line with code is looked for */

/* ---- symbol ---- */

static void print_symbol(const struct tbd_command_run *run, uint32_t window, uint64_t address)
{
    struct tbd_source_line source = { .line = 0 };
    char name[512], text[512];
    json_t *object;

    if (run->session->json) {
        object = json_object();
        json_object_set_new(object, "addr", tbd_output_hex(address));
        tbd_output_symbol(run->session, window, address, object);
        tbd_output_line(object, run->out);
        return;
    }
    (void)tbd_source_line_at(run->session, window, address, &source);
    tbd_symbols_format(run->session->symbols, window, address, name, sizeof(name));
    fprintf(run->out, "0x%" PRIx64 "  %s%s\n", address, tbd_shown(name),
            tbd_output_source_text(&source, text, sizeof(text)));
}

enum tbd_exit tbd_command_symbol(struct tbd_command_run *run)
{
    uint32_t window = tbd_session_current_window(run->session);
    struct tbd_symbol symbol;
    enum tbd_exit result;
    uint64_t address;

    if (run->argc == 0)
        return tbd_command_usage(run, "symbol takes an address");
    result = tbd_command_address(run, tbd_session_current(run->session), run->arguments,
                                 strlen(run->text), &address);
    if (result != TBD_EXIT_FOUND)
        return result;
    if (!tbd_symbols_at(run->session->symbols, window, address, &symbol) || symbol.name == NULL) {
        fprintf(stderr, "tbdq: no symbol is at 0x%" PRIx64 "%s%s\n", address,
                *symbol.module == '\0' ? ", which is in no module" : ", which is in ",
                tbd_shown(symbol.module));
        return TBD_EXIT_NOT_FOUND;
    }
    print_symbol(run, window, address);
    return TBD_EXIT_FOUND;
}

/* ---- line ---- */

struct lining {
    struct tbd_command_run *run;
    uint32_t window;
    struct tbd_rows rows;
};

static void add_range(struct lining *l, const struct tbd_source_line *line, uint64_t start,
                      uint64_t end)
{
    json_t *row = json_object();
    char text[512];

    tbd_output_source(line, row);
    tbd_output_source_cell(line->file, line->line, row);
    json_object_set_new(row, "start", tbd_output_hex(start));
    json_object_set_new(row, "end", tbd_output_hex(end));
    tbd_symbols_format(l->run->session->symbols, l->window, start, text, sizeof(text));
    json_object_set_new(row, "symbol", tbd_output_text(text));
    tbd_rows_add(&l->rows, row);
}

/* The line's code around an address; false: no line is known there. */
static bool add_line_at(struct lining *l, uint64_t address)
{
    struct tbd_source_line line;

    if (!tbd_source_line_at(l->run->session, l->window, address, &line))
        return false;
    add_range(l, &line, address - line.before, address + line.after);
    return true;
}

/* The full name of the file, from the line table. */
static void add_line_in(struct lining *l, const struct tbd_module *module, const char *file,
                        uint32_t number)
{
    struct tbd_dwarf *dwarf = tbd_dwarf_of(module->file);
    struct tbd_elf_range *ranges = calloc(RANGES_MAX, sizeof(*ranges));
    struct tbd_source_line line;
    size_t count = dwarf == NULL || ranges == NULL
                       ? 0
                       : tbd_dwarf_line_ranges(dwarf, file, number, ranges, RANGES_MAX);

    if (ranges == NULL)
        tbd_shortage_note();
    for (size_t i = 0; i < count && i < RANGES_MAX; i++) {
        if (!tbd_dwarf_line_at(dwarf, ranges[i].start, &line))
            line.file = file;
        line.line = number;
        add_range(l, &line, module->bias + ranges[i].start, module->bias + ranges[i].end);
    }
    free(ranges);
}

/* The next line with code, as gdb names it; 0: there is none near. */
static uint32_t next_with_code(const struct tbd_module *modules, size_t count, const char *file,
                               uint32_t number)
{
    bool has[LINES_NEXT] = { false };

    for (size_t i = 0; i < count; i++) {
        struct tbd_dwarf *dwarf = tbd_dwarf_of(modules[i].file);

        if (dwarf != NULL)
            tbd_dwarf_code_lines(dwarf, file, number, LINES_NEXT, has);
    }
    for (uint32_t i = 0; i < LINES_NEXT; i++) {
        if (has[i])
            return number + i;
    }
    return 0;
}

static enum tbd_exit add_line(struct lining *l, const char *file, uint32_t number)
{
    const struct tbd_module *modules;
    uint32_t next;
    size_t count;
    enum tbd_status status =
        tbd_symbols_modules(l->run->session->symbols, l->window, &modules, &count);

    if (status != TBD_OK)
        return tbd_command_fail(l->run, status);
    for (size_t i = 0; i < count; i++)
        add_line_in(l, &modules[i], file, number);
    if (l->rows.count != 0)
        return TBD_EXIT_FOUND;
    next = next_with_code(modules, count, file, number);
    fprintf(stderr, "tbdq: %s:%" PRIu32 " has no code", tbd_shown(file), number);
    if (next != 0)
        fprintf(stderr, "; the next line that has is %" PRIu32, next);
    fputc('\n', stderr);
    return TBD_EXIT_NOT_FOUND;
}

/* The functions called so begin at lines, and so do the copies of an inlined one. */
static enum tbd_exit add_function(struct lining *l, const char *name)
{
    struct tbd_symbol all[TBD_FUNCTIONS_MAX];
    size_t count = tbd_functions_called(l->run->session, l->window, name, all), copies = 0;
    struct tbd_dwarf_inlined *inlined =
        count != 0 ? NULL : tbd_inlined_find(l->run->session->symbols, l->window, name, &copies);

    for (size_t i = 0; i < count; i++)
        (void)add_line_at(l, all[i].start);
    for (size_t i = 0; i < copies; i++)
        (void)add_line_at(l, inlined[i].entry);
    free(inlined);
    if (l->rows.count != 0)
        return TBD_EXIT_FOUND;
    if (count == 0 && copies == 0)
        fprintf(stderr, "tbdq: there is no function called '%s' here\n", tbd_shown(name));
    else
        fprintf(stderr, "tbdq: no source line is known for '%s'\n", tbd_shown(name));
    return TBD_EXIT_NOT_FOUND;
}

/* The line of the selected frame; another line of its file, if the number is not 0. */
static enum tbd_exit add_here(struct lining *l, uint32_t number)
{
    struct tbd_position position = tbd_session_current(l->run->session);
    struct tbd_source_stack stack;
    const struct tbd_source_frame *call;
    enum tbd_exit result = TBD_EXIT_NOT_FOUND;
    enum tbd_status status = tbd_source_stack(l->run->session, position, &stack);
    uint64_t pc;

    if (status != TBD_OK)
        return tbd_command_fail(l->run, status);
    call = &stack.calls[stack.selected];
    pc = stack.frames[call->stack].call_pc;
    if (call->source.line == 0)
        fprintf(stderr, "tbdq: no source line is known for this place\n");
    else if (number != 0)
        result = add_line(l, call->source.file, number);
    else if (add_line_at(l, pc))
        result = TBD_EXIT_FOUND;
    tbd_source_stack_free(&stack);
    return result;
}

static enum tbd_exit add_address(struct lining *l)
{
    struct tbd_command_run *run = l->run;
    enum tbd_exit result;
    uint64_t address;

    result = tbd_command_address(run, tbd_session_current(run->session), run->arguments + 1,
                                 strlen(run->text), &address);
    if (result != TBD_EXIT_FOUND || add_line_at(l, address))
        return result;
    fprintf(stderr, "tbdq: no source line is known for 0x%" PRIx64 "\n", address);
    return TBD_EXIT_NOT_FOUND;
}

/* A line's number; 0: the text is none. */
static uint32_t line_number(const char *text)
{
    char *end;
    unsigned long number = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;

    return number == 0 || *end != '\0' || number > INT32_MAX ? 0 : (uint32_t)number;
}

static enum tbd_exit add_place(struct lining *l)
{
    const char *place = l->run->argc == 0 ? "" : l->run->argv[0];
    const char *colon = strrchr(place, ':');
    char file[512];

    if (*place == '*')
        return add_address(l);
    if (l->run->argc > 1)
        return tbd_command_usage(l->run,
                                 "line takes one place: FUNCTION, FILE:LINE, LINE or *ADDRESS");
    if (*place == '\0' || line_number(place) != 0)
        return add_here(l, line_number(place));
    if (colon == NULL || line_number(colon + 1) == 0)
        return add_function(l, place);
    snprintf(file, sizeof(file), "%.*s", (int)(colon - place), place);
    return add_line(l, file, line_number(colon + 1));
}

enum tbd_exit tbd_command_line(struct tbd_command_run *run)
{
    static const char *const columns[] = { "source", "start", "end", "symbol", NULL };
    struct lining l = { .run = run, .window = tbd_session_current_window(run->session) };
    enum tbd_exit result;

    tbd_rows_start(&l.rows, run, columns);
    result = add_place(&l);
    if (result == TBD_EXIT_FOUND)
        return tbd_rows_end(&l.rows);
    tbd_rows_drop(&l.rows);
    return result;
}
