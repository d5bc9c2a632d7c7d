// SPDX-License-Identifier: MIT
/* dwarf_listed.c - see dwarf_listed.h
 *
 * DWARF_LISTED-1  A walk visits VISITS_MAX entries at most, NESTING_MAX deep. (not checked: it is the bound of a loop) */
#include "query/debuginfo/dwarf_listed.h"

#include "query/debuginfo/dwarf_private.h"
#include "query/debuginfo/dwarf_inlined.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VISITS_MAX  20000000u
#define NESTING_MAX 16
#define NAME_BYTES  512

struct list_walk {
    enum tbd_listed_kind kind;
    bool (*each)(void *context, const struct tbd_listed *one);
    void *context;
    uint32_t visits;
    bool is_over; /* each() has said so */
};

static bool has_types_inside(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static bool is_type(int tag)
{
    return has_types_inside(tag) || tag == DW_TAG_enumeration_type || tag == DW_TAG_typedef ||
           tag == DW_TAG_base_type;
}

static bool is_own_flag(const Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Die own = *die;
    bool set = false;

    return dwarf_attr(&own, name, &attribute) != NULL && dwarf_formflag(&attribute, &set) == 0 &&
           set;
}

/* Where its code begins: a function in pieces has ranges, the first of them is its own, others were moved away. */
static bool first_code(Dwarf_Die *die, uint64_t *out)
{
    Dwarf_Addr base, start, end;

    if (dwarf_entrypc(die, out) == 0)
        return true;
    if (dwarf_ranges(die, 0, &base, &start, &end) <= 0)
        return false;
    *out = start;
    return true;
}

/* Its own code, or that it is inlined everywhere. */
static bool take_function(Dwarf_Die *die, struct tbd_listed *out)
{
    Dwarf_Attribute attribute;
    Dwarf_Word how;

    out->has_address = first_code(die, &out->address);
    if (out->has_address)
        return true;
    return dwarf_formudata(dwarf_attr(die, DW_AT_inline, &attribute), &how) == 0 &&
           (how == DW_INL_inlined || how == DW_INL_declared_inlined);
}

/* DW_OP_addr alone; a variable of each thread has no address, a constant none either. */
static bool take_variable(Dwarf_Die *die, struct tbd_listed *out)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;

    if (dwarf_attr(die, DW_AT_const_value, &attribute) != NULL)
        return true;
    if (dwarf_attr(die, DW_AT_location, &attribute) == NULL)
        return false;
    if (dwarf_getlocation(&attribute, &ops, &count) == 0 && count == 1 &&
        ops[0].atom == DW_OP_addr) {
        out->has_address = true;
        out->address = ops[0].number;
    }
    return true;
}

static bool is_wanted(enum tbd_listed_kind kind, Dwarf_Die *die, struct tbd_listed *out)
{
    int tag = dwarf_tag(die);

    if (is_own_flag(die, DW_AT_declaration) ||
        (tag != DW_TAG_subprogram && tag != DW_TAG_variable && !is_type(tag)))
        return false;
    switch (kind) {
    case TBD_LISTED_FUNCTION: return tag == DW_TAG_subprogram && take_function(die, out);
    case TBD_LISTED_VARIABLE: return tag == DW_TAG_variable && take_variable(die, out);
    case TBD_LISTED_TYPE: break;
    }
    return is_type(tag);
}

/* `scope`: that the entry is in. */
static bool take_name(const Dwarf_Die *die, const char *scope, char *out, size_t bytes)
{
    const char *name = tbd_die_name(die);
    Dwarf_Die declared;

    if (name == NULL)
        return false;
    if (!tbd_die_reference(die, DW_AT_specification, &declared) &&
        !tbd_die_reference(die, DW_AT_abstract_origin, &declared))
        return (size_t)snprintf(out, bytes, "%s%s", scope, name) < bytes;
    return tbd_dwarf_declared_name(die, out, bytes);
}

/* `scope`: "shop::", of the scopes around. */
static void visit_listed(struct list_walk *walk, const Dwarf_Die *parent, const char *scope,
                         int nesting)
{
    Dwarf_Die die;

    for (bool more = nesting < NESTING_MAX && tbd_die_child(parent, &die);
         more && !walk->is_over && walk->visits++ < VISITS_MAX; more = tbd_die_next(&die, &die)) {
        int tag = dwarf_tag(&die);
        struct tbd_listed one = { .die = die };
        char name[NAME_BYTES];
        const char *own;

        if (is_wanted(walk->kind, &die, &one) && take_name(&die, scope, name, sizeof(name))) {
            one.name = name;
            walk->is_over = !walk->each(walk->context, &one);
        }
        if (tag != DW_TAG_namespace && (walk->kind != TBD_LISTED_TYPE || !has_types_inside(tag)))
            continue;
        own = tbd_die_name(&die);
        if (own == NULL && tag != DW_TAG_namespace)
            visit_listed(walk, &die, scope, nesting + 1);
        else if ((size_t)snprintf(name, sizeof(name), "%s%s::", scope,
                                  own == NULL ? TBD_DIE_NAMELESS : own) < sizeof(name))
            visit_listed(walk, &die, name, nesting + 1);
    }
}

void tbd_dwarf_list(struct tbd_dwarf *dwarf, enum tbd_listed_kind kind,
                    bool (*each)(void *context, const struct tbd_listed *one), void *context)
{
    struct list_walk walk = { .kind = kind, .each = each, .context = context };
    size_t count = tbd_dwarf_unit_count(dwarf);
    Dwarf_Die unit;

    for (size_t i = 0; i < count && !walk.is_over; i++) {
        if (tbd_dwarf_unit(dwarf, i, &unit))
            visit_listed(&walk, &unit, "", 0);
    }
}

/* The file's number is one of the unit that the attribute stands in, which may be that of an abstract origin. */
struct tbd_source_line tbd_dwarf_declared_at(struct tbd_dwarf *dwarf, const Dwarf_Die *die)
{
    struct tbd_source_line at = { .file = NULL };
    Dwarf_Attribute attribute;
    Dwarf_Die unit;
    uint64_t line, file;

    if (!tbd_die_attribute(die, DW_AT_decl_file, &attribute) ||
        dwarf_cu_die(attribute.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) == NULL ||
        !tbd_die_number(die, DW_AT_decl_file, &file) ||
        !tbd_die_number(die, DW_AT_decl_line, &line) || line == 0 || line > INT32_MAX)
        return at;
    at.file = tbd_dwarf_source_path(dwarf, &unit, file);
    at.line = at.file == NULL ? 0 : (uint32_t)line;
    return at;
}
