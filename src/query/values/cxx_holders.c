// SPDX-License-Identifier: MIT
/* cxx_holders.c - what holds single values: smart pointers, optional, variant, tuple, iterators
 * (cxx_private.h) */
#include "query/values/cxx_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TUPLE_MAX 64

/* gdb's name for the type that a pointer or an optional holds: `std::optional<int>`. */
static void title_by_argument(const struct tbd_place_of *place, const struct tbd_data *data,
                              const char *name, struct tbd_cxx *cxx)
{
    struct tbd_type type;
    char text[96] = "?";
    const char *word = text;

    if (tbd_cxx_type_argument(place, &data->type, 0, &type))
        (void)tbd_type_text(&type, text, sizeof(text));
    for (size_t i = 0; i < 2; i++) {
        word += strncmp(word, "struct ", 7) == 0 ? 7 : 0;
        word += strncmp(word, "class ", 6) == 0 ? 6 : 0;
    }
    snprintf(cxx->title, sizeof(cxx->title), "std::%.*s<%s>", (int)strcspn(name, "<"), name, word);
}
/* Each part of a tuple has the next one and an element as base classes. */
bool tbd_cxx_open_tuple(const struct tbd_place_of *place, const struct tbd_data *data,
                        struct tbd_cxx *cxx)
{
    struct tbd_data part, head;

    cxx->walk = TBD_CXX_WALK_TUPLE;
    cxx->kind = TBD_CXX_NUMBERED;
    if (tbd_cxx_dig_base(place, data, "_Tuple_impl<0", &cxx->data)) {
        part = cxx->data;
        while (cxx->count < TUPLE_MAX && tbd_cxx_dig_base(place, &part, "_Head_base<", &head)) {
            cxx->count++;
            if (!tbd_cxx_dig_base(place, &part, "_Tuple_impl<", &part))
                break;
        }
    }
    snprintf(cxx->title, sizeof(cxx->title),
             cxx->count == 0 ? "empty std::tuple" : "std::tuple containing");
    return true;
}

/* Alternatives are nested: the first, and the rest. */
bool tbd_cxx_open_variant(const struct tbd_place_of *place, const struct tbd_data *data,
                          struct tbd_cxx *cxx)
{
    struct tbd_type type;
    uint64_t index;
    size_t used;

    if (!tbd_cxx_dig_number(place, data, "_M_index", &index) ||
        !tbd_cxx_dig(place, data, "_M_u", &cxx->data))
        return false;
    snprintf(cxx->title, sizeof(cxx->title), "std::variant");
    used = strlen(cxx->title);
    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_SEQUENCE;
    if (index >= 0xff) {
        snprintf(cxx->title + used, sizeof(cxx->title) - used, " [no contained value]");
        return true;
    }
    snprintf(cxx->title + used, sizeof(cxx->title) - used, " [index %" PRIu64 "]", index);
    cxx->count = 1;
    for (; index > 0; index--) {
        if (!tbd_cxx_dig(place, &cxx->data, "_M_rest", &cxx->data))
            return false;
    }
    /* A value with a destructor lies in raw bytes: its type is only the template's argument. */
    if (!tbd_cxx_dig(place, &cxx->data, "_M_first", &cxx->data) ||
        !tbd_cxx_type_argument(place, &cxx->data.type, 0, &type))
        return false;
    tbd_data_part(&cxx->data, 0, &type, &cxx->data);
    return true;
}

/* Is this the header of a red-black tree, where end() points?  It is red, and the root's parent. */
static bool is_tree_end(const struct tbd_place_of *place, uint64_t node)
{
    uint64_t colour, parent, back;

    return tbd_cxx_read_word(place, node, &colour) && (uint32_t)colour == 0 &&
           tbd_cxx_read_word(place, node + 8, &parent) &&
           (parent == 0 || (tbd_cxx_read_word(place, parent + 8, &back) && back == node));
}

/* An iterator: the member that points, to a node with `bytes` of links before the value or to the value. */
static bool open_iterator(const struct tbd_place_of *place, const struct tbd_data *data,
                          const char *member, uint64_t bytes, const char *what, struct tbd_cxx *cxx)
{
    struct tbd_data pointer;

    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_ITERATOR;
    if (!tbd_cxx_dig(place, data, member, &pointer) ||
        !tbd_data_scalar(place, &pointer, &cxx->node) ||
        !(bytes == 0 ? tbd_type_target(&pointer.type, &cxx->type)
                     : tbd_cxx_type_argument(place, &data->type, 0, &cxx->type) ||
                           tbd_cxx_pointed_type(place, &data->type, &cxx->type)))
        return false;
    snprintf(cxx->title, sizeof(cxx->title), "non-dereferenceable iterator for %s", what);
    cxx->count =
        cxx->node != 0 && (bytes != TBD_CXX_RB_NODE_BYTES || !is_tree_end(place, cxx->node));
    tbd_data_at(cxx->node + bytes, &cxx->type, &cxx->data);
    return true;
}

bool tbd_cxx_open_iterator_named(const struct tbd_place_of *place, const struct tbd_data *data,
                                 const char *name, struct tbd_cxx *cxx)
{
    static const struct {
        const char *name, *member;
        uint64_t bytes;
        const char *what;
    } rows[] = {
        { "__normal_iterator<", "_M_current", 0, "std::vector" },
        { "_Deque_iterator<", "_M_cur", 0, "std::deque" },
        { "_List_iterator<", "_M_node", TBD_CXX_LIST_NODE_BYTES, "std::list" },
        { "_List_const_iterator<", "_M_node", TBD_CXX_LIST_NODE_BYTES, "std::list" },
        { "_Rb_tree_iterator<", "_M_node", TBD_CXX_RB_NODE_BYTES, "associative container" },
        { "_Rb_tree_const_iterator<", "_M_node", TBD_CXX_RB_NODE_BYTES, "associative container" },
        { "_Node_iterator<", "_M_cur", TBD_CXX_HASH_NODE_BYTES, "unordered container" },
        { "_Node_const_iterator<", "_M_cur", TBD_CXX_HASH_NODE_BYTES, "unordered container" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strncmp(name, rows[i].name, strlen(rows[i].name)) == 0)
            return open_iterator(place, data, rows[i].member, rows[i].bytes, rows[i].what, cxx);
    }
    return false;
}

bool tbd_cxx_open_unique(const struct tbd_place_of *place, const struct tbd_data *data,
                         const char *name, struct tbd_cxx *cxx)
{
    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_POINTER;
    cxx->count = 1;
    title_by_argument(place, data, name, cxx);
    return tbd_cxx_dig(place, data, "_M_t._M_t", &cxx->data) &&
           tbd_cxx_dig_base(place, &cxx->data, "_Tuple_impl<0", &cxx->data) &&
           tbd_cxx_dig_base(place, &cxx->data, "_Head_base<0", &cxx->data) &&
           tbd_cxx_dig(place, &cxx->data, "_M_head_impl", &cxx->data) &&
           tbd_type_look(&cxx->data.type).kind == TBD_TYPE_POINTER;
}

bool tbd_cxx_open_shared(const struct tbd_place_of *place, const struct tbd_data *data,
                         const char *name, struct tbd_cxx *cxx)
{
    uint64_t control, uses = 0, weak = 0, counts = 0;
    size_t used;

    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_POINTER;
    cxx->count = 1;
    title_by_argument(place, data, name, cxx);
    used = strlen(cxx->title);
    if (!tbd_cxx_dig(place, data, "_M_ptr", &cxx->data) ||
        !tbd_cxx_dig_number(place, data, "_M_refcount._M_pi", &control))
        return false;
    if (control == 0) {
        snprintf(cxx->title + used, sizeof(cxx->title) - used, " (empty)");
    } else if (tbd_cxx_read_word(place, control + 8, &counts)) {
        uses = (uint32_t)counts;
        weak = counts >> 32;
        weak -= uses != 0 && weak != 0;
        snprintf(cxx->title + used, sizeof(cxx->title) - used,
                 " (use count %" PRIu64 ", weak count %" PRIu64 ")", uses, weak);
    }
    return true;
}

bool tbd_cxx_open_optional(const struct tbd_place_of *place, const struct tbd_data *data,
                           const char *name, struct tbd_cxx *cxx)
{
    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_OPTIONAL;
    title_by_argument(place, data, name, cxx);
    return tbd_cxx_dig_number(place, data, "_M_payload._M_engaged", &cxx->count) &&
           tbd_cxx_dig(place, data, "_M_payload._M_payload._M_value", &cxx->data);
}
