// SPDX-License-Identifier: MIT
/* dwarf_inlined.c - see dwarf_inlined.h
 *
 * DWARF_INLINED-1  A walk visits VISITS_MAX entries at most, or NAMES_MAX for names, NESTING_MAX deep. (not checked: it is
 *     the bound of a loop) */
#include "query/debuginfo/dwarf_inlined.h"

#include "query/debuginfo/dwarf_index.h"
#include "query/debuginfo/dwarf_private.h"
#include "query/text/demangle.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VISITS_MAX  4000000u
#define NESTING_MAX 64
#define NAME_BYTES  256
#define NAMES_MAX   200000u

struct inlined_walk {
    struct tbd_dwarf *dwarf;
    const char *name; /* as the user wrote it */
    const char *last; /* its last part, up to template arguments and parameters */
    size_t last_bytes;
    Dwarf_Die unit;
    uint32_t visits;
    struct tbd_dwarf_inlined *out;
    size_t count, max;
    bool is_known; /* a function with this name was inlined, even if nothing is left of it */
};

static bool take(struct tbd_dwarf *dwarf, const Dwarf_Die *unit, const Dwarf_Die *die,
                 const char *outer, struct tbd_dwarf_inlined *out)
{
    Dwarf_Die own = *die;
    Dwarf_Addr base, start, end, entry;
    ptrdiff_t at = 0;

    *out = (struct tbd_dwarf_inlined){ .id = dwarf_dieoffset(&own), .outer = outer };
    while (out->range_count < TBD_INLINED_RANGES &&
           (at = dwarf_ranges(&own, at, &base, &start, &end)) > 0) {
        if (start < end)
            out->ranges[out->range_count++] = (struct tbd_elf_range){ start, end };
    }
    if (out->range_count == 0)
        return false;
    out->entry = out->ranges[0].start;
    if (dwarf_entrypc(&own, &entry) == 0)
        out->entry = entry;
    out->name = tbd_die_name(die);
    if (out->name == NULL)
        out->name = "?";
    out->call = tbd_dwarf_call_site(dwarf, unit, die);
    return true;
}

/* The entry in the scope that a copy's function, or a definition, was declared in. */
static Dwarf_Die declared_of(const Dwarf_Die *copy)
{
    Dwarf_Die origin, declared;

    if (!tbd_die_reference(copy, DW_AT_abstract_origin, &origin))
        origin = *copy; /* it is the function */
    return tbd_die_reference(&origin, DW_AT_specification, &declared) ? declared : origin;
}

static const char *linker_name(const Dwarf_Die *die)
{
    Dwarf_Attribute attribute;

    return tbd_die_attribute(die, DW_AT_linkage_name, &attribute) ? dwarf_formstring(&attribute)
                                                                  : NULL;
}

bool tbd_dwarf_declared_name(const Dwarf_Die *die, char *out, size_t bytes)
{
    const char *mangled = linker_name(die);
    char *readable = mangled == NULL ? NULL : tbd_demangle(mangled);
    Dwarf_Die declared;
    bool is;

    if (readable == NULL) {
        declared = declared_of(die);
        return tbd_die_full_name(&declared, out, bytes);
    }
    is = (size_t)snprintf(out, bytes, "%s", readable) < bytes;
    free(readable);
    return is;
}

static bool is_at_path(const Dwarf_Die *copy, const char *name)
{
    Dwarf_Die declared = declared_of(copy);
    char path[NAME_BYTES];

    return tbd_die_path(&declared, NULL, path, sizeof(path)) && tbd_is_name_for(path, name);
}

/* Does the copy's function have the name that is looked for?  Namespaces, template arguments and
 * parameters count if the user wrote them. */
static bool is_wanted(const struct inlined_walk *walk, const Dwarf_Die *die, const char *own)
{
    const char *mangled;
    char *whole, *readable;
    bool is;

    if (strncmp(own, walk->last, walk->last_bytes) != 0 ||
        (own[walk->last_bytes] != '\0' && own[walk->last_bytes] != '<'))
        return false;
    if (strcmp(own, walk->name) == 0 ||
        (walk->last == walk->name && walk->name[walk->last_bytes] == '\0'))
        return true;
    mangled = linker_name(die);
    if (mangled == NULL)
        return is_at_path(die, walk->name); /* a function of one unit alone may have none */
    whole = tbd_demangle_whole(mangled);
    readable = tbd_demangle(mangled);
    is = readable != NULL && whole != NULL &&
         (tbd_is_name_for(readable, walk->name) || tbd_is_overload(whole, walk->name));
    free(whole);
    free(readable);
    return is;
}

/* The function itself, from which copies were made. */
static bool is_inlined_function(const Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Word how;
    Dwarf_Die own = *die;

    return dwarf_tag(&own) == DW_TAG_subprogram &&
           dwarf_formudata(dwarf_attr(&own, DW_AT_inline, &attribute), &how) == 0 &&
           (how == DW_INL_inlined || how == DW_INL_declared_inlined);
}

static void visit(struct inlined_walk *walk, const Dwarf_Die *parent, const char *outer,
                  int nesting)
{
    Dwarf_Die die;

    for (bool more = nesting < NESTING_MAX && tbd_die_child(parent, &die);
         more && walk->visits++ < VISITS_MAX; more = tbd_die_next(&die, &die)) {
        int tag = dwarf_tag(&die);
        const char *name = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine
                               ? tbd_die_name(&die)
                               : NULL;
        struct tbd_dwarf_inlined found;

        if (!walk->is_known && name != NULL && is_inlined_function(&die))
            walk->is_known = is_wanted(walk, &die, name);
        if (tag == DW_TAG_inlined_subroutine && name != NULL && is_wanted(walk, &die, name) &&
            take(walk->dwarf, &walk->unit, &die, outer, &found)) {
            if (walk->count < walk->max)
                walk->out[walk->count] = found;
            walk->count++;
        }
        if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
            tag == DW_TAG_lexical_block || tag == DW_TAG_namespace || tag == DW_TAG_try_block ||
            tag == DW_TAG_catch_block || tag == DW_TAG_structure_type || tag == DW_TAG_class_type)
            visit(walk, &die, tag == DW_TAG_subprogram ? name : outer, nesting + 1);
    }
}

/* "cost" in "shop::Item::cost<int>(double)". */
static const char *last_part(const char *name, size_t *bytes)
{
    const char *last = name;
    int depth = 0;

    for (const char *at = name; *at != '\0' && (*at != '(' || depth > 0); at++) {
        depth += (*at == '<') - (*at == '>');
        if (depth == 0 && at[0] == ':' && at[1] == ':')
            last = at + 2;
    }
    *bytes = strcspn(last, "<(");
    return last;
}

/* The last part of a name as text of its own; false: it is none that is looked for. */
static bool take_last(const char *name, char out[NAME_BYTES], const char **out_last,
                      size_t *out_bytes)
{
    *out_last = last_part(name, out_bytes);
    if (*out_bytes == 0 || *out_bytes >= NAME_BYTES)
        return false;
    memcpy(out, *out_last, *out_bytes);
    out[*out_bytes] = '\0';
    return true;
}

bool tbd_dwarf_may_inline(struct tbd_elf_file *file, const char *name)
{
    char plain[NAME_BYTES];
    const char *last;
    size_t bytes;

    return take_last(name, plain, &last, &bytes) && tbd_dwarf_may_have(file, plain);
}

static void walk_units(struct inlined_walk *walk)
{
    struct tbd_unit_walk units;
    char plain[NAME_BYTES];

    if (!take_last(walk->name, plain, &walk->last, &walk->last_bytes))
        return;
    tbd_unit_walk_start(&units, walk->dwarf, plain);
    while (tbd_unit_walk_next(&units, &walk->unit)) {
        if (!tbd_dwarf_is_shared_unit(&walk->unit))
            visit(walk, &walk->unit, NULL, 0);
    }
}

size_t tbd_dwarf_inlined(struct tbd_dwarf *dwarf, const char *name, struct tbd_dwarf_inlined *out,
                         size_t max)
{
    struct inlined_walk walk = { .dwarf = dwarf, .name = name, .out = out, .max = max };

    walk_units(&walk);
    return walk.count;
}

bool tbd_dwarf_inlined_away(struct tbd_dwarf *dwarf, const char *name)
{
    struct inlined_walk walk = { .dwarf = dwarf, .name = name };

    walk_units(&walk);
    return walk.is_known && walk.count == 0;
}

size_t tbd_dwarf_inlined_around(struct tbd_dwarf *dwarf, uint64_t address,
                                struct tbd_dwarf_inlined *out, size_t max)
{
    struct tbd_dwarf_scopes scopes;
    size_t count = 0;

    if (!tbd_dwarf_scopes(dwarf, address, &scopes))
        return 0;
    for (size_t i = 0; i < scopes.count && count < max; i++) {
        int tag = dwarf_tag(&scopes.dies[i]);

        if (tag == DW_TAG_subprogram)
            break;
        if (tag == DW_TAG_inlined_subroutine &&
            take(dwarf, &scopes.unit, &scopes.dies[i], NULL, &out[count]))
            count++;
    }
    return count;
}

struct names_walk {
    void (*each)(void *context, const char *name);
    void *context;
    uint32_t visits;
};

/* `scope`: "shop::", of the scopes around. */
static void visit_names(struct names_walk *walk, const Dwarf_Die *parent, const char *scope,
                        int nesting)
{
    Dwarf_Die die;

    for (bool more = nesting < NESTING_MAX && tbd_die_child(parent, &die);
         more && walk->visits++ < NAMES_MAX; more = tbd_die_next(&die, &die)) {
        const char *name = tbd_die_name(&die);
        Dwarf_Attribute attribute;
        char inner[NAME_BYTES];
        int tag = dwarf_tag(&die), length;

        if (name == NULL)
            continue;
        length = snprintf(inner, sizeof(inner), "%s%s", scope, name);
        if (length < 0 || (size_t)length + 3 > sizeof(inner))
            continue;
        if (tag == DW_TAG_subprogram && tbd_die_attribute(&die, DW_AT_inline, &attribute)) {
            walk->each(walk->context, name);
            if (*scope != '\0')
                walk->each(walk->context, inner);
        }
        if (tag != DW_TAG_namespace && tag != DW_TAG_structure_type && tag != DW_TAG_class_type)
            continue;
        strcat(inner, "::");
        visit_names(walk, &die, inner, nesting + 1);
    }
}

void tbd_dwarf_inlined_names(struct tbd_dwarf *dwarf, void (*each)(void *context, const char *name),
                             void *context)
{
    struct names_walk walk = { .each = each, .context = context };
    size_t count = dwarf == NULL ? 0 : tbd_dwarf_unit_count(dwarf);
    Dwarf_Die unit;

    for (size_t i = 0; i < count && walk.visits < NAMES_MAX; i++) {
        if (tbd_dwarf_unit(dwarf, i, &unit))
            visit_names(&walk, &unit, "", 0);
    }
}
