// SPDX-License-Identifier: MIT
/* dwarf_lines.c - source lines of addresses and addresses of source lines (dwarf_file.h) */
#include "query/debuginfo/dwarf_private.h"

#include "base/array.h"
#include "base/binary_search.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t line_address(Dwarf_Lines *lines, size_t index)
{
    Dwarf_Addr address = 0;

    (void)dwarf_lineaddr(dwarf_onesrcline(lines, index), &address);
    return address;
}

/* How many rows are at or before `address`. */
static size_t rows_until(Dwarf_Lines *lines, size_t count, uint64_t address)
{
    return TBD_COUNT_BEFORE(i, count, line_address(lines, i) <= address);
}

/* Among rows of one address the last one counts, but one that begins a statement is preferred. */
static size_t best_row(Dwarf_Lines *lines, size_t index)
{
    uint64_t address = line_address(lines, index);

    for (size_t i = index + 1; i-- > 0 && line_address(lines, i) == address;) {
        Dwarf_Line *row = dwarf_onesrcline(lines, i);
        bool begins = false, ends = false;

        if (dwarf_lineendsequence(row, &ends) != 0 || ends)
            break;
        if (dwarf_linebeginstatement(row, &begins) == 0 && begins)
            return i;
    }
    return index;
}

static bool take_row(Dwarf_Line *row, struct tbd_source_line *out)
{
    bool ends = true;
    int line = 0;

    if (row == NULL || dwarf_lineendsequence(row, &ends) != 0 || ends ||
        dwarf_lineno(row, &line) != 0 || line <= 0)
        return false;
    out->file = dwarf_linesrc(row, NULL, NULL);
    out->line = (uint32_t)line;
    out->is_aside = out->starts = false;
    if (dwarf_linebeginstatement(row, &out->begins) != 0)
        out->begins = false;
    return out->file != NULL;
}

/* The index at which a new path is inserted. */
static size_t path_index(const struct tbd_dwarf *dwarf, const char *relative)
{
    return TBD_COUNT_BEFORE(i, dwarf->path_count,
                            (uintptr_t)dwarf->paths[i].relative < (uintptr_t)relative);
}

/* The path with the folder of compilation before it, where that makes it absolute. */
const char *tbd_dwarf_whole_path(struct tbd_dwarf *dwarf, const Dwarf_Die *unit,
                                 const char *relative)
{
    size_t at = path_index(dwarf, relative);
    Dwarf_Attribute attribute;
    const char *folder;
    char *path;

    if (relative[0] == '/')
        return relative;
    if (at < dwarf->path_count && dwarf->paths[at].relative == relative)
        return dwarf->paths[at].path;
    if (!tbd_die_attribute(unit, DW_AT_comp_dir, &attribute) ||
        (folder = dwarf_formstring(&attribute)) == NULL || folder[0] != '/' ||
        dwarf->path_count >= TBD_DWARF_UNITS_MAX ||
        !tbd_array_grow(&dwarf->paths, dwarf->path_count, &dwarf->path_capacity,
                        sizeof(*dwarf->paths)) ||
        asprintf(&path, "%s/%s", folder, relative) < 0)
        return relative;
    memmove(dwarf->paths + at + 1, dwarf->paths + at,
            (dwarf->path_count - at) * sizeof(*dwarf->paths));
    dwarf->paths[at] = (struct dwarf_path){ relative, path };
    dwarf->path_count++;
    return path;
}

static bool same_row_line(Dwarf_Line *a, Dwarf_Line *b)
{
    int line_a = 0, line_b = 0;

    return dwarf_lineno(a, &line_a) == 0 && dwarf_lineno(b, &line_b) == 0 && line_a == line_b &&
           dwarf_linesrc(a, NULL, NULL) == dwarf_linesrc(b, NULL, NULL);
}

/* A row that begins no statement, after one of another file that begins one at the same address: as for gdb, it is not there. */
static bool is_left_out(Dwarf_Lines *lines, size_t index)
{
    Dwarf_Line *row = dwarf_onesrcline(lines, index);
    bool begins = true;

    if (dwarf_linebeginstatement(row, &begins) != 0 || begins)
        return false;
    for (size_t i = index; i-- > 0 && line_address(lines, i) == line_address(lines, index);) {
        Dwarf_Line *before = dwarf_onesrcline(lines, i);

        if (dwarf_linebeginstatement(before, &begins) == 0 && begins)
            return dwarf_linesrc(before, NULL, NULL) != dwarf_linesrc(row, NULL, NULL);
    }
    return false;
}

/* Rows of one line that follow each other are statements, unless discriminators tell them apart: those are paths through one statement. */
static bool is_path(Dwarf_Lines *lines, size_t index)
{
    Dwarf_Line *row = dwarf_onesrcline(lines, index);
    unsigned discriminator = 0;
    bool found = false, follows = false;

    for (size_t i = index + 1; i-- > 0;) {
        Dwarf_Line *other = dwarf_onesrcline(lines, i);

        if (i != index && is_left_out(lines, i))
            continue;
        if (!same_row_line(row, other))
            break;
        follows |= line_address(lines, i) != line_address(lines, index);
        found |= dwarf_linediscriminator(other, &discriminator) == 0 && discriminator != 0;
        if (found && follows)
            return true;
    }
    return false;
}

/* The stretch of code around the address from row `index` to row `end`, with other paths through the statement. */
static void take_stretch(Dwarf_Lines *lines, size_t count, size_t index, size_t end,
                         uint64_t address, struct tbd_source_line *out)
{
    while (index > 0 && is_path(lines, index))
        index--;
    while (end < count && is_path(lines, end))
        end++;
    out->before = (uint32_t)(address - line_address(lines, index));
    out->after = end < count ? (uint32_t)(line_address(lines, end) - address) : 1;
}

bool tbd_dwarf_line_at(struct tbd_dwarf *dwarf, uint64_t address, struct tbd_source_line *out)
{
    Dwarf_Die unit;
    Dwarf_Lines *lines;
    size_t count, after, best;

    if (!tbd_dwarf_unit_at(dwarf, address, &unit) || dwarf_getsrclines(&unit, &lines, &count) != 0)
        return false;
    after = rows_until(lines, count, address);
    if (after == 0)
        return false;
    best = best_row(lines, after - 1);
    if (!take_row(dwarf_onesrcline(lines, best), out))
        return false;
    out->starts = line_address(lines, best) == address && !is_path(lines, best);
    take_stretch(lines, count, best, after, address, out);
    out->is_aside = !out->begins;
    out->begins &= out->starts;
    out->file = tbd_dwarf_whole_path(dwarf, &unit, out->file);
    return true;
}

/* "list.c" and "src/list.c" mean /some/where/src/list.c. */
static bool is_file_called(const char *path, const char *name)
{
    size_t all = strlen(path), end = strlen(name);

    return end != 0 && end <= all && strcmp(path + all - end, name) == 0 &&
           (all == end || path[all - end - 1] == '/');
}

/* Is it among the unit's files? Most units are left out by that, without a look at their rows. */
static bool has_file(Dwarf_Die *unit, const char *file)
{
    Dwarf_Files *files;
    size_t count;

    if (dwarf_getsrcfiles(unit, &files, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *path = dwarf_filesrc(files, i, NULL, NULL);

        if (path != NULL && is_file_called(path, file))
            return true;
    }
    return false;
}

/* Calls `take` for all stretches of code that belong to a line of the file. */
static void unit_code(Dwarf_Die *unit, const char *file,
                      void (*take)(void *context, uint32_t line, struct tbd_elf_range range),
                      void *context)
{
    Dwarf_Lines *lines;
    size_t count;

    if (!has_file(unit, file) || dwarf_getsrclines(unit, &lines, &count) != 0)
        return;
    for (size_t i = 0; i + 1 < count; i++) {
        struct tbd_elf_range range = { line_address(lines, i), line_address(lines, i + 1) };
        struct tbd_source_line row;

        if (range.end > range.start &&
            take_row(dwarf_onesrcline(lines, best_row(lines, i)), &row) &&
            is_file_called(row.file, file))
            take(context, row.line, range);
    }
}

static void file_code(struct tbd_dwarf *dwarf, const char *file,
                      void (*take)(void *context, uint32_t line, struct tbd_elf_range range),
                      void *context)
{
    Dwarf_Die unit;

    for (size_t i = 0; i < tbd_dwarf_unit_count(dwarf); i++) {
        if (tbd_dwarf_unit(dwarf, i, &unit) && !tbd_dwarf_is_shared_unit(&unit))
            unit_code(&unit, file, take, context);
    }
}

struct wanted_ranges {
    uint32_t line; /* 0: any */
    struct tbd_elf_range *out;
    size_t max, found;
};

static void take_range(void *context, uint32_t line, struct tbd_elf_range range)
{
    struct wanted_ranges *wanted = context;

    if (wanted->line != 0 && line != wanted->line)
        return;
    if (wanted->found < wanted->max)
        wanted->out[wanted->found] = range;
    wanted->found++;
}

size_t tbd_dwarf_line_ranges(struct tbd_dwarf *dwarf, const char *file, uint32_t line,
                             struct tbd_elf_range *out, size_t max)
{
    struct wanted_ranges wanted = { .line = line, .out = out, .max = max };

    file_code(dwarf, file, take_range, &wanted);
    return wanted.found;
}

struct wanted_lines {
    uint32_t first;
    size_t count;
    bool *has;
};

static void take_line(void *context, uint32_t line, struct tbd_elf_range range)
{
    struct wanted_lines *wanted = context;

    (void)range;
    if (line >= wanted->first && line - wanted->first < wanted->count)
        wanted->has[line - wanted->first] = true;
}

void tbd_dwarf_code_lines(struct tbd_dwarf *dwarf, const char *file, uint32_t first, size_t count,
                          bool *has)
{
    struct wanted_lines wanted = { first, count, has };

    file_code(dwarf, file, take_line, &wanted);
}

/* ---- files ---- */

#define PADDING 64u /* between functions, at most */

static bool is_unit_called(struct tbd_dwarf *dwarf, uint32_t index, const char *file)
{
    Dwarf_Die unit;
    const char *name = tbd_dwarf_unit(dwarf, index, &unit) ? tbd_die_name(&unit) : NULL;

    return name != NULL && is_file_called(tbd_dwarf_whole_path(dwarf, &unit, name), file);
}

size_t tbd_dwarf_file_ranges(struct tbd_dwarf *dwarf, const char *file, struct tbd_elf_range *out,
                             size_t max)
{
    size_t units = tbd_dwarf_unit_count(dwarf), found = 0; /* and the ranges are there */
    bool *wanted = calloc(units + 1, sizeof(*wanted));
    uint64_t end = 0;

    for (uint32_t i = 0; wanted != NULL && i < units; i++)
        wanted[i] = is_unit_called(dwarf, i, file);
    for (size_t i = 0; wanted != NULL && i < dwarf->range_count; i++) {
        const struct dwarf_range *range = &dwarf->ranges[i];

        if (!wanted[range->unit])
            continue;
        if (found == 0 || range->start > end + PADDING) {
            if (found < max)
                out[found].start = range->start;
            found++;
            end = range->end;
        } else if (range->end > end) {
            end = range->end;
        }
        if (found <= max)
            out[found - 1].end = end;
    }
    free(wanted);
    return found;
}
