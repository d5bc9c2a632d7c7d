// SPDX-License-Identifier: MIT
/* dwarf_die.c - careful walks over the entries of the debug information (dwarf_file.h)
 *
 * DWARF_DIE-1  Walks go forward only in the section, and what an entry refers to is followed
 *     ORIGINS_MAX times at most. (not checked: it is the bound of a loop) */
#include "query/debuginfo/dwarf_file.h"

#include <dwarf.h>
#include <stdio.h>

#define ORIGINS_MAX 8

bool tbd_die_child(const Dwarf_Die *die, Dwarf_Die *out)
{
    Dwarf_Die from = *die;

    return dwarf_child(&from, out) == 0 && (const char *)out->addr > (const char *)die->addr;
}

bool tbd_die_next(const Dwarf_Die *die, Dwarf_Die *out)
{
    Dwarf_Die from = *die;

    return dwarf_siblingof(&from, out) == 0 && (const char *)out->addr > (const char *)from.addr;
}

static bool own_reference(const Dwarf_Die *die, unsigned name, Dwarf_Die *out)
{
    Dwarf_Die from = *die;
    Dwarf_Attribute attribute;

    return dwarf_attr(&from, name, &attribute) != NULL &&
           dwarf_formref_die(&attribute, out) != NULL;
}

bool tbd_die_attribute(const Dwarf_Die *die, unsigned name, Dwarf_Attribute *out)
{
    Dwarf_Die at = *die;

    for (int i = 0; i < ORIGINS_MAX; i++) {
        Dwarf_Die origin;

        if (dwarf_attr(&at, name, out) != NULL)
            return true;
        if (!own_reference(&at, DW_AT_abstract_origin, &origin) &&
            !own_reference(&at, DW_AT_specification, &origin))
            return false;
        at = origin;
    }
    return false;
}

bool tbd_die_reference(const Dwarf_Die *die, unsigned name, Dwarf_Die *out)
{
    Dwarf_Attribute attribute;

    return tbd_die_attribute(die, name, &attribute) && dwarf_formref_die(&attribute, out) != NULL;
}

bool tbd_die_number(const Dwarf_Die *die, unsigned name, uint64_t *out)
{
    Dwarf_Attribute attribute;
    Dwarf_Sword number;

    if (!tbd_die_attribute(die, name, &attribute))
        return false;
    /* Implicit constants and DW_FORM_sdata are signed, the others are not. */
    if (dwarf_whatform(&attribute) == DW_FORM_sdata ||
        dwarf_whatform(&attribute) == DW_FORM_implicit_const) {
        if (dwarf_formsdata(&attribute, &number) != 0)
            return false;
        *out = (uint64_t)number;
        return true;
    }
    return dwarf_formudata(&attribute, out) == 0;
}

bool tbd_die_flag(const Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    bool set = false;

    return tbd_die_attribute(die, name, &attribute) && dwarf_formflag(&attribute, &set) == 0 && set;
}

const char *tbd_die_name(const Dwarf_Die *die)
{
    Dwarf_Attribute attribute;

    return tbd_die_attribute(die, DW_AT_name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

/* Entries lie inside the entry they belong to, in the order of the section. */
size_t tbd_die_around(const Dwarf_Die *die, Dwarf_Die *out, size_t max)
{
    Dwarf_Die within, child, from = *die;
    size_t count = 0;

    if (dwarf_diecu(&from, &within, NULL, NULL) == NULL)
        return 0;
    while (count < max) {
        Dwarf_Die found = { .addr = NULL };

        for (bool more = tbd_die_child(&within, &child);
             more && (const char *)child.addr <= (const char *)die->addr;
             more = tbd_die_next(&child, &child))
            found = child;
        if (found.addr == NULL || found.addr == die->addr)
            return found.addr == NULL ? 0 : count;
        out[count++] = within = found;
    }
    return 0;
}

static bool is_scope(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type;
}

bool tbd_die_path(const Dwarf_Die *die, const char *nameless, char *out, size_t bytes)
{
    Dwarf_Die around[TBD_DWARF_MAX_SCOPES];
    size_t count = tbd_die_around(die, around, TBD_DWARF_MAX_SCOPES), used = 0;
    const char *name = tbd_die_name(die);

    for (size_t i = 0; i < count; i++) {
        const char *scope = tbd_die_name(&around[i]);

        if (scope == NULL && dwarf_tag(&around[i]) == DW_TAG_namespace) {
            if (nameless == NULL)
                continue;
            scope = nameless;
        }
        if (scope == NULL || !is_scope(dwarf_tag(&around[i])))
            return false;
        used += (size_t)snprintf(out + used, bytes - used, "%s::", scope);
        if (used >= bytes)
            return false;
    }
    return count != 0 && name != NULL &&
           (size_t)snprintf(out + used, bytes - used, "%s", name) < bytes - used;
}

bool tbd_die_full_name(const Dwarf_Die *die, char *out, size_t bytes)
{
    const char *name = tbd_die_name(die);

    return tbd_die_path(die, TBD_DIE_NAMELESS, out, bytes) ||
           (name != NULL && (size_t)snprintf(out, bytes, "%s", name) < bytes);
}
