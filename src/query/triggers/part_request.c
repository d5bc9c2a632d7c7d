// SPDX-License-Identifier: MIT
/* part_request.c - see part_request.h */
#include "query/triggers/part_request.h"

#include "format/stream/part_name.h"
#include "query/debuginfo/dwarf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part_wish {
    size_t at, length; /* of its name in the text */
    enum tbd_code_part kind;
    struct tbd_where where; /* of a source file only its name */
};

/* False: it is a module. */
static bool read_wish(const char *text, size_t at, struct part_wish *out)
{
    size_t length = strcspn(text + at, " ;");
    enum tbd_code_part kind = tbd_code_part_of(text + at, length);
    const char *colon = kind == TBD_PART_FUNCTION ? memchr(text + at, ':', length) : NULL;
    size_t module = colon != NULL ? (size_t)(colon - (text + at)) : 0;
    size_t name = colon != NULL ? module + 1 : 0;
    size_t end = kind == TBD_PART_FUNCTION ? length - 2 : length;

    *out = (struct part_wish){
        .at = at, .length = length, .kind = kind, .where = { .kind = TBD_WHERE_ENTRY }
    };
    if (kind == TBD_PART_MODULE || end <= name || length >= TBD_CRASH_PART_NAME)
        return false;
    memcpy(out->where.module, module != 0 ? text + at : "*", module != 0 ? module : 1);
    memcpy(out->where.name, text + at + name, end - name);
    return true;
}

static bool add_range(const char *text, const struct part_wish *wish, uint64_t start, uint64_t end,
                      struct tbd_crash_request *out, struct tbd_query_error *error)
{
    struct tbd_part_range *range = &out->ranges[out->range_count];

    if (out->range_count == TBD_PART_RANGES && !out->left_out[0])
        memcpy(out->left_out, text + wish->at, wish->length);
    if (out->range_count == TBD_PART_RANGES)
        return tbd_query_wrong(error, TBD_USAGE, wish->at, wish->length,
                               "there are too many functions, or pieces of code: %u at most",
                               TBD_PART_RANGES);
    *range = (struct tbd_part_range){ .start = start, .end = end };
    memcpy(range->name, text + wish->at, wish->length);
    out->range_count++;
    return true;
}

/* The address after the function that begins at `start`; 0: it cannot be told. */
static uint64_t end_of(struct tbd_probe_process *process, uint64_t start)
{
    for (size_t i = 0; i < process->module_count; i++) {
        struct tbd_process_module *module = &process->modules[i];
        struct tbd_elf_file *file = start >= module->start && start < module->end
                                        ? tbd_process_file(process, module)
                                        : NULL;
        const struct tbd_elf_symbol *symbol =
            file != NULL ? tbd_elf_symbol_at(file, start - module->bias) : NULL;

        if (symbol != NULL)
            return module->bias + symbol->end;
    }
    return 0;
}

static bool add_function(struct tbd_probe_process *process, const char *text,
                         const struct part_wish *wish, struct tbd_crash_request *out,
                         struct tbd_query_error *error)
{
    struct tbd_probe_places places = { 0 };
    bool done = tbd_process_find(process, &wish->where, &places, error);

    for (size_t i = 0; done && i < places.count; i++)
        done = add_range(text, wish, places.all[i].address, end_of(process, places.all[i].address),
                         out, error);
    if (!done && error->status != TBD_USAGE) {
        *error = (struct tbd_query_error){ 0 };
        tbd_query_wrong(error, TBD_NOTFOUND, wish->at, wish->length,
                        "no module of the process has this function");
    }
    free(places.all);
    return done;
}

static bool add_source(struct tbd_probe_process *process, const char *text,
                       const struct part_wish *wish, struct tbd_crash_request *out,
                       struct tbd_query_error *error)
{
    static struct tbd_elf_range ranges[TBD_PART_RANGES + 1];
    uint32_t before = out->range_count;

    for (size_t i = 0; i < process->module_count; i++) {
        struct tbd_process_module *module = &process->modules[i];
        struct tbd_elf_file *file = tbd_process_file(process, module);
        struct tbd_dwarf *dwarf = file != NULL ? tbd_dwarf_of(file) : NULL;
        size_t count = dwarf != NULL ? tbd_dwarf_file_ranges(dwarf, wish->where.name, ranges,
                                                             TBD_PART_RANGES + 1)
                                     : 0;

        for (size_t k = 0; k < count; k++)
            if (!add_range(text, wish, module->bias + ranges[k].start, module->bias + ranges[k].end,
                           out, error))
                return false;
    }
    return out->range_count > before ||
           tbd_query_wrong(error, TBD_NOTFOUND, wish->at, wish->length,
                           "no module of the process has code that was compiled from this file");
}

static bool add(struct tbd_probe_process *process, const char *text, const struct part_wish *wish,
                struct tbd_crash_request *out, struct tbd_query_error *error)
{
    return wish->kind == TBD_PART_SOURCE ? add_source(process, text, wish, out, error)
                                         : add_function(process, text, wish, out, error);
}

static void add_waiting(const char *text, const struct part_wish *wish,
                        struct tbd_crash_request *out, struct tbd_part_names *waiting)
{
    size_t used = strlen(waiting->text);

    snprintf(waiting->text + used, sizeof(waiting->text) - used, "%s%.*s", used ? "; " : "",
             (int)wish->length, text + wish->at);
    out->waiting_parts++;
}

bool tbd_part_request(struct tbd_probe_process *process, const char *text,
                      struct tbd_crash_request *out, struct tbd_part_names *waiting,
                      struct tbd_query_error *error)
{
    struct tbd_query_error first = { 0 };
    struct part_wish wish;

    out->what |= TBD_REQUEST_PARTS;
    out->range_count = out->waiting_parts = 0;
    out->left_out[0] = '\0';
    waiting->text[0] = '\0';
    for (size_t at = 0; text[at] != '\0'; at += strcspn(text + at, ";")) {
        at += strspn(text + at, "; ");
        *error = (struct tbd_query_error){ 0 };
        if (!read_wish(text, at, &wish) || add(process, text, &wish, out, error))
            continue;
        if (error->status == TBD_NOTFOUND && out->loader)
            add_waiting(text, &wish, out, waiting);
        else if (!first.status)
            first = *error;
    }
    *error = first;
    return !first.status;
}
