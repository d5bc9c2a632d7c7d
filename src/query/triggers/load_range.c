// SPDX-License-Identifier: MIT
/* load_range.c - see load_range.h */
#include "query/triggers/load_range.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct named {
    struct tbd_probe_process *process;
    char name[TBD_WHERE_BYTES];
    const char *module; /* NULL: none is named */
    const char *rest;   /* after it */
};

/* ---- addresses ---- */

/* False: it is no such text. */
static bool read_addresses(const char *name, struct tbd_trigger_loads *out)
{
    char *end;

    if (strncmp(name, "0x", 2) != 0)
        return false;
    out->from = strtoull(name, &end, 16);
    if (*end != '-' || strncmp(end + 1, "0x", 2) != 0)
        return false;
    out->to = strtoull(end + 1, &end, 16);
    return *end == '\0';
}

/* ---- the heap ---- */

enum { START_BRK = 47 }; /* the field of /proc/PID/stat */

static uint64_t start_of_heap(pid_t pid)
{
    char path[64], line[2048];
    const char *at;
    FILE *file;
    bool is_read;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    is_read = file != NULL && fgets(line, sizeof(line), file) != NULL;
    if (file != NULL)
        fclose(file);
    at = is_read ? strrchr(line, ')') : NULL; /* of the name, field 2 */
    for (unsigned field = 2; at != NULL && field < START_BRK; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

/* Where the first mapping begins that is not the heap's, from `start` on. */
static uint64_t next_mapping(pid_t pid, uint64_t start)
{
    char path[64], *line = NULL;
    uint64_t next = start + TBD_TRIGGER_LOADS_BYTES;
    size_t capacity = 0;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    while (maps != NULL && getline(&line, &capacity, maps) > 0) {
        uint64_t at = strtoull(line, NULL, 16);

        if (at >= start && at < next && strstr(line, "[heap]") == NULL)
            next = at;
    }
    free(line);
    if (maps != NULL)
        fclose(maps);
    return next;
}

static bool find_heap(const struct named *n, struct tbd_trigger_loads *out)
{
    out->from = start_of_heap(n->process->pid);
    if (out->from != 0)
        out->to = next_mapping(n->process->pid, out->from);
    return out->from != 0;
}

/* ---- what files name ---- */

static bool find_section(struct tbd_elf_file *file, uint64_t bias, const char *name,
                         struct tbd_trigger_loads *out)
{
    Elf_Scn *section = NULL;
    size_t names;

    if (elf_getshdrstrndx(file->main.elf, &names) != 0)
        return false;
    while ((section = elf_nextscn(file->main.elf, section)) != NULL) {
        GElf_Shdr header;
        const char *is = gelf_getshdr(section, &header) != NULL
                             ? elf_strptr(file->main.elf, names, header.sh_name)
                             : NULL;

        if (is == NULL || strcmp(is, name) != 0 || !(header.sh_flags & SHF_ALLOC) ||
            header.sh_size == 0)
            continue;
        out->from = bias + header.sh_addr;
        out->to = out->from + header.sh_size;
        return true;
    }
    return false;
}

static bool find_variable(struct tbd_elf_file *file, uint64_t bias, const char *name,
                          struct tbd_trigger_loads *out)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    const uint32_t *by_name = tbd_elf_by_name(file);

    for (size_t i = tbd_elf_lower_bound(file, name); by_name != NULL && i < symbols->count; i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[by_name[i]];

        if (strcmp(symbol->name, name) != 0)
            break;
        if (symbol->is_function || symbol->end <= symbol->start)
            continue;
        out->from = bias + symbol->start;
        out->to = bias + symbol->end;
        return true;
    }
    return false;
}

static bool find_in(const struct named *n, struct tbd_process_module *module,
                    struct tbd_trigger_loads *out)
{
    struct tbd_elf_file *file = tbd_process_file(n->process, module);

    if (file == NULL)
        return false;
    return n->rest[0] == '.' ? find_section(file, module->bias, n->rest, out)
                             : find_variable(file, module->bias, n->rest, out);
}

static bool is_own(const struct named *n, const struct tbd_process_module *module)
{
    return strcmp(module->path, n->process->program) == 0;
}

/* Without a module's name the program comes first, and has all sections that are meant. */
static bool find_named(const struct named *n, struct tbd_trigger_loads *out)
{
    struct tbd_probe_process *process = n->process;

    for (unsigned others = 0; others < 2; others++)
        for (size_t i = 0; i < process->module_count; i++) {
            struct tbd_process_module *module = &process->modules[i];
            bool is_meant = n->module != NULL
                                ? tbd_process_is_called(process, module, n->module)
                                : is_own(n, module) == !others && (!others || n->rest[0] != '.');

            if (is_meant && find_in(n, module, out))
                return true;
        }
    return false;
}

static bool find(const struct named *n, struct tbd_trigger_loads *out)
{
    if (n->module == NULL && read_addresses(n->name, out))
        return true;
    return n->module == NULL && strcmp(n->name, "heap") == 0 ? find_heap(n, out)
                                                             : find_named(n, out);
}

bool tbd_load_range(struct tbd_probe_process *process, const char *text, size_t at, size_t end,
                    struct tbd_trigger_loads *out, struct tbd_query_error *error)
{
    struct named n = { .process = process };
    char *mark;

    *out = (struct tbd_trigger_loads){ 0 };
    if (end - at >= sizeof(n.name))
        return tbd_query_wrong(error, TBD_USAGE, at, end - at, "this name is too long");
    memcpy(n.name, text + at, end - at);
    mark = strrchr(n.name, '!');
    n.rest = mark != NULL ? mark + 1 : n.name;
    if (mark != NULL) {
        *mark = '\0';
        n.module = n.name;
    }
    if (!find(&n, out)) {
        strcpy(error->hint, "0xFROM-0xTO, VARIABLE, MODULE!VARIABLE, .data, MODULE!.bss, heap");
        return tbd_query_wrong(error, TBD_NOTFOUND, at, end - at,
                               "no module of the process has this variable or section");
    }
    if (out->from < 4096 || out->from >= out->to)
        return tbd_query_wrong(error, TBD_USAGE, at, end - at, "there is no memory of a program");
    if (out->to - out->from > TBD_TRIGGER_LOADS_BYTES)
        return tbd_query_wrong(error, TBD_USAGE, at, end - at, "a range has 2 GB at most");
    return true;
}
