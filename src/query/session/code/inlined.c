// SPDX-License-Identifier: MIT
/* inlined.c - see inlined.h */
#include "query/session/code/inlined.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 4u

static void move_by(struct tbd_dwarf_inlined *one, uint64_t bias)
{
    one->entry += bias;
    for (size_t i = 0; i < one->range_count; i++) {
        one->ranges[i].start += bias;
        one->ranges[i].end += bias;
    }
}

/* NULL: the module has no inlined function of this name; nothing was read then. */
static struct tbd_dwarf *dwarf_with(const struct tbd_module *module, const char *name)
{
    bool may_have = module->file != NULL && tbd_dwarf_may_inline(module->file, name);

    return may_have ? tbd_dwarf_of(module->file) : NULL;
}

/* Adds the copies in one module; false without memory. */
static bool add_module(const struct tbd_module *module, const char *name,
                       struct tbd_dwarf_inlined **all, size_t *count)
{
    struct tbd_dwarf_inlined none, *bigger;
    struct tbd_dwarf *dwarf = dwarf_with(module, name);
    size_t more = dwarf == NULL ? 0 : tbd_dwarf_inlined(dwarf, name, &none, 0);

    if (more == 0)
        return true;
    bigger = realloc(*all, (*count + more) * sizeof(**all));
    if (bigger == NULL)
        return false;
    *all = bigger;
    (void)tbd_dwarf_inlined(dwarf, name, bigger + *count, more);
    for (size_t i = 0; i < more; i++)
        move_by(&bigger[*count + i], module->bias);
    *count += more;
    return true;
}

struct tbd_dwarf_inlined *tbd_inlined_find(struct tbd_symbols *symbols, uint32_t window,
                                           const char *name, size_t *out_count)
{
    struct tbd_dwarf_inlined *all = NULL;
    const struct tbd_module *modules;
    size_t count;

    *out_count = 0;
    if (tbd_symbols_modules(symbols, window, &modules, &count) != TBD_OK)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (!add_module(&modules[i], name, &all, out_count))
            break;
    }
    return all;
}

bool tbd_inlined_away(struct tbd_symbols *symbols, uint32_t window, const char *name)
{
    const struct tbd_module *modules;
    size_t count;

    if (tbd_symbols_modules(symbols, window, &modules, &count) != TBD_OK)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct tbd_dwarf *dwarf = dwarf_with(&modules[i], name);

        if (dwarf != NULL && tbd_dwarf_inlined_away(dwarf, name))
            return true;
    }
    return false;
}

size_t tbd_inlined_around(struct tbd_symbols *symbols, uint32_t window, uint64_t address,
                          struct tbd_dwarf_inlined *out, size_t max)
{
    const struct tbd_module *module = tbd_symbols_module_at(symbols, window, address);
    struct tbd_dwarf *dwarf =
        module == NULL || module->file == NULL ? NULL : tbd_dwarf_of(module->file);
    size_t count =
        dwarf == NULL ? 0 : tbd_dwarf_inlined_around(dwarf, address - module->bias, out, max);

    for (size_t i = 0; i < count; i++)
        move_by(&out[i], module->bias);
    return count;
}

bool tbd_inlined_at(struct tbd_symbols *symbols, uint32_t window, uint64_t address,
                    struct tbd_dwarf_inlined *out)
{
    return tbd_inlined_around(symbols, window, address, out, 1) == 1;
}

void tbd_inlined_places(const struct tbd_dwarf_inlined *all, size_t count, char *out, size_t bytes)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < count && i < SHOWN_MAX && used < bytes; i++) {
        const char *slash = all[i].call.line == 0 ? NULL : strrchr(all[i].call.file, '/');
        const char *file = slash == NULL ? all[i].call.file : slash + 1;

        if (all[i].call.line == 0)
            used += (size_t)snprintf(out + used, bytes - used, "%s%#" PRIx64, i == 0 ? "" : ", ",
                                     all[i].entry);
        else
            used += (size_t)snprintf(out + used, bytes - used, "%s%s:%" PRIu32, i == 0 ? "" : ", ",
                                     file, all[i].call.line);
        if (all[i].outer != NULL && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, " (in %s)", all[i].outer);
    }
    if (count > SHOWN_MAX && used < bytes)
        snprintf(out + used, bytes - used, ", ... (%zu places)", count);
}
