// SPDX-License-Identifier: MIT
/* part_request.c - see part_request.h */
#include "query/triggers/part_request.h"

#include <stdlib.h>
#include <string.h>

struct part_wish {
    size_t at, length; /* of its name in the text */
    struct tbd_where where;
};

/* False: it is no function. */
static bool read_wish(const char *text, size_t at, struct part_wish *out)
{
    size_t length = strcspn(text + at, " ;");
    const char *colon = memchr(text + at, ':', length);
    size_t module = colon != NULL ? (size_t)(colon - (text + at)) : 0;
    size_t name = colon != NULL ? module + 1 : 0;

    *out = (struct part_wish){ .at = at, .length = length, .where = { .kind = TBD_WHERE_ENTRY } };
    if (length < name + 3 || length >= TBD_CRASH_PART_NAME ||
        strncmp(text + at + length - 2, "()", 2) != 0)
        return false;
    memcpy(out->where.module, module != 0 ? text + at : "*", module != 0 ? module : 1);
    memcpy(out->where.name, text + at + name, length - name - 2);
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

    for (size_t i = 0; done && i < places.count; i++) {
        struct tbd_part_range *range = &out->ranges[out->range_count];

        if (out->range_count == TBD_PART_RANGES) {
            done = tbd_query_wrong(error, TBD_USAGE, wish->at, wish->length,
                                   "there are too many functions: %u at most", TBD_PART_RANGES);
            break;
        }
        *range = (struct tbd_part_range){ .start = places.all[i].address,
                                          .end = end_of(process, places.all[i].address) };
        memcpy(range->name, text + wish->at, wish->length);
        out->range_count++;
    }
    if (!done && error->status != TBD_USAGE) {
        *error = (struct tbd_query_error){ 0 };
        tbd_query_wrong(error, TBD_NOTFOUND, wish->at, wish->length,
                        "no module of the process has this function");
    }
    free(places.all);
    return done;
}

bool tbd_part_request(struct tbd_probe_process *process, const char *text,
                      struct tbd_crash_request *out, struct tbd_query_error *error)
{
    struct tbd_query_error first = { 0 };
    struct part_wish wish;

    out->what |= TBD_REQUEST_PARTS;
    out->range_count = 0;
    for (size_t at = 0; text[at] != '\0'; at += strcspn(text + at, ";")) {
        at += strspn(text + at, "; ");
        *error = (struct tbd_query_error){ 0 };
        if (read_wish(text, at, &wish) && !add_function(process, text, &wish, out, error) &&
            !first.status)
            first = *error;
    }
    *error = first;
    return !first.status;
}
