// SPDX-License-Identifier: MIT
/* dwarf_virtual.c - see dwarf_virtual.h
 *
 * Units have a class each on its own, so classes are compared by their names.  All units that have the function's name are walked twice:
 * for the classes that the user may mean, and for what derives from one of them.
 *
 * DWARF_VIRTUAL-1  A walk visits VISITS_MAX entries at most, those of bases among them, NESTING_MAX deep, and bases DERIVED_MAX deep. (not
 *     checked: it is the bound of a loop) */
#include "query/debuginfo/dwarf_virtual.h"

#include "query/debuginfo/dwarf_index.h"
#include "query/debuginfo/dwarf_type.h"
#include "query/text/demangle.h"
#include "query/text/shortage.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#define VISITS_MAX  4000000u
#define NESTING_MAX 16
#define DERIVED_MAX 16
#define NAME_BYTES  256
#define TEXT_BYTES  512

/* A class that declares the function, and its parameters. */
struct virtual_base {
    char class[NAME_BYTES], parameters[TEXT_BYTES];
};

#define BASES_MAX 8u

struct virtual_walk {
    struct tbd_dwarf *dwarf;
    const char *name, *last; /* as the user wrote it; its last part */
    struct virtual_base bases[BASES_MAX];
    size_t base_count;
    bool looks_for_bases;
    uint32_t visits;
    void (*each)(void *context, const char *name);
    void *context;
};

/* "int, const char *" */
static void parameters_text(const Dwarf_Die *function, char *out, size_t bytes)
{
    FILE *text = fmemopen(out, bytes, "w");

    memset(out, 0, bytes);
    if (text == NULL) {
        tbd_shortage_note();
        return;
    }
    (void)tbd_type_print_parameters(function, text);
    fclose(text);
    out[bytes - 1] = '\0';
}

static bool is_class(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type;
}

/* Does the class derive from the one with this name? */
static bool derives(struct virtual_walk *walk, const Dwarf_Die *class, const char *name, int depth)
{
    Dwarf_Die whole = tbd_type_complete(walk->dwarf, class), die, base;
    char path[NAME_BYTES];

    for (bool more = depth < DERIVED_MAX && tbd_die_child(&whole, &die);
         more && walk->visits++ < VISITS_MAX; more = tbd_die_next(&die, &die)) {
        if (dwarf_tag(&die) != DW_TAG_inheritance || !tbd_die_reference(&die, DW_AT_type, &base))
            continue;
        if ((tbd_die_full_name(&base, path, sizeof(path)) && strcmp(path, name) == 0) ||
            derives(walk, &base, name, depth + 1))
            return true;
    }
    return false;
}

/* `class`: its name; the function is one of its members. */
static void take_base(struct virtual_walk *walk, const Dwarf_Die *function, const char *class)
{
    struct virtual_base *base = &walk->bases[walk->base_count];
    char path[NAME_BYTES];

    if (walk->base_count == BASES_MAX ||
        (size_t)snprintf(path, sizeof(path), "%s::%s", class, walk->last) >= sizeof(path) ||
        !tbd_is_name_for(path, walk->name))
        return;
    snprintf(base->class, sizeof(base->class), "%s", class);
    parameters_text(function, base->parameters, sizeof(base->parameters));
    walk->base_count++;
}

static void take_overrider(struct virtual_walk *walk, const Dwarf_Die *function,
                           const Dwarf_Die *of_class, const char *class)
{
    static const char nameless[] = TBD_DIE_NAMELESS "::"; /* which no one types */
    const size_t length = sizeof(nameless) - 1;
    char parameters[TEXT_BYTES], path[NAME_BYTES];

    parameters_text(function, parameters, sizeof(parameters));
    for (size_t i = 0; i < walk->base_count; i++) {
        if (strcmp(parameters, walk->bases[i].parameters) != 0 ||
            !derives(walk, of_class, walk->bases[i].class, 0) ||
            (size_t)snprintf(path, sizeof(path), "%s::%s", class, walk->last) >= sizeof(path))
            continue;
        walk->each(walk->context, path + (strncmp(path, nameless, length) == 0 ? length : 0));
        return;
    }
}

/* The function among the members of a class. */
static void visit_members(struct virtual_walk *walk, const Dwarf_Die *class)
{
    char name[NAME_BYTES];
    Dwarf_Die die;

    for (bool more = tbd_die_child(class, &die); more && walk->visits++ < VISITS_MAX;
         more = tbd_die_next(&die, &die)) {
        const char *own = dwarf_tag(&die) == DW_TAG_subprogram ? tbd_die_name(&die) : NULL;
        uint64_t how;

        if (own == NULL || strcmp(own, walk->last) != 0 ||
            !tbd_die_number(&die, DW_AT_virtuality, &how) || how == DW_VIRTUALITY_none ||
            !tbd_die_full_name(class, name, sizeof(name)))
            continue;
        if (walk->looks_for_bases)
            take_base(walk, &die, name);
        else
            take_overrider(walk, &die, class, name);
    }
}

static void visit_classes(struct virtual_walk *walk, const Dwarf_Die *parent, int nesting)
{
    Dwarf_Die die;

    for (bool more = nesting < NESTING_MAX && tbd_die_child(parent, &die);
         more && walk->visits++ < VISITS_MAX; more = tbd_die_next(&die, &die)) {
        if (is_class(dwarf_tag(&die)))
            visit_members(walk, &die);
        if (is_class(dwarf_tag(&die)) || dwarf_tag(&die) == DW_TAG_namespace)
            visit_classes(walk, &die, nesting + 1);
    }
}

static void walk_classes(struct virtual_walk *walk, bool looks_for_bases)
{
    struct tbd_unit_walk units;
    Dwarf_Die unit;

    walk->looks_for_bases = looks_for_bases;
    walk->visits = 0;
    tbd_unit_walk_start(&units, walk->dwarf, walk->last);
    while (tbd_unit_walk_next(&units, &unit))
        visit_classes(walk, &unit, 0);
}

/* "area" in "shop::Shape::area"; NULL: it is in no class. */
static const char *member_part(const char *name)
{
    const char *last = NULL;

    for (const char *at = strstr(name, "::"); at != NULL; at = strstr(at + 2, "::"))
        last = at + 2;
    return last != NULL && *last != '\0' && strchr(last, '(') == NULL ? last : NULL;
}

bool tbd_dwarf_overriders(struct tbd_dwarf *dwarf, const char *name,
                          void (*each)(void *context, const char *name), void *context)
{
    struct virtual_walk walk = {
        .dwarf = dwarf, .name = name, .last = member_part(name), .each = each, .context = context
    };

    if (walk.last == NULL)
        return false;
    walk_classes(&walk, true);
    if (walk.base_count != 0)
        walk_classes(&walk, false);
    return walk.base_count != 0;
}
