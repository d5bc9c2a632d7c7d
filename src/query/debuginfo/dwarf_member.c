// SPDX-License-Identifier: MIT
/* dwarf_member.c - members of objects (dwarf_location.h)
 *
 * The offset of a virtual base class is not the type's: an expression finds it through the object's
 * table of virtual functions. */
#include "query/debuginfo/dwarf_location.h"

#include "query/debuginfo/dwarf_machine.h"

#include <dwarf.h>
#include <string.h>

#define NESTING_MAX 16
#define MEMBERS_MAX 100000u

/* Where the base class `member` of the object at `address` begins. */
static bool find_base(const struct tbd_place_of *place, const struct tbd_member *member,
                      uint64_t address, struct tbd_data *out, uint64_t *out_address)
{
    uint32_t steps = 0;
    struct tbd_machine m = { .place = place, .steps = &steps, .out = out };
    Dwarf_Attribute attribute;

    return tbd_die_attribute(&member->die, DW_AT_data_member_location, &attribute) &&
           tbd_machine_push(&m, address) && tbd_machine_run(&m, &attribute) &&
           tbd_machine_pop(&m, out_address);
}

void tbd_data_member(const struct tbd_place_of *place, const struct tbd_data *object,
                     const struct tbd_member *member, struct tbd_data *out)
{
    struct tbd_data base = { .is_known = false };
    struct tbd_type type = member->type; /* `out` may be where `object` is */
    uint64_t address = 0;

    if (!member->is_virtual || !object->is_known) {
        tbd_data_part(object, member->offset, &type, out);
        out->bits = member->bits;
        out->bit_offset = member->bit_offset;
        return;
    }
    if (object->in_memory && find_base(place, member, object->address, &base, &address)) {
        tbd_data_at(address, &type, out);
        return;
    }
    *out = (struct tbd_data){ .type = type };
    tbd_data_unknown(out, "where its virtual base class is is not known");
}

static bool is_called(const struct tbd_member *member, const char *name, size_t bytes)
{
    return member->name != NULL && !member->is_base && strlen(member->name) == bytes &&
           memcmp(member->name, name, bytes) == 0;
}

static bool find_member(const struct tbd_place_of *place, const struct tbd_data *object,
                        const char *name, size_t bytes, int nesting, struct tbd_member *out_member,
                        struct tbd_data *out)
{
    struct tbd_type_view view = tbd_type_look(&object->type);
    struct tbd_member member;
    struct tbd_data inner;
    Dwarf_Die of, at;
    unsigned visits = 0;

    if (view.kind != TBD_TYPE_STRUCT || nesting > NESTING_MAX)
        return false;
    of = tbd_type_complete(place->dwarf, &view.die);
    for (bool first = true;
         tbd_type_next_member(&of, first, &at, &member) && visits++ < MEMBERS_MAX; first = false) {
        if (is_called(&member, name, bytes)) {
            *out_member = member;
            if (!member.is_static)
                tbd_data_member(place, object, &member, out);
            return true;
        }
        if (member.name != NULL && !member.is_base)
            continue;
        if (member.is_static)
            continue;
        tbd_data_member(place, object, &member, &inner);
        if (find_member(place, &inner, name, bytes, nesting + 1, out_member, out))
            return true;
    }
    return false;
}

bool tbd_data_find_member(const struct tbd_place_of *place, const struct tbd_data *object,
                          const char *name, size_t bytes, struct tbd_member *out_member,
                          struct tbd_data *out)
{
    return find_member(place, object, name, bytes, 0, out_member, out);
}
