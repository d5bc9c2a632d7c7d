// SPDX-License-Identifier: MIT
/* cxx_holders.c - what holds single values: smart pointers, optional, variant, tuple, iterators
 * (cxx_private.h) */
#include "query/values/cxx_private.h"

#include "query/values/dwarf_expr.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TUPLE_MAX 64

/* gdb's name for the type that a pointer holds: `std::shared_ptr<int>`. */
static void title_by_argument(const struct tbd_place_of *place, const struct tbd_data *data,
                              struct tbd_cxx *cxx)
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
    snprintf(cxx->title, sizeof(cxx->title), "std::%.*s<%s>", (int)strcspn(cxx->name, "<"),
             cxx->name, word);
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
/* "std::variant<int, std::string>" */
static void title_by_arguments(const struct tbd_place_of *place, const struct tbd_data *data,
                               struct tbd_cxx *cxx)
{
    const size_t bytes = sizeof(cxx->title) - 40; /* what follows must have space */
    size_t used =
        (size_t)snprintf(cxx->title, bytes, "std::%.*s<", (int)strcspn(cxx->name, "<"), cxx->name);
    struct tbd_type type;
    char text[160];

    for (unsigned i = 0; used < bytes && tbd_cxx_type_argument(place, &data->type, i, &type); i++)
        used += (size_t)snprintf(cxx->title + used, bytes - used, "%s%s", i == 0 ? "" : ", ",
                                 tbd_cxx_type_text(&type, text, sizeof(text)));
    used = used < bytes ? used : bytes - 1;
    snprintf(cxx->title + used, sizeof(cxx->title) - used, ">");
}

bool tbd_cxx_open_variant(const struct tbd_place_of *place, const struct tbd_data *data,
                          struct tbd_cxx *cxx)
{
    struct tbd_type type;
    uint64_t index;
    size_t used;

    if (!tbd_cxx_dig_number(place, data, "_M_index", &index) ||
        !tbd_cxx_dig(place, data, "_M_u", &cxx->data))
        return false;
    title_by_arguments(place, data, cxx);
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
                                 struct tbd_cxx *cxx)
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
        if (strncmp(cxx->name, rows[i].name, strlen(rows[i].name)) == 0)
            return open_iterator(place, data, rows[i].member, rows[i].bytes, rows[i].what, cxx);
    }
    return false;
}

bool tbd_cxx_open_unique(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx)
{
    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_POINTER;
    cxx->count = 1;
    title_by_argument(place, data, cxx);
    return tbd_cxx_dig(place, data, "_M_t._M_t", &cxx->data) &&
           tbd_cxx_dig_base(place, &cxx->data, "_Tuple_impl<0", &cxx->data) &&
           tbd_cxx_dig_base(place, &cxx->data, "_Head_base<0", &cxx->data) &&
           tbd_cxx_dig(place, &cxx->data, "_M_head_impl", &cxx->data) &&
           tbd_type_look(&cxx->data.type).kind == TBD_TYPE_POINTER;
}

bool tbd_cxx_open_shared(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx)
{
    uint64_t control, uses = 0, weak = 0, counts = 0;
    size_t used;

    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_POINTER;
    cxx->count = 1;
    title_by_argument(place, data, cxx);
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
                           struct tbd_cxx *cxx)
{
    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_OPTIONAL;
    title_by_arguments(place, data, cxx);
    return tbd_cxx_dig_number(place, data, "_M_payload._M_engaged", &cxx->count) &&
           tbd_cxx_dig(place, data, "_M_payload._M_payload._M_value", &cxx->data);
}

/* The class around the function at the address that the member `path` holds: its template arguments
 * tell what an object without a type of its own holds. */
static bool class_of_function(const struct tbd_place_of *place, const struct tbd_data *data,
                              const char *path, struct tbd_type *out)
{
    Dwarf_Die around[TBD_DWARF_MAX_SCOPES], declared;
    struct tbd_dwarf_scopes scopes;
    uint64_t address;
    size_t count;

    if (!tbd_cxx_dig_number(place, data, path, &address) || address == 0 || place->dwarf == NULL ||
        !tbd_dwarf_scopes(place->dwarf, address - place->bias, &scopes))
        return false;
    if (!tbd_die_reference(&scopes.dies[scopes.count - 1], DW_AT_specification, &declared))
        return false;
    count = tbd_die_around(&declared, around, TBD_DWARF_MAX_SCOPES);
    if (count == 0)
        return false;
    *out = tbd_type_from(&around[count - 1]);
    return tbd_type_look(out).kind == TBD_TYPE_STRUCT;
}

/* `data` becomes what the container holds: in `buffer`, or where the pointer in it leads. */
static bool take_held(const struct tbd_place_of *place, const struct tbd_data *buffer,
                      const struct tbd_type *type, bool is_within, struct tbd_cxx *cxx)
{
    char text[TBD_CXX_TEXT_BYTES];
    size_t used = strlen(cxx->title);
    uint64_t address = buffer->address;

    if (!buffer->in_memory || (!is_within && !tbd_cxx_read_word(place, buffer->address, &address)))
        return false;
    tbd_data_at(address, type, &cxx->data);
    cxx->count = 1;
    cxx->names_value = true;
    snprintf(cxx->title + used, sizeof(cxx->title) - used, " containing %s",
             tbd_cxx_type_text(type, text, sizeof(text)));
    return true;
}

/* Its manager is a member of _Manager_internal<T> or _Manager_external<T>. */
bool tbd_cxx_open_any(const struct tbd_place_of *place, const struct tbd_data *data,
                      struct tbd_cxx *cxx)
{
    struct tbd_type manager, type;
    struct tbd_data storage;
    uint64_t address;
    const char *name;

    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_OPTIONAL;
    snprintf(cxx->title, sizeof(cxx->title), "std::any");
    if (!tbd_cxx_dig_number(place, data, "_M_manager", &address) ||
        !tbd_cxx_dig(place, data, "_M_storage", &storage))
        return false;
    if (address == 0)
        return true;
    if (!class_of_function(place, data, "_M_manager", &manager) ||
        !tbd_cxx_type_argument(place, &manager, 0, &type))
        return false;
    name = tbd_die_name(&manager.die);
    return take_held(place, &storage, &type, name != NULL && strstr(name, "_internal<") != NULL,
                     cxx);
}

/* Its invoker is a member of _Function_handler<Signature, T>, whose base class knows whether a T
 * lies within. */
bool tbd_cxx_open_function(const struct tbd_place_of *place, const struct tbd_data *data,
                           struct tbd_cxx *cxx)
{
    struct tbd_data storage, handler = { .is_known = true }, is_within;
    struct tbd_member member;
    uint64_t manager, within = 0;
    struct tbd_type type;

    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_OPTIONAL;
    snprintf(cxx->title, sizeof(cxx->title), "std::function");
    if (!tbd_cxx_dig_number(place, data, "_M_manager", &manager) ||
        !tbd_cxx_dig(place, data, "_M_functor", &storage))
        return false;
    if (manager == 0)
        return true;
    if (!class_of_function(place, data, "_M_invoker", &handler.type) ||
        !tbd_cxx_type_argument(place, &handler.type, 1, &type) ||
        !tbd_data_find_member(place, &handler, "__stored_locally", strlen("__stored_locally"),
                              &member, &is_within) ||
        !member.is_static || !tbd_c_static_member(place, &member, &is_within) ||
        !tbd_data_scalar(place, &is_within, &within))
        return false;
    return take_held(place, &storage, &type, within != 0, cxx);
}

bool tbd_cxx_open_atomic(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx)
{
    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_ATOMIC;
    cxx->count = 1;
    title_by_arguments(place, data, cxx);
    return tbd_cxx_dig(place, data, "_M_i", &cxx->data) ||
           tbd_cxx_dig(place, data, "_M_base._M_i", &cxx->data) ||
           tbd_cxx_dig(place, data, "_M_b._M_p", &cxx->data);
}

/* stack, queue, priority_queue */
bool tbd_cxx_open_adapter(const struct tbd_place_of *place, const struct tbd_data *data,
                          struct tbd_cxx *cxx)
{
    cxx->walk = TBD_CXX_WALK_ONE;
    cxx->kind = TBD_CXX_ADAPTER;
    cxx->count = 1;
    snprintf(cxx->title, sizeof(cxx->title), "std::%.*s wrapping: ", (int)strcspn(cxx->name, "<"),
             cxx->name);
    return tbd_cxx_dig(place, data, "c", &cxx->data);
}
