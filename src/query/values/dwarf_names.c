// SPDX-License-Identifier: MIT
/* dwarf_names.c - which variable a name means at a place (dwarf_expr.h) */
#include "query/values/dwarf_expr.h"

#include "query/debuginfo/dwarf_index.h"

#include <dwarf.h>
#include <string.h>

#define NESTING_MAX 8
#define PATH_BYTES  512

static bool is_variable(int tag)
{
    return tag == DW_TAG_variable || tag == DW_TAG_formal_parameter;
}

/* Does the entry say where it is?  An `extern` declaration does not. */
static bool has_place(const Dwarf_Die *die)
{
    Dwarf_Attribute attribute;

    return tbd_die_attribute(die, DW_AT_location, &attribute) ||
           tbd_die_attribute(die, DW_AT_const_value, &attribute);
}

static bool is_called(const Dwarf_Die *die, const char *name)
{
    const char *own = tbd_die_name(die);

    return own != NULL && strcmp(own, name) == 0;
}

/* A value of an enumeration. */
static bool find_enumerator(const Dwarf_Die *enumeration, const char *name, Dwarf_Die *out)
{
    for (bool more = tbd_die_child(enumeration, out); more; more = tbd_die_next(out, out)) {
        if (dwarf_tag(out) == DW_TAG_enumerator && is_called(out, name))
            return true;
    }
    return false;
}

/* The values of `enum class` need its name before them. */
static bool find_plain_enumerator(Dwarf_Die *die, const char *name, Dwarf_Die *out)
{
    return dwarf_tag(die) == DW_TAG_enumeration_type && !tbd_die_flag(die, DW_AT_enum_class) &&
           find_enumerator(die, name, out);
}

static bool find_child(const Dwarf_Die *scope, const char *name, Dwarf_Die *out)
{
    Dwarf_Die die;

    for (bool more = tbd_die_child(scope, &die); more; more = tbd_die_next(&die, &die)) {
        if (find_plain_enumerator(&die, name, out))
            return true;
        if (is_variable(dwarf_tag(&die)) && is_called(&die, name) &&
            !tbd_die_flag(&die, DW_AT_declaration)) {
            *out = die;
            return true;
        }
    }
    return false;
}

/* Blocks of the selected function; static variables of an inlined one may only be in its abstract
 * form. */
static bool find_local(const struct tbd_place_of *place, const char *name, Dwarf_Die *out)
{
    for (size_t i = place->first; i < place->end && i < place->scopes.count; i++) {
        Dwarf_Die origin;

        if (find_child(&place->scopes.dies[i], name, out))
            return true;
        if (tbd_die_reference(&place->scopes.dies[i], DW_AT_abstract_origin, &origin) &&
            find_child(&origin, name, out))
            return true;
    }
    return false;
}

static void function_value(const Dwarf_Die *die, uint64_t bias, struct tbd_data *out)
{
    struct tbd_type type = tbd_type_from(die);
    Dwarf_Die from = *die;
    Dwarf_Addr low = 0;

    (void)dwarf_lowpc(&from, &low);
    tbd_data_at(low + bias, &type, out);
}

/* The value of an enumerator, with the type of its enumeration. */
static void enumerator_value(const Dwarf_Die *die, struct tbd_data *out)
{
    Dwarf_Die around[TBD_DWARF_MAX_SCOPES];
    size_t count = tbd_die_around(die, around, TBD_DWARF_MAX_SCOPES);
    struct tbd_type type =
        count == 0 ? tbd_type_made(DW_ATE_signed, 4) : tbd_type_from(&around[count - 1]);
    uint64_t value = 0;

    (void)tbd_die_number(die, DW_AT_const_value, &value);
    tbd_data_number(value, &type, out);
}

static bool is_function_here(Dwarf_Die *die)
{
    Dwarf_Addr low;

    return dwarf_tag(die) == DW_TAG_subprogram && dwarf_lowpc(die, &low) == 0;
}

/* Variables and functions at the top of a unit and in its namespaces. */
static bool find_top(const Dwarf_Die *parent, const char *name, int nesting, Dwarf_Die *out)
{
    Dwarf_Die die;

    for (bool more = tbd_die_child(parent, &die); more; more = tbd_die_next(&die, &die)) {
        int tag = dwarf_tag(&die);

        if ((tag == DW_TAG_variable && is_called(&die, name) && has_place(&die)) ||
            (tag == DW_TAG_subprogram && is_called(&die, name) && is_function_here(&die))) {
            *out = die;
            return true;
        }
        if (find_plain_enumerator(&die, name, out))
            return true;
        if (tag == DW_TAG_namespace && nesting < NESTING_MAX &&
            find_top(&die, name, nesting + 1, out))
            return true;
    }
    return false;
}

static bool has_members(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type;
}

/* The end of "A<b::C>" in "A<b::C>::D"; NULL if nothing follows. */
static const char *first_colons(const char *path)
{
    int depth = 0;

    for (; *path != '\0'; path++) {
        depth += (*path == '<') - (*path == '>');
        if (depth <= 0 && path[0] == ':' && path[1] == ':')
            return path;
    }
    return NULL;
}

/* The declaration of A::B: in the scope called A; nameless namespaces are searched too. */
static bool find_declared(const Dwarf_Die *parent, const char *path, int nesting, Dwarf_Die *out)
{
    const char *colons = first_colons(path);
    size_t head = colons == NULL ? 0 : (size_t)(colons - path);
    Dwarf_Die die;

    for (bool more = tbd_die_child(parent, &die); more; more = tbd_die_next(&die, &die)) {
        int tag = dwarf_tag(&die);
        const char *own = tbd_die_name(&die);

        if (colons == NULL && own != NULL && strcmp(own, path) == 0 &&
            (is_variable(tag) || tag == DW_TAG_member || tag == DW_TAG_subprogram ||
             tag == DW_TAG_enumerator)) {
            *out = die;
            return true;
        }
        if (colons == NULL && find_plain_enumerator(&die, path, out))
            return true;
        if (!has_members(tag) || nesting >= NESTING_MAX)
            continue;
        if (own == NULL ? tag == DW_TAG_namespace && find_declared(&die, path, nesting + 1, out)
                        : colons != NULL && strlen(own) == head && memcmp(own, path, head) == 0 &&
                              find_declared(&die, colons + 2, nesting + 1, out))
            return true;
    }
    return false;
}

/* What is only declared there is defined at the top of the unit. */
static bool find_qualified(const Dwarf_Die *unit, const char *path, Dwarf_Die *out)
{
    Dwarf_Die declared, die, specification;
    Dwarf_Attribute attribute;

    if (!find_declared(unit, path, 0, &declared))
        return false;
    *out = declared;
    if (is_function_here(&declared) || has_place(&declared))
        return true; /* enumerators have their value there */
    for (bool more = tbd_die_child(unit, &die); more; more = tbd_die_next(&die, &die)) {
        if (dwarf_attr(&die, DW_AT_specification, &attribute) != NULL &&
            dwarf_formref_die(&attribute, &specification) != NULL &&
            specification.addr == declared.addr) {
            *out = die;
            return is_function_here(&die) || has_place(&die);
        }
    }
    return false;
}

static bool search_unit(const Dwarf_Die *unit, const char *name, Dwarf_Die *out)
{
    if (strncmp(name, "::", 2) == 0)
        name += 2;
    return strstr(name, "::") != NULL ? find_qualified(unit, name, out)
                                      : find_top(unit, name, 0, out);
}

/* A condition asks for the same few names at thousands of instructions. */
static bool find_in_unit(struct tbd_dwarf *dwarf, const Dwarf_Die *unit, const char *name,
                         Dwarf_Die *out)
{
    struct tbd_dwarf_found *found =
        tbd_dwarf_found(dwarf, dwarf_dieoffset((Dwarf_Die *)(uintptr_t)unit), name);

    if (found == NULL)
        return search_unit(unit, name, out);
    if (!found->is_known)
        found->is_there = search_unit(unit, name, &found->die);
    found->is_known = true;
    *out = found->die;
    return found->is_there;
}

void tbd_c_take(const struct tbd_place_of *place, const Dwarf_Die *die, struct tbd_data *out)
{
    Dwarf_Die from = *die;

    if (dwarf_tag(&from) == DW_TAG_subprogram)
        function_value(die, place->bias, out);
    else if (dwarf_tag(&from) == DW_TAG_enumerator)
        enumerator_value(die, out);
    else
        tbd_location_value(place, die, out);
}

/* What all files can see comes before what one keeps to itself, as for the linker. */
static bool search_units(struct tbd_dwarf *dwarf, const char *name, Dwarf_Die *out)
{
    struct tbd_unit_walk walk;
    Dwarf_Die unit, die;
    bool is_found = false;

    tbd_unit_walk_start(&walk, dwarf, name);
    while (tbd_unit_walk_next(&walk, &unit)) {
        if (!search_unit(&unit, name, &die))
            continue;
        if (!is_found || tbd_die_flag(&die, DW_AT_external))
            *out = die;
        is_found = true;
        if (tbd_die_flag(&die, DW_AT_external))
            break;
    }
    return is_found;
}

static bool find_global(struct tbd_dwarf *dwarf, const char *name, Dwarf_Die *out)
{
    struct tbd_dwarf_found *found = tbd_dwarf_found(dwarf, TBD_DWARF_ALL_UNITS, name);

    if (found == NULL)
        return search_units(dwarf, name, out);
    if (!found->is_known)
        found->is_there = search_units(dwarf, name, &found->die);
    found->is_known = true;
    *out = found->die;
    return found->is_there;
}

bool tbd_c_find_local(const struct tbd_place_of *place, const char *name, Dwarf_Die *out)
{
    return place->dwarf != NULL && find_local(place, name, out);
}

bool tbd_c_find_global(struct tbd_dwarf *dwarf, uint64_t bias, const struct tbd_place_of *place,
                       const char *name, struct tbd_data *out)
{
    struct tbd_place_of global = *place;
    Dwarf_Die die;

    global.dwarf = dwarf;
    global.bias = bias;
    global.scopes.count = 0;
    if (!find_global(dwarf, name, &die))
        return false;
    tbd_c_take(&global, &die, out);
    return true;
}

bool tbd_c_find_this(const struct tbd_place_of *place, const char *name, Dwarf_Die *out)
{
    struct tbd_member member;
    struct tbd_type type, target;
    Dwarf_Die of;

    if (place->dwarf == NULL || find_local(place, name, out) || !find_local(place, "this", out))
        return false;
    type = tbd_type_of(out);
    if (tbd_type_look(&type).kind != TBD_TYPE_POINTER || !tbd_type_target(&type, &target) ||
        tbd_type_look(&target).kind != TBD_TYPE_STRUCT)
        return false;
    of = tbd_type_look(&target).die;
    of = tbd_type_complete(place->dwarf, &of);
    return tbd_type_find_member(&of, name, strlen(name), &member);
}

bool tbd_c_find_entry(const struct tbd_place_of *place, const char *name,
                      struct tbd_place_of *out_place, Dwarf_Die *out)
{
    *out_place = *place;
    if (place->dwarf == NULL)
        return false;
    if (find_local(place, name, out) ||
        (place->scopes.count != 0 && find_in_unit(place->dwarf, &place->scopes.unit, name, out)))
        return true;
    out_place->scopes.count = 0;
    return find_global(place->dwarf, name, out);
}

bool tbd_c_static_member(const struct tbd_place_of *place, const struct tbd_member *member,
                         struct tbd_data *out)
{
    struct tbd_place_of where;
    char path[PATH_BYTES];
    Dwarf_Die die;

    *out = (struct tbd_data){ .type = member->type };
    if (has_place(&member->die))
        tbd_c_take(place, &member->die, out);
    else if (tbd_die_path(&member->die, NULL, path, sizeof(path)) &&
             tbd_c_find_entry(place, path, &where, &die))
        tbd_c_take(&where, &die, out);
    else
        tbd_data_unknown(out, "nothing says where this static member is");
    return out->is_known;
}

bool tbd_c_find(const struct tbd_c_scope *scope, const char *name, struct tbd_data *out)
{
    const struct tbd_place_of *place = scope->place;
    struct tbd_place_of where;
    Dwarf_Die die;
    bool is_found = tbd_c_find_entry(place, name, &where, &die);
    bool is_private = is_found && where.scopes.count == 0 && !place->is_main_program &&
                      !tbd_die_flag(&die, DW_AT_external);

    if ((is_private || !is_found) && scope->variable != NULL &&
        scope->variable(scope->context, name, is_private, out))
        return true;
    if (is_found)
        tbd_c_take(&where, &die, out);
    return is_found;
}
