// SPDX-License-Identifier: MIT
/* dwarf_inlined.c - see dwarf_inlined.h
 *
 * DWARF_INLINED-1  A walk visits VISITS_MAX entries at most, NESTING_MAX deep. (not checked: it is
 *     the bound of a loop) */
#include "query/debuginfo/dwarf_inlined.h"

#include "query/debuginfo/dwarf_index.h"
#include "query/debuginfo/dwarf_private.h"

#include <dwarf.h>
#include <string.h>

#define VISITS_MAX  4000000u
#define NESTING_MAX 64

struct inlined_walk {
    struct tbd_dwarf *dwarf;
    const char *name;
    Dwarf_Die unit;
    uint32_t visits;
    struct tbd_dwarf_inlined *out;
    size_t count, max;
};

static bool take(struct tbd_dwarf *dwarf, const Dwarf_Die *unit, const Dwarf_Die *die,
                 const char *outer, struct tbd_dwarf_inlined *out)
{
    Dwarf_Die own = *die;
    Dwarf_Addr base, start, end, entry;
    ptrdiff_t at = 0;

    *out = (struct tbd_dwarf_inlined){ .outer = outer };
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
    out->call = tbd_dwarf_call_site(dwarf, unit, die);
    return true;
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

        if (tag == DW_TAG_inlined_subroutine && name != NULL && strcmp(name, walk->name) == 0 &&
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

size_t tbd_dwarf_inlined(struct tbd_dwarf *dwarf, const char *name, struct tbd_dwarf_inlined *out,
                         size_t max)
{
    struct inlined_walk walk = { .dwarf = dwarf, .name = name, .out = out, .max = max };
    struct tbd_unit_walk units;

    tbd_unit_walk_start(&units, dwarf, name);
    while (tbd_unit_walk_next(&units, &walk.unit)) {
        if (!tbd_dwarf_is_shared_unit(&walk.unit))
            visit(&walk, &walk.unit, NULL, 0);
    }
    return walk.count;
}

bool tbd_dwarf_inlined_at(struct tbd_dwarf *dwarf, uint64_t address, struct tbd_dwarf_inlined *out)
{
    struct tbd_dwarf_scopes scopes;

    if (!tbd_dwarf_scopes(dwarf, address, &scopes))
        return false;
    for (size_t i = 0; i < scopes.count; i++) {
        int tag = dwarf_tag(&scopes.dies[i]);

        if (tag == DW_TAG_inlined_subroutine)
            return take(dwarf, &scopes.unit, &scopes.dies[i], NULL, out);
        if (tag == DW_TAG_subprogram)
            return false;
    }
    return false;
}
