// SPDX-License-Identifier: MIT
/* running_process.c - see running_process.h */
#include "query/places/running_process.h"

#include "base/string.h"
#include "query/debuginfo/dwarf_file.h"
#include "query/debuginfo/dwarf_inlined.h"
#include "query/places/function_code.h"
#include "query/text/demangle.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_RANGES  256u
#define COMM_LENGTH 15u

/* ---- modules ---- */

/* "start-end perms offset dev inode path" */
static bool parse_line(char *line, struct tbd_process_module *out)
{
    char perms[8] = "";
    int path_at = 0;

    *out = (struct tbd_process_module){ 0 };
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*u %n", &out->start, &out->end,
               perms, &out->offset, &path_at) < 4 ||
        perms[2] != 'x' || !path_at || line[path_at] != '/')
        return false;
    line[strcspn(line, "\n")] = '\0';
    out->path = strdup(line + path_at);
    return out->path != NULL;
}

static bool add_module(struct tbd_probe_process *process, const struct tbd_process_module *module)
{
    struct tbd_process_module *grown =
        realloc(process->modules, (process->module_count + 1) * sizeof(*grown));

    if (!grown) {
        free(module->path);
        return false;
    }
    process->modules = grown;
    grown[process->module_count++] = *module;
    return true;
}

/* The name under which the program was started may be a link's: redis-server is redis-check-rdb. */
static void read_program_name(struct tbd_probe_process *process)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/exe", (int)process->pid);
    if (readlink(path, process->program, sizeof(process->program) - 1) < 0)
        process->program[0] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)process->pid);
    file = fopen(path, "re");
    if (!file || !fgets(process->comm, sizeof(process->comm), file))
        process->comm[0] = '\0';
    process->comm[strcspn(process->comm, "\n")] = '\0';
    if (file)
        fclose(file);
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)process->pid);
    file = fopen(path, "re");
    if (!file || !fgets(process->called, sizeof(process->called), file))
        process->called[0] = '\0';
    if (file)
        fclose(file);
}

bool tbd_process_read(struct tbd_probe_process *process, pid_t pid, struct tbd_query_error *error)
{
    struct tbd_process_module module;
    char path[64], *line = NULL;
    size_t capacity = 0;
    FILE *maps;

    *process = (struct tbd_probe_process){ .pid = pid };
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    if (!maps)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d: %s", (int)pid,
                               strerror(errno));
    while (getline(&line, &capacity, maps) > 0)
        if (parse_line(line, &module) && !add_module(process, &module))
            break;
    free(line);
    fclose(maps);
    read_program_name(process);
    if (!process->module_count)
        return tbd_query_wrong(error, TBD_NOTFOUND, 0, 0, "process %d has no code", (int)pid);
    return true;
}

void tbd_process_free(struct tbd_probe_process *process)
{
    for (size_t i = 0; i < process->module_count; i++) {
        tbd_elf_close(process->modules[i].file);
        free(process->modules[i].path);
    }
    free(process->modules);
    *process = (struct tbd_probe_process){ 0 };
}

/* The same file at the same place: parts of its code may have other protection meanwhile. */
static bool is_same_module(const struct tbd_process_module *a, const struct tbd_process_module *b)
{
    return a->start - a->offset == b->start - b->offset && strcmp(a->path, b->path) == 0;
}

/* What is known of `old` goes to `module`. */
static void keep_file(struct tbd_process_module *module, struct tbd_process_module *old)
{
    module->file = old->file;
    module->bias = old->bias;
    module->is_tried = old->is_tried;
    old->file = NULL;
    old->is_tried = false;
}

bool tbd_process_read_again(struct tbd_probe_process *process, struct tbd_probe_process *before,
                            struct tbd_query_error *error)
{
    struct tbd_probe_process now;

    if (!tbd_process_read(&now, process->pid, error)) {
        tbd_process_free(&now);
        return false;
    }
    for (size_t k = 0; k < process->module_count; k++)
        process->modules[k].is_other = true;
    for (size_t i = 0; i < now.module_count; i++) {
        struct tbd_process_module *module = &now.modules[i];

        module->is_other = true;
        for (size_t k = 0; k < process->module_count; k++) {
            if (!is_same_module(module, &process->modules[k]))
                continue;
            if (!module->is_tried)
                keep_file(module, &process->modules[k]);
            module->is_other = process->modules[k].is_other = false;
        }
    }
    *before = *process;
    *process = now;
    return true;
}

bool tbd_process_has_code(const struct tbd_probe_process *process, uint64_t address)
{
    char path[64], *line = NULL;
    size_t capacity = 0;
    bool is_there = false;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)process->pid);
    maps = fopen(path, "re");
    while (maps && !is_there && getline(&line, &capacity, maps) > 0) {
        uint64_t start = 0, end = 0;
        char perms[8] = "";

        is_there = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, perms) == 3 &&
                   perms[2] == 'x' && address >= start && address < end;
    }
    free(line);
    if (maps)
        fclose(maps);
    return is_there;
}

/* As the process sees the file: it may have another root.  A file that was replaced or deleted is not
 * there any more. */
struct tbd_elf_file *tbd_process_file(struct tbd_probe_process *process,
                                      struct tbd_process_module *module)
{
    char path[PATH_MAX];

    if (module->is_tried)
        return module->file;
    module->is_tried = true;
    if ((size_t)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)process->pid, module->path) >=
        sizeof(path))
        return NULL;
    if (tbd_elf_open(path, &module->file) != TBD_OK &&
        tbd_elf_open(module->path, &module->file) != TBD_OK)
        module->file = NULL;
    if (module->file && !tbd_elf_bias(module->file, module->start, module->offset, &module->bias)) {
        tbd_elf_close(module->file);
        module->file = NULL;
    }
    return module->file;
}

/* By the name it was started by, or the one it has now, which the kernel cuts after 15 bytes.  Servers write something else
 * over the former: "redis-server *:6379". */
static bool is_program(const struct tbd_probe_process *process, const char *name)
{
    return strcmp(name, tbd_base_name(process->called)) == 0 ||
           (process->comm[0] && strncmp(name, process->comm, COMM_LENGTH) == 0);
}

bool tbd_process_is_called(const struct tbd_probe_process *process,
                           const struct tbd_process_module *module, const char *name)
{
    const char *base = tbd_base_name(module->path);
    size_t length = strlen(name);

    if (strchr(name, '/'))
        return fnmatch(name, module->path, 0) == 0;
    if (fnmatch(name, base, 0) == 0 || tbd_is_file_called(module->path, name, length) ||
        (strcmp(module->path, process->program) == 0 && is_program(process, name)))
        return true;
    return strncmp(base, name, length) == 0 &&
           (strncmp(base + length, ".so", 3) == 0 || base[length] == '-');
}

/* ---- places ---- */

bool tbd_process_add_place(struct tbd_probe_places *out, uint64_t address)
{
    if (out->count == out->capacity) {
        size_t capacity = out->capacity ? out->capacity * 2 : 64;
        struct tbd_probe_place *grown = realloc(out->all, capacity * sizeof(*grown));

        if (!grown)
            return false;
        out->all = grown;
        out->capacity = capacity;
    }
    out->all[out->count++] = (struct tbd_probe_place){ .address = address, .code = out->code };
    return true;
}

static bool name_matches(struct tbd_elf_file *file, const struct tbd_elf_symbol *symbol,
                         const char *name)
{
    if (strcmp(symbol->name, name) == 0)
        return true;
    if (strpbrk(name, "*?["))
        return fnmatch(name, symbol->name, 0) == 0;
    return symbol->name[0] == '_' && symbol->name[1] == 'Z' &&
           tbd_may_be_called(symbol->name, name) &&
           tbd_is_name_for(tbd_elf_symbol_name(file, symbol), name);
}

static bool add_function(struct tbd_elf_file *file, uint64_t bias,
                         const struct tbd_elf_symbol *symbol, const struct tbd_where *where,
                         struct tbd_probe_places *out)
{
    switch (where->kind) {
    case TBD_WHERE_RETURNS:
    case TBD_WHERE_ALL: return tbd_function_places(file, bias, symbol, where, out);
    case TBD_WHERE_BEGIN:
    case TBD_WHERE_END:
    case TBD_WHERE_INTERVAL:
    case TBD_WHERE_ENTRY:
    case TBD_WHERE_LINE:
    case TBD_WHERE_ADDRESS:
    case TBD_WHERE_RANGE:
    default:
        if (where->number)
            return tbd_function_places(file, bias, symbol, where, out);
        return tbd_function_splits(file, symbol->start) ||
               tbd_process_add_place(out, bias + symbol->start);
    }
}

/* One instruction after the other from the range's start. */
static bool find_range(struct tbd_probe_process *process, struct tbd_process_module *module,
                       const struct tbd_where *where, struct tbd_probe_places *out)
{
    struct tbd_elf_file *file = tbd_process_file(process, module);
    struct tbd_elf_symbol range = { .start = where->number, .end = where->limit };
    struct tbd_where all = { .kind = TBD_WHERE_ALL };
    uint64_t size = module->end - module->start;

    if (!file || module->bias + range.start < module->start ||
        module->bias + range.start >= module->end || range.end - range.start > size ||
        module->bias + range.end > module->end)
        return true;
    return tbd_function_places(file, module->bias, &range, &all, out);
}

/* Aliases have one place. */
static bool find_functions(struct tbd_probe_process *process, struct tbd_process_module *module,
                           const struct tbd_where *where, struct tbd_probe_places *out)
{
    struct tbd_elf_file *file = tbd_process_file(process, module);
    const struct tbd_elf_symbols *symbols = file ? tbd_elf_symbols(file) : NULL;
    uint64_t last = UINT64_MAX;

    for (size_t i = 0; symbols && i < symbols->count; i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[i];
        uint64_t address = module->bias + symbol->start;

        if (!symbol->is_function || symbol->is_stub || symbol->end <= symbol->start ||
            (symbol->is_part && strstr(where->name, ".cold") == NULL) || symbol->start == last ||
            address < module->start || address >= module->end ||
            !name_matches(file, symbol, where->name))
            continue;
        last = symbol->start;
        if (!add_function(file, module->bias, symbol, where, out))
            return false;
    }
    return true;
}

/* The first instruction of each stretch of code that the line has: a statement's parts are one. */
static bool find_lines(struct tbd_probe_process *process, struct tbd_process_module *module,
                       const struct tbd_where *where, struct tbd_probe_places *out)
{
    struct tbd_elf_file *file = tbd_process_file(process, module);
    struct tbd_dwarf *dwarf = file ? tbd_dwarf_of(file) : NULL;
    struct tbd_elf_range ranges[MAX_RANGES];
    size_t count = dwarf ? tbd_dwarf_line_ranges(dwarf, where->name, (uint32_t)where->number,
                                                 ranges, MAX_RANGES)
                         : 0;

    for (size_t i = 0; i < count && i < MAX_RANGES; i++) {
        bool goes_on = i > 0 && ranges[i].start == ranges[i - 1].end;
        struct tbd_source_line line;

        if (!goes_on && tbd_dwarf_line_at(dwarf, ranges[i].start, &line) && line.begins &&
            !tbd_process_add_place(out, module->bias + ranges[i].start))
            return false;
    }
    return true;
}

static bool looks_at(const struct tbd_probe_process *process,
                     const struct tbd_process_module *module, const struct tbd_where *where)
{
    return where->kind == TBD_WHERE_LINE || tbd_process_is_called(process, module, where->module);
}

static bool say_nothing_there(const struct tbd_where *where, bool has_module,
                              struct tbd_query_error *error)
{
    if (where->kind == TBD_WHERE_LINE)
        return tbd_query_wrong(error, TBD_NOTFOUND, where->at, where->length,
                               "no code belongs to line %" PRIu64 " of %s", where->number,
                               where->name);
    if (!has_module)
        return tbd_query_wrong(error, TBD_NOTFOUND, where->at, where->length,
                               "the process has no module %s", where->module);
    if (where->kind == TBD_WHERE_RANGE) {
        tbd_query_wrong(error, TBD_NOTFOUND, where->at, where->length,
                        "%s has no instructions there, or data among them", where->module);
        strcpy(error->hint, "a range begins where an instruction does, as objdump -d shows them");
        return false;
    }
    return tbd_query_wrong(error, TBD_NOTFOUND, where->at, where->length,
                           "%s has no function %s, or no instruction there", where->module,
                           where->name);
}

static bool find_address(struct tbd_probe_process *process, const struct tbd_where *where,
                         struct tbd_probe_places *out, struct tbd_query_error *error)
{
    struct tbd_process_module *module = tbd_process_module_at(process, where->number);
    struct tbd_elf_file *file = module ? tbd_process_file(process, module) : NULL;

    if (file && tbd_function_splits(file, where->number - module->bias))
        return tbd_query_wrong(error, TBD_SYSTEM, where->at, where->length,
                               "this is in the middle of an instruction");
    return tbd_process_add_place(out, where->number) ||
           tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");
}

static bool find(struct tbd_probe_process *process, const struct tbd_where *where, bool only_new,
                 struct tbd_probe_places *out, struct tbd_query_error *error);

/* The function is there, but no instruction of it begins at the offset: no module that comes later changes that. */
static bool has_bad_offset(struct tbd_probe_process *process, const struct tbd_where *where,
                           bool only_new)
{
    struct tbd_where start = *where;
    struct tbd_probe_places places = { 0 };
    struct tbd_query_error none = { 0 };
    bool has;

    if (where->kind != TBD_WHERE_ENTRY || !where->number)
        return false;
    start.number = 0;
    has = find(process, &start, only_new, &places, &none);
    free(places.all);
    return has;
}

static bool find(struct tbd_probe_process *process, const struct tbd_where *where, bool only_new,
                 struct tbd_probe_places *out, struct tbd_query_error *error)
{
    size_t before = out->count;
    bool has_module = false, done = true;

    if (where->kind == TBD_WHERE_ADDRESS)
        return find_address(process, where, out, error);
    for (size_t i = 0; i < process->module_count && done; i++) {
        struct tbd_process_module *module = &process->modules[i];

        if ((only_new && !module->is_other) || !looks_at(process, module, where))
            continue;
        has_module = true;
        done = where->kind == TBD_WHERE_LINE    ? find_lines(process, module, where, out)
               : where->kind == TBD_WHERE_RANGE ? find_range(process, module, where, out)
                                                : find_functions(process, module, where, out);
    }
    if (!done)
        return tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");
    if (out->count == before && has_bad_offset(process, where, only_new))
        return tbd_query_wrong(error, TBD_SYSTEM, where->at, where->length,
                               "no instruction of the function begins there");
    return out->count > before || say_nothing_there(where, has_module, error);
}

bool tbd_process_find(struct tbd_probe_process *process, const struct tbd_where *where,
                      struct tbd_probe_places *out, struct tbd_query_error *error)
{
    return find(process, where, false, out, error);
}

bool tbd_process_find_new(struct tbd_probe_process *process, const struct tbd_where *where,
                          struct tbd_probe_places *out, struct tbd_query_error *error)
{
    return find(process, where, true, out, error);
}

/* ---- inlined copies ---- */

static bool add_copies(struct tbd_probe_process *process, struct tbd_process_module *module,
                       const char *name, struct tbd_probe_places *out)
{
    struct tbd_elf_file *file = tbd_process_file(process, module);
    struct tbd_dwarf *dwarf = file && tbd_dwarf_may_inline(file, name) ? tbd_dwarf_of(file) : NULL;
    size_t count = dwarf ? tbd_dwarf_inlined(dwarf, name, NULL, 0) : 0;
    struct tbd_dwarf_inlined *copies = count ? calloc(count, sizeof(*copies)) : NULL;
    bool done = copies || !count;

    if (copies)
        tbd_dwarf_inlined(dwarf, name, copies, count);
    for (size_t i = 0; copies && i < count && done; i++) {
        uint64_t address = module->bias + copies[i].entry;

        if (address >= module->start && address < module->end)
            done = tbd_process_add_place(out, address);
    }
    free(copies);
    return done;
}

bool tbd_process_find_inlined(struct tbd_probe_process *process, const struct tbd_where *where,
                              bool only_new, struct tbd_probe_places *out)
{
    bool done = true;

    for (size_t i = 0; i < process->module_count && done; i++) {
        struct tbd_process_module *module = &process->modules[i];

        if ((!only_new || module->is_other) &&
            tbd_process_is_called(process, module, where->module))
            done = add_copies(process, module, where->name, out);
    }
    return done;
}

/* ---- names ---- */

struct tbd_process_module *tbd_process_module_at(struct tbd_probe_process *process,
                                                 uint64_t address)
{
    for (size_t i = 0; i < process->module_count; i++)
        if (address >= process->modules[i].start && address < process->modules[i].end)
            return &process->modules[i];
    return NULL;
}

void tbd_process_name(struct tbd_probe_process *process, uint64_t address, char *out, size_t bytes)
{
    struct tbd_process_module *module = tbd_process_module_at(process, address);
    struct tbd_elf_file *file = module ? tbd_process_file(process, module) : NULL;
    const struct tbd_elf_symbol *symbol =
        file ? tbd_elf_symbol_at(file, address - module->bias) : NULL;

    if (!module)
        snprintf(out, bytes, "0x%" PRIx64, address);
    else if (symbol && address - module->bias != symbol->start)
        snprintf(out, bytes, "%s!%s+0x%" PRIx64, tbd_base_name(module->path),
                 tbd_elf_symbol_name(file, symbol), address - module->bias - symbol->start);
    else if (symbol)
        snprintf(out, bytes, "%s!%s", tbd_base_name(module->path),
                 tbd_elf_symbol_name(file, symbol));
    else
        snprintf(out, bytes, "%s+0x%" PRIx64, tbd_base_name(module->path),
                 address - module->start + module->offset);
}
