// SPDX-License-Identifier: MIT
/* cxx_cast.c - see cxx_cast.h */
#include "query/values/cxx_cast.h"

#define NESTING_MAX 16
#define SOMEWHERE   (1ull << 32) /* an address for objects of which only the layout is asked */

enum relation {
    UNRELATED,
    RELATED, /* but where is not known */
    FOUND,
};

static bool nothing_known(void *context, uint64_t address, void *out, size_t bytes)
{
    (void)context, (void)address, (void)out, (void)bytes;
    return false;
}

/* Is `object` of the class, or has it a base class that is?  *out: where that part lies. */
static enum relation find_part(const struct tbd_place_of *place, const struct tbd_data *object,
                               const struct tbd_type *class, int nesting, uint64_t *out)
{
    struct tbd_type_view view = tbd_type_look(&object->type);
    enum relation found = UNRELATED;
    struct tbd_member member;
    struct tbd_data base;
    Dwarf_Die of, at;

    if (view.kind != TBD_TYPE_STRUCT || view.die.addr == NULL || nesting > NESTING_MAX)
        return UNRELATED;
    if (tbd_is_same_class(&object->type, class)) {
        *out = object->address;
        return object->is_known ? FOUND : RELATED;
    }
    of = tbd_type_complete(place->dwarf, &view.die);
    for (bool first = true; found != FOUND && tbd_type_next_member(&of, first, &at, &member);
         first = false) {
        enum relation here;

        if (!member.is_base)
            continue;
        tbd_data_member(place, object, &member, &base);
        here = find_part(place, &base, class, nesting + 1, out);
        found = here > found ? here : found;
    }
    return found;
}

static struct tbd_data object_at(uint64_t address, const struct tbd_type *type)
{
    struct tbd_data out = { 0 };

    tbd_data_at(address, type, &out);
    return out;
}

/* How far `class` lies in every object of the class `type`, without asking one. */
static enum relation layout(const struct tbd_place_of *place, const struct tbd_type *type,
                            const struct tbd_type *class, uint64_t *out)
{
    static const struct tbd_stack_memory none = { .read = nothing_known };
    struct tbd_place_of unread = *place;
    struct tbd_data object = object_at(SOMEWHERE, type);
    enum relation found;

    unread.memory = &none;
    found = find_part(&unread, &object, class, 0, out);
    *out -= SOMEWHERE;
    return found;
}

static enum relation step(const struct tbd_place_of *place, const struct tbd_type *from,
                          const struct tbd_type *to, uint64_t *out)
{
    uint64_t down = 0;
    enum relation up = layout(place, from, to, out), back;

    if (up != UNRELATED)
        return up;
    back = layout(place, to, from, &down);
    *out = back == FOUND ? 0 - down : 0;
    return back;
}

bool tbd_object_cast_step(const struct tbd_place_of *place, const struct tbd_type *from,
                          const struct tbd_type *to, uint64_t *out)
{
    return step(place, from, to, out) != RELATED;
}

bool tbd_object_cast(const struct tbd_place_of *place, const struct tbd_class_finder *finder,
                     enum tbd_cast_kind kind, uint64_t pointer, const struct tbd_type *from,
                     const struct tbd_type *to, uint64_t *out)
{
    struct tbd_data object = object_at(pointer, from), whole;
    enum relation related;

    *out = pointer;
    if (kind == TBD_CAST_REINTERPRET || pointer == 0)
        return true;
    related = step(place, from, to, out);
    *out = related == FOUND ? pointer + *out : pointer;
    if (related != RELATED && kind != TBD_CAST_DYNAMIC)
        return true;
    related = find_part(place, &object, to, 0, out); /* a base class, which may be virtual */
    if (related == FOUND)
        return true;
    if (!tbd_object_whole(place, finder, &object, &whole))
        return false;
    related = find_part(place, &whole, to, 0, out);
    if (related == UNRELATED)
        *out = kind == TBD_CAST_DYNAMIC ? 0 : pointer;
    return related != RELATED;
}
