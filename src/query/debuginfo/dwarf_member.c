// SPDX-License-Identifier: MIT
/* dwarf_member.c - members of types (dwarf_type.h) and of objects (dwarf_location.h)
 *
 * The offset of a virtual base class is not the type's: an expression finds it through the object's
 * table of virtual functions. */
#include "query/debuginfo/dwarf_location.h"

#include "query/debuginfo/dwarf_machine.h"

#include <dwarf.h>
#include <string.h>

#define NESTING_MAX 16
#define MEMBERS_MAX 100000u

/* ---- of types ---- */

static bool is_member(int tag)
{
    return tag == DW_TAG_member || tag == DW_TAG_inheritance || tag == DW_TAG_variable;
}

/* DWARF 5 counts bits from the struct's start; older producers from the top of a storage unit. */
static void take_bits(const Dwarf_Die *die, struct tbd_member *out)
{
    uint64_t bits, at, storage;

    if (!tbd_die_number(die, DW_AT_bit_size, &bits) || bits == 0 || bits > 64)
        return;
    out->bits = (uint32_t)bits;
    if (tbd_die_number(die, DW_AT_data_bit_offset, &at)) {
        out->offset = at / 8;
        out->bit_offset = (uint32_t)(at % 8);
        return;
    }
    if (!tbd_die_number(die, DW_AT_bit_offset, &at))
        return;
    if (!tbd_die_number(die, DW_AT_byte_size, &storage))
        storage = tbd_type_look(&out->type).bytes;
    if (storage > 8 || at + bits > storage * 8)
        return;
    at = storage * 8 - bits - at;
    out->offset += at / 8;
    out->bit_offset = (uint32_t)(at % 8);
}

static bool is_virtual_base(const Dwarf_Die *die)
{
    uint64_t virtuality = 0;

    return tbd_die_number(die, DW_AT_virtuality, &virtuality) && virtuality != 0;
}

static void take_member(const Dwarf_Die *die, struct tbd_member *out)
{
    Dwarf_Die from = *die;
    uint64_t offset = 0;

    *out = (struct tbd_member){
        .name = tbd_die_name(die),
        .type = tbd_type_of(die),
        .is_base = dwarf_tag(&from) == DW_TAG_inheritance,
        .is_static = dwarf_tag(&from) == DW_TAG_variable || tbd_die_flag(die, DW_AT_external),
        .is_virtual = dwarf_tag(&from) == DW_TAG_inheritance && is_virtual_base(die),
        .die = *die
    };
    (void)tbd_die_number(die, DW_AT_data_member_location, &offset);
    out->offset = offset;
    take_bits(die, out);
}

bool tbd_type_next_member(const Dwarf_Die *of, bool first, Dwarf_Die *at, struct tbd_member *out)
{
    bool more = first ? tbd_die_child(of, at) : tbd_die_next(at, at);

    while (more && !is_member(dwarf_tag(at)))
        more = tbd_die_next(at, at);
    if (more)
        take_member(at, out);
    return more;
}

static bool find_in_type(const Dwarf_Die *of, const char *name, size_t bytes, int nesting,
                         struct tbd_member *out)
{
    struct tbd_member member, inner;
    Dwarf_Die at, type;
    bool first = true;
    unsigned visits = 0;

    for (; tbd_type_next_member(of, first, &at, &member) && visits++ < MEMBERS_MAX; first = false) {
        if (member.name != NULL && strlen(member.name) == bytes &&
            memcmp(member.name, name, bytes) == 0 && !member.is_base) {
            *out = member;
            return true;
        }
        if ((member.name != NULL && !member.is_base) || nesting >= NESTING_MAX)
            continue;
        type = tbd_type_look(&member.type).die;
        if (type.addr != NULL && find_in_type(&type, name, bytes, nesting + 1, &inner)) {
            *out = inner;
            out->offset += member.offset;
            out->is_virtual = out->is_virtual || member.is_virtual;
            return true;
        }
    }
    return false;
}

bool tbd_type_find_member(const Dwarf_Die *of, const char *name, size_t bytes,
                          struct tbd_member *out)
{
    return find_in_type(of, name, bytes, 0, out);
}

/* ---- of objects ---- */

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
