// SPDX-License-Identifier: MIT
/* cxx_dig.c - members of the C++ library's structs, by name (cxx_private.h) */
#include "query/values/cxx_private.h"

#include <dwarf.h>
#include <string.h>

/* The member at "a.b.c", also in base classes. */
bool tbd_cxx_dig(const struct tbd_place_of *place, const struct tbd_data *data, const char *path,
                 struct tbd_data *out)
{
    *out = *data;
    while (*path != '\0') {
        struct tbd_type_view view = tbd_type_look(&out->type);
        size_t length = strcspn(path, ".");
        struct tbd_member member;
        Dwarf_Die of;

        if (view.kind != TBD_TYPE_STRUCT)
            return false;
        of = tbd_type_complete(place->dwarf, &view.die);
        if (!tbd_type_find_member(&of, path, length, &member) || member.is_static)
            return false;
        tbd_data_part(out, member.offset, &member.type, out);
        path += length + (path[length] == '.');
    }
    return out->is_known;
}

bool tbd_cxx_dig_number(const struct tbd_place_of *place, const struct tbd_data *data,
                        const char *path, uint64_t *out)
{
    struct tbd_data found;

    return tbd_cxx_dig(place, data, path, &found) && tbd_data_scalar(place, &found, out);
}

/* The type argument `index` of a struct that is a template's instance. */
bool tbd_cxx_type_argument(const struct tbd_place_of *place, const struct tbd_type *type,
                           unsigned index, struct tbd_type *out)
{
    Dwarf_Die of = tbd_type_look(type).die, die;

    if (of.addr == NULL)
        return false;
    of = tbd_type_complete(place->dwarf, &of);
    for (bool more = tbd_die_child(&of, &die); more; more = tbd_die_next(&die, &die)) {
        if (dwarf_tag(&die) == DW_TAG_template_type_parameter && index-- == 0) {
            *out = tbd_type_of(&die);
            return true;
        }
    }
    return false;
}

/* The target type from the typedefs of an iterator's struct: compilers do not always describe the
 * arguments of a template. */
bool tbd_cxx_pointed_type(const struct tbd_place_of *place, const struct tbd_type *type,
                          struct tbd_type *out)
{
    Dwarf_Die of = tbd_type_look(type).die, die;
    struct tbd_type found;
    const char *name;

    if (of.addr == NULL)
        return false;
    of = tbd_type_complete(place->dwarf, &of);
    for (bool more = tbd_die_child(&of, &die); more; more = tbd_die_next(&die, &die)) {
        name = dwarf_tag(&die) == DW_TAG_typedef ? tbd_die_name(&die) : NULL;
        if (name == NULL || (strcmp(name, "reference") != 0 && strcmp(name, "pointer") != 0))
            continue;
        found = tbd_type_of(&die);
        if (tbd_type_target(&found, out))
            return true;
    }
    return false;
}

bool tbd_cxx_read_word(const struct tbd_place_of *place, uint64_t address, uint64_t *out)
{
    return place->memory != NULL &&
           place->memory->read(place->memory->context, address, out, sizeof(*out));
}
/* The base class with this prefix: several base classes have members of the same name. */
bool tbd_cxx_dig_base(const struct tbd_place_of *place, const struct tbd_data *data,
                      const char *prefix, struct tbd_data *out)
{
    Dwarf_Die of = tbd_type_look(&data->type).die, at;
    struct tbd_member member;

    if (of.addr == NULL)
        return false;
    of = tbd_type_complete(place->dwarf, &of);
    for (bool first = true; tbd_type_next_member(&of, first, &at, &member); first = false) {
        Dwarf_Die type = tbd_type_look(&member.type).die;
        const char *name = type.addr == NULL || !member.is_base ? NULL : tbd_die_name(&type);

        if (name == NULL || strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        tbd_data_part(data, member.offset, &member.type, out);
        return true;
    }
    return false;
}
