// SPDX-License-Identifier: MIT
/* cxx_object.c - see cxx_object.h */
#include "query/values/cxx_object.h"

#include "query/text/demangle.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NESTING_MAX 16
#define NAME_BYTES  1024
#define FAR_MAX     (1ull << 32) /* a part's distance to its object */

static bool read_word(const struct tbd_place_of *place, uint64_t address, uint64_t *out)
{
    return place->memory != NULL &&
           place->memory->read(place->memory->context, address, out, sizeof(*out));
}

/* Has the class virtual functions, or virtual base classes? */
static bool has_table(const struct tbd_place_of *place, const struct tbd_type *type, int nesting)
{
    struct tbd_type_view view = tbd_type_look(type);
    struct tbd_member member;
    Dwarf_Die of, at;

    if (view.kind != TBD_TYPE_STRUCT || view.die.addr == NULL || nesting > NESTING_MAX)
        return false;
    of = tbd_type_complete(place->dwarf, &view.die);
    for (bool first = true; tbd_type_next_member(&of, first, &at, &member); first = false) {
        if (member.is_virtual || (member.name != NULL && strncmp(member.name, "_vptr", 5) == 0) ||
            (member.is_base && has_table(place, &member.type, nesting + 1)))
            return true;
    }
    return false;
}

static bool read_text(const struct tbd_place_of *place, uint64_t address, char *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (!place->memory->read(place->memory->context, address + i, &out[i], 1))
            return false;
        if (out[i] == '\0')
            return true;
    }
    return false;
}

/* The class's name in its type_info, "N4shop6CircleE" or "*N4shop6CircleE" (of this module only), as
 * people write it; the caller frees it. */
static char *read_name(const struct tbd_place_of *place, uint64_t type_info)
{
    const char prefix[] = "typeinfo name for ";
    char mangled[NAME_BYTES + 8], text[NAME_BYTES];
    uint64_t address;
    char *name;

    if (!read_word(place, type_info + 8, &address) ||
        !read_text(place, address, text, sizeof(text)))
        return NULL;
    snprintf(mangled, sizeof(mangled), "_ZTS%s", text + (text[0] == '*'));
    name = tbd_demangle_whole(mangled);
    if (name == NULL || strncmp(name, prefix, sizeof(prefix) - 1) != 0) {
        free(name);
        return NULL;
    }
    memmove(name, name + sizeof(prefix) - 1, strlen(name) - sizeof(prefix) + 2);
    return name;
}

/* The debug information has nameless namespaces without a name. */
static void drop_nameless(char *name)
{
    const char nameless[] = "(anonymous namespace)::";
    char *at;

    while ((at = strstr(name, nameless)) != NULL)
        memmove(at, at + sizeof(nameless) - 1, strlen(at) - sizeof(nameless) + 2);
}

bool tbd_object_type(const struct tbd_place_of *place, const struct tbd_class_finder *finder,
                     const char *name, struct tbd_type *out)
{
    const Dwarf_Die *unit = place->scopes.count != 0 ? &place->scopes.unit : NULL;
    char plain[NAME_BYTES];

    if (strlen(name) >= sizeof(plain))
        return false;
    strcpy(plain, name);
    drop_nameless(plain);
    return (place->dwarf != NULL && tbd_type_find(place->dwarf, unit, plain, out)) ||
           (finder->type != NULL && finder->type(finder->context, plain, out));
}

bool tbd_is_same_class(const struct tbd_type *a, const struct tbd_type *b)
{
    struct tbd_type_view view = tbd_type_look(a), other = tbd_type_look(b);
    struct tbd_type x, y;
    char name[2][256];

    if (view.kind != TBD_TYPE_STRUCT || other.kind != TBD_TYPE_STRUCT || view.die.addr == NULL ||
        other.die.addr == NULL)
        return false;
    x = tbd_type_from(&view.die); /* without const and typedefs */
    y = tbd_type_from(&other.die);
    return strcmp(tbd_type_text(&x, name[0], sizeof(name[0])),
                  tbd_type_text(&y, name[1], sizeof(name[1]))) == 0;
}

/* Is `part` the object itself, or one of its base classes? */
static bool is_part(const struct tbd_place_of *place, const struct tbd_data *object,
                    const struct tbd_data *part, int nesting)
{
    struct tbd_type_view view = tbd_type_look(&object->type);
    struct tbd_member member;
    struct tbd_data base;
    Dwarf_Die of, at;

    if (view.kind != TBD_TYPE_STRUCT || !object->is_known || nesting > NESTING_MAX)
        return false;
    if (nesting != 0 && object->address == part->address &&
        tbd_is_same_class(&object->type, &part->type))
        return true;
    of = tbd_type_complete(place->dwarf, &view.die);
    for (bool first = true; tbd_type_next_member(&of, first, &at, &member); first = false) {
        if (!member.is_base)
            continue;
        tbd_data_member(place, object, &member, &base);
        if (is_part(place, &base, part, nesting + 1))
            return true;
    }
    return false;
}

bool tbd_object_whole(const struct tbd_place_of *place, const struct tbd_class_finder *finder,
                      const struct tbd_data *part, struct tbd_data *out)
{
    uint64_t table, far, type_info;
    struct tbd_type type;
    char *name;
    bool found;

    if (!part->is_known || !part->in_memory || !has_table(place, &part->type, 0) ||
        !read_word(place, part->address, &table) || table < 16 ||
        !read_word(place, table - 16, &far) || 0 - far > FAR_MAX ||
        !read_word(place, table - 8, &type_info))
        return false;
    name = read_name(place, type_info);
    found = name != NULL && tbd_object_type(place, finder, name, &type);
    free(name);
    if (!found)
        return false;
    tbd_data_at(part->address + far, &type, out);
    return is_part(place, out, part, 0);
}
