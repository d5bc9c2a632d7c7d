// SPDX-License-Identifier: MIT
/* lcov.c - which lines and functions ran, and how often: a tracefile of lcov, for genhtml
 *
 * A line is executed as often as its code is begun: each instruction that begins code of the line (session/line_starts.h)
 * counts.  A jump to code of the same line, as that of a `while` to its condition, begins nothing.  Lines of the
 * line table that did not run have 0; a function has the count of its first instruction.
 *
 * LCOV-1  Lines are sorted by file and line before they are joined, functions by file, line and name. (not checked:
 *     join() sorts) */
#include "query/exports/lcov.h"

#include "base/array.h"
#include "query/debuginfo/dwarf_sources.h"
#include "query/exports/block_counts.h"
#include "query/session/source/line_starts.h"
#include "query/session/source/source.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct covered_line {
    const char *file; /* borrowed from the debug information */
    uint32_t line;
    const char *function; /* NULL: it is a line; else borrowed */
    uint64_t count;
};

struct tbd_lcov {
    struct tbd_session *session;
    const char *pattern;      /* of modules' names; borrowed */
    struct covered_line *all; /* owned */
    size_t count, capacity;
    bool no_memory;
};

static bool is_wanted(const struct tbd_lcov *c, const struct tbd_module *module)
{
    return module != NULL && fnmatch(c->pattern, module->name, 0) == 0;
}

static void add(struct tbd_lcov *c, struct covered_line line)
{
    if (!tbd_array_grow(&c->all, c->count, &c->capacity, sizeof(*c->all)))
        c->no_memory = true;
    else
        c->all[c->count++] = line;
}

/* ---- what ran ---- */

/* The target of a direct jump without a condition; 0: the instruction is none. */
static uint64_t jump_target(const struct tbd_lcov *c, uint32_t window, uint64_t pc)
{
    uint8_t code[5];
    int8_t near;
    int32_t far;

    if (tbd_symbols_read_file(c->session->symbols, window, pc, code, sizeof(code)) < sizeof(code))
        return 0;
    memcpy(&near, code + 1, sizeof(near));
    memcpy(&far, code + 1, sizeof(far));
    if (code[0] == 0xeb)
        return pc + 2 + (uint64_t)(int64_t)near;
    return code[0] == 0xe9 ? pc + 5 + (uint64_t)(int64_t)far : 0;
}

static bool jumps_within(const struct tbd_lcov *c, uint32_t window, uint64_t pc,
                         const struct tbd_source_line *line)
{
    uint64_t target = jump_target(c, window, pc);
    struct tbd_source_line there;

    return target != 0 && tbd_source_line_at(c->session, window, target, &there) &&
           there.line == line->line && strcmp(there.file, line->file) == 0;
}

static void add_instruction(struct tbd_lcov *c, uint64_t pc, const struct tbd_block_count *count)
{
    struct tbd_source_line line;

    if (tbd_source_line_at(c->session, count->window, pc, &line) &&
        !jumps_within(c, count->window, pc, &line))
        add(c, (struct covered_line){ line.file, line.line, NULL, count->count });
}

static void add_function(struct tbd_lcov *c, uint64_t pc, const struct tbd_block_count *count)
{
    struct tbd_source_line line;
    struct tbd_symbol symbol;

    if (tbd_symbols_at(c->session->symbols, count->window, pc, &symbol) && symbol.name != NULL &&
        symbol.is_function && symbol.start == pc && !symbol.is_part &&
        tbd_source_line_at(c->session, count->window, pc, &line))
        add(c, (struct covered_line){ line.file, line.line, symbol.name, count->count });
}

static void add_block(struct tbd_lcov *c, struct tbd_line_starts *starts, uint32_t id,
                      const struct tbd_block_count *count)
{
    const struct tbd_block *block = tbd_trace_block(c->session->trace, id);
    struct tbd_block_insn insn;
    uint64_t bits;

    if (block == NULL ||
        !is_wanted(c, tbd_symbols_module_at(c->session->symbols, count->window, block->def.start)))
        return;
    bits = tbd_line_starts_of(starts, count->window, id);
    for (uint32_t i = 0; i < block->def.insn_count && i < 64; i++) {
        if (!tbd_disas_insn(c->session->disas, id, i, &insn))
            return;
        add_function(c, insn.pc, count);
        if ((bits >> i & 1) != 0)
            add_instruction(c, insn.pc, count);
    }
}

static enum tbd_status add_blocks(struct tbd_lcov *c)
{
    struct tbd_block_counts counts = { 0 };
    struct tbd_line_starts *starts = NULL;
    enum tbd_status status = tbd_line_starts_new(c->session, &starts);

    if (status == TBD_OK)
        status = tbd_block_counts_make(c->session, &counts);
    for (uint32_t id = 1; id < counts.capacity && status == TBD_OK; id++) {
        if (counts.all[id].count != 0)
            add_block(c, starts, id, &counts.all[id]);
    }
    tbd_block_counts_free(&counts);
    tbd_line_starts_free(starts);
    return status;
}

/* ---- what there is ---- */

static bool add_row(void *context, const struct tbd_dwarf_row *row)
{
    struct tbd_lcov *c = context;

    add(c, (struct covered_line){ row->path, row->line, NULL, 0 });
    return !c->no_memory;
}

static void add_functions(struct tbd_lcov *c, const struct tbd_module *module,
                          struct tbd_dwarf *dwarf)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(module->file);
    struct tbd_source_line line;

    for (size_t i = 0; symbols != NULL && i < symbols->span_count; i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[symbols->spans[i].symbol];

        if (symbol->is_function && !symbol->is_made_up && !symbol->is_stub &&
            tbd_dwarf_line_at(dwarf, symbol->start, &line))
            add(c, (struct covered_line){ line.file, line.line,
                                          tbd_elf_symbol_name(module->file, symbol), 0 });
    }
}

/* Lines and functions of the modules that are mapped at the end, or were at the start. */
static enum tbd_status add_modules(struct tbd_lcov *c, uint32_t window)
{
    const struct tbd_module *modules = NULL;
    size_t count = 0;
    enum tbd_status status = tbd_symbols_modules(c->session->symbols, window, &modules, &count);

    for (size_t i = 0; i < count && status == TBD_OK; i++) {
        struct tbd_dwarf *dwarf = is_wanted(c, &modules[i]) ? tbd_dwarf_of(modules[i].file) : NULL;

        if (dwarf == NULL)
            continue;
        tbd_dwarf_rows(dwarf, add_row, c);
        add_functions(c, &modules[i], dwarf);
    }
    return status;
}

/* ---- the file ---- */

static int compare_lines(const void *left, const void *right)
{
    const struct covered_line *a = left, *b = right;
    int order = strcmp(a->file, b->file);

    if (order != 0)
        return order;
    if ((a->function == NULL) != (b->function == NULL))
        return a->function == NULL ? 1 : -1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->function == NULL ? 0 : strcmp(a->function, b->function);
}

static void join(struct tbd_lcov *c)
{
    size_t used = 0;

    if (c->count == 0)
        return;
    qsort(c->all, c->count, sizeof(*c->all), compare_lines);
    for (size_t i = 1; i < c->count; i++) {
        if (compare_lines(&c->all[used], &c->all[i]) == 0)
            c->all[used].count += c->all[i].count;
        else
            c->all[++used] = c->all[i];
    }
    c->count = used + 1;
}

/* A line of the file ends the path, or the name. */
static void put_text(const char *text, FILE *out)
{
    for (; *text != '\0'; text++)
        fputc((unsigned char)*text < ' ' ? '?' : *text, out);
}

/* Functions, then lines: [from, end) are of one file. */
static void write_file(const struct tbd_lcov *c, size_t from, size_t end, FILE *out)
{
    size_t lines = from, hit_functions = 0, hit_lines = 0;

    fputs("TN:\nSF:", out);
    put_text(c->all[from].file, out);
    fputc('\n', out);
    for (; lines < end && c->all[lines].function != NULL; lines++) {
        fprintf(out, "FN:%" PRIu32 ",", c->all[lines].line);
        put_text(c->all[lines].function, out);
        fputc('\n', out);
    }
    for (size_t i = from; i < lines; i++) {
        fprintf(out, "FNDA:%" PRIu64 ",", c->all[i].count);
        put_text(c->all[i].function, out);
        fputc('\n', out);
        hit_functions += c->all[i].count != 0;
    }
    fprintf(out, "FNF:%zu\nFNH:%zu\n", lines - from, hit_functions);
    for (size_t i = lines; i < end; i++) {
        fprintf(out, "DA:%" PRIu32 ",%" PRIu64 "\n", c->all[i].line, c->all[i].count);
        hit_lines += c->all[i].count != 0;
    }
    fprintf(out, "LF:%zu\nLH:%zu\nend_of_record\n", end - lines, hit_lines);
}

void tbd_lcov_write(const struct tbd_lcov *c, FILE *out)
{
    size_t end;

    for (size_t from = 0; from < c->count; from = end) {
        for (end = from + 1; end < c->count && strcmp(c->all[end].file, c->all[from].file) == 0;)
            end++;
        write_file(c, from, end, out);
    }
}

enum tbd_status tbd_lcov_make(struct tbd_session *session, const char *pattern,
                              struct tbd_lcov **out)
{
    struct tbd_lcov *c = calloc(1, sizeof(*c));
    uint32_t windows = tbd_trace_window_count(session->trace);
    enum tbd_status status = windows == 0 ? TBD_NOTFOUND : TBD_OK;

    *out = c;
    if (c == NULL)
        return TBD_NOMEM;
    c->session = session;
    c->pattern = pattern;
    if (status == TBD_OK)
        status = add_blocks(c);
    if (status == TBD_OK)
        status = add_modules(c, windows - 1);
    if (c->no_memory)
        status = TBD_NOMEM;
    join(c);
    return status == TBD_OK && c->count == 0 ? TBD_NOTFOUND : status;
}

void tbd_lcov_free(struct tbd_lcov *lcov)
{
    if (lcov != NULL)
        free(lcov->all);
    free(lcov);
}
