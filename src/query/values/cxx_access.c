// SPDX-License-Identifier: MIT
/* cxx_access.c - elements and member functions of containers of the C++ standard library
 *
 * Nothing is called: the result of a member function is computed from the container's members.
 *
 * CXX_ACCESS-1  A walk to an element makes at most ELEMENT_STEPS_MAX steps. */
#include "query/values/cxx_print.h"

#include "base/assert.h"

#include <dwarf.h>
#include <string.h>

#define ELEMENT_STEPS_MAX (1u << 16)

/* std::array has nothing but an array. */
static bool array_element(const struct tbd_place_of *place, const struct tbd_data *data,
                          uint64_t index, struct tbd_data *out)
{
    static const char elements[] = "_M_elems";
    struct tbd_type_view view;
    struct tbd_member member;
    struct tbd_type target;
    struct tbd_data all;
    uint64_t bytes;

    if (!tbd_data_find_member(place, data, elements, sizeof(elements) - 1, &member, &all))
        return false;
    view = tbd_type_look(&all.type);
    if (view.kind != TBD_TYPE_ARRAY || !tbd_type_target(&all.type, &target))
        return false;
    bytes = tbd_type_look(&target).bytes;
    if (bytes == 0 || index >= view.bytes / bytes)
        return false;
    tbd_data_part(&all, index * bytes, &target, out);
    return true;
}

bool tbd_cxx_element(const struct tbd_place_of *place, const struct tbd_data *data, uint64_t index,
                     struct tbd_data *out)
{
    struct tbd_data second;
    struct tbd_cxx cxx;

    if (array_element(place, data, index, out))
        return true;
    if (!tbd_cxx_open(place, data, &cxx) || index >= cxx.count ||
        (cxx.kind != TBD_CXX_SEQUENCE && cxx.kind != TBD_CXX_STRING))
        return false;
    if (cxx.kind == TBD_CXX_STRING) {
        tbd_data_at(cxx.data.address + index, &cxx.data.type, out);
        return true;
    }
    if (cxx.is_indexed)
        cxx.index = index;
    while (cxx.index < index) {
        if (index > ELEMENT_STEPS_MAX || !tbd_cxx_next(place, &cxx, out, &second))
            return false;
    }
    TBD_INVARIANT("CXX_ACCESS-1", cxx.is_indexed || cxx.index <= ELEMENT_STEPS_MAX);
    return tbd_cxx_next(place, &cxx, out, &second);
}

/* The only element of a container of this kind. */
static bool only(const struct tbd_place_of *place, struct tbd_cxx *cxx, enum tbd_cxx_kind kind,
                 struct tbd_data *out)
{
    struct tbd_data second;

    return cxx->kind == kind && tbd_cxx_next(place, cxx, out, &second);
}

bool tbd_cxx_pointer(const struct tbd_place_of *place, const struct tbd_data *data,
                     struct tbd_data *out)
{
    struct tbd_cxx cxx;

    return tbd_cxx_open(place, data, &cxx) && only(place, &cxx, TBD_CXX_POINTER, out);
}

bool tbd_cxx_target(const struct tbd_place_of *place, const struct tbd_data *data,
                    struct tbd_data *out)
{
    struct tbd_cxx cxx;

    return tbd_cxx_open(place, data, &cxx) &&
           (only(place, &cxx, TBD_CXX_OPTIONAL, out) || only(place, &cxx, TBD_CXX_ITERATOR, out));
}

bool tbd_cxx_is_map(const struct tbd_place_of *place, const struct tbd_data *data)
{
    struct tbd_cxx cxx;

    return tbd_cxx_open(place, data, &cxx) && cxx.kind == TBD_CXX_MAP;
}

bool tbd_cxx_find(const struct tbd_place_of *place, const struct tbd_data *data,
                  bool (*is_key)(void *context, const struct tbd_data *key), void *context,
                  struct tbd_data *out)
{
    struct tbd_data key;
    struct tbd_cxx cxx;

    if (!tbd_cxx_open(place, data, &cxx) || cxx.kind != TBD_CXX_MAP)
        return false;
    while (cxx.index < ELEMENT_STEPS_MAX && tbd_cxx_next(place, &cxx, &key, out)) {
        if (is_key(context, &key))
            return true;
    }
    return false;
}

/* ---- member functions ---- */

static bool is_one_of(const char *name, const char *a, const char *b)
{
    return strcmp(name, a) == 0 || strcmp(name, b) == 0;
}

static bool give(uint64_t value, uint8_t encoding, uint8_t bytes, struct tbd_data *out)
{
    struct tbd_type type = tbd_type_made(encoding, bytes);

    tbd_data_number(value, &type, out);
    return true;
}

/* A pointer to where `first` lies. */
static bool give_address(const struct tbd_data *first, struct tbd_data *out)
{
    struct tbd_type type = tbd_type_pointer_to(&first->type);

    if (!first->in_memory)
        return false;
    tbd_data_number(first->address, &type, out);
    return true;
}

static bool ask_sequence(const struct tbd_place_of *place, const struct tbd_data *data,
                         const struct tbd_cxx *cxx, const char *name, struct tbd_data *out)
{
    struct tbd_data first;

    if (is_one_of(name, "data", "c_str") && cxx->kind == TBD_CXX_STRING)
        return give_address(&cxx->data, out);
    if (strcmp(name, "data") == 0)
        return cxx->is_indexed && tbd_cxx_element(place, data, 0, &first) &&
               give_address(&first, out);
    if (strcmp(name, "front") == 0)
        return tbd_cxx_element(place, data, 0, out);
    return strcmp(name, "back") == 0 && tbd_cxx_element(place, data, cxx->count - 1, out);
}

bool tbd_cxx_ask(const struct tbd_place_of *place, const struct tbd_data *data, const char *name,
                 struct tbd_data *out)
{
    struct tbd_cxx cxx;

    if (!tbd_cxx_open(place, data, &cxx))
        return false;
    switch (cxx.kind) {
    case TBD_CXX_STRING:
    case TBD_CXX_SEQUENCE:
    case TBD_CXX_MAP:
        if (is_one_of(name, "size", "length"))
            return give(cxx.count, DW_ATE_unsigned, 8, out);
        if (strcmp(name, "empty") == 0)
            return give(cxx.count == 0, DW_ATE_boolean, 1, out);
        return ask_sequence(place, data, &cxx, name, out);
    case TBD_CXX_POINTER: return strcmp(name, "get") == 0 && only(place, &cxx, cxx.kind, out);
    case TBD_CXX_OPTIONAL:
        if (strcmp(name, "has_value") == 0)
            return give(cxx.count != 0, DW_ATE_boolean, 1, out);
        return strcmp(name, "value") == 0 && only(place, &cxx, cxx.kind, out);
    default: return false;
    }
}
