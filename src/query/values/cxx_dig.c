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
        size_t length = strcspn(path, ".");
        struct tbd_member member;
        struct tbd_data found;

        if (!tbd_data_find_member(place, out, path, length, &member, &found) || member.is_static)
            return false;
        *out = found;
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

/* `template <typename... T>`: arguments are children of a pack. */
static bool find_argument(const Dwarf_Die *of, unsigned *index, int nesting, struct tbd_type *out)
{
    Dwarf_Die die;

    for (bool more = tbd_die_child(of, &die); more; more = tbd_die_next(&die, &die)) {
        int tag = dwarf_tag(&die);

        if (tag == DW_TAG_GNU_template_parameter_pack && nesting == 0 &&
            find_argument(&die, index, nesting + 1, out))
            return true;
        if (tag == DW_TAG_template_type_parameter && (*index)-- == 0) {
            *out = tbd_type_of(&die);
            return true;
        }
    }
    return false;
}

bool tbd_cxx_type_argument(const struct tbd_place_of *place, const struct tbd_type *type,
                           unsigned index, struct tbd_type *out)
{
    Dwarf_Die of = tbd_type_look(type).die;

    if (of.addr == NULL)
        return false;
    of = tbd_type_complete(place->dwarf, &of);
    return find_argument(&of, &index, 0, out);
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
        tbd_data_member(place, data, &member, out);
        return true;
    }
    return false;
}

/* The end of a template argument: at a comma or bracket outside of inner brackets. */
static const char *argument_end(const char *at)
{
    int depth = 0;

    for (; *at != '\0'; at++) {
        if (depth == 0 && (*at == ',' || *at == '>'))
            break;
        depth += (*at == '<' || *at == '(') - (*at == '>' || *at == ')');
    }
    return at;
}

/* Does ", std::allocator<int>" say what nobody wants to read? */
static bool is_default(const char *argument)
{
    static const char *const defaults[] = { "std::allocator<",   "std::less<",
                                            "std::hash<",        "std::equal_to<",
                                            "std::char_traits<", "std::default_delete<" };

    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
        if (strncmp(argument, defaults[i], strlen(defaults[i])) == 0)
            return true;
    }
    return false;
}

char *tbd_cxx_type_text(const struct tbd_type *type, char *out, size_t bytes)
{
    static const char string[] = "std::__cxx11::basic_string<char";
    char text[TBD_CXX_TEXT_BYTES];
    size_t used = 0;

    (void)tbd_type_text(type, text, sizeof(text));
    for (const char *at = text; *at != '\0' && used + sizeof(string) < bytes;) {
        if (strncmp(at, string, sizeof(string) - 1) == 0) {
            at = argument_end(at + strcspn(at, "<") + 1);
            while (*at == ',')
                at = argument_end(at + 1);
            at += *at == '>';
            used = (size_t)(stpcpy(out + used, "std::string") - out);
        } else if (strncmp(at, ", ", 2) == 0 && is_default(at + 2)) {
            at = argument_end(at + 2);
        } else if (strncmp(at, " >", 2) == 0) {
            at++;
        } else {
            out[used++] = *at++;
        }
    }
    out[used] = '\0';
    return out;
}
