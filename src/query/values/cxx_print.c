// SPDX-License-Identifier: MIT
/* cxx_print.c - see cxx_print.h
 *
 * Titles are those of libstdc++'s own printers for gdb, so that both read the same.
 *
 * CXX_PRINT-1  A walk makes at most `count` steps; the printer has a further bound.
 * CXX_PRINT-2  Members are found by name and typed by the debug information, nodes by the layout
 *     that libstdc++'s ABI has fixed: a node's links, then its value. (not checked: layouts are the
 *     library's: test_source.py compares with gdb) */
#include "query/values/cxx_private.h"

#include "base/assert.h"

#include <string.h>

#define TREE_DEPTH_MAX 128
#define COUNT_MAX      (1ull << 40)

/* A name that ends in '<' is that of a template; others are whole. */
static const struct {
    const char *name;
    bool (*open)(const struct tbd_place_of *place, const struct tbd_data *data,
                 struct tbd_cxx *cxx);
} kinds[] = {
    { "basic_string<", tbd_cxx_open_string },
    { "basic_string_view<", tbd_cxx_open_string },
    { "vector<", tbd_cxx_open_vector },
    { "deque<", tbd_cxx_open_deque },
    { "list<", tbd_cxx_open_list },
    { "map<", tbd_cxx_open_tree },
    { "set<", tbd_cxx_open_tree },
    { "multimap<", tbd_cxx_open_tree },
    { "multiset<", tbd_cxx_open_tree },
    { "unordered_map<", tbd_cxx_open_hash },
    { "unordered_set<", tbd_cxx_open_hash },
    { "unordered_multimap<", tbd_cxx_open_hash },
    { "unordered_multiset<", tbd_cxx_open_hash },
    { "unique_ptr<", tbd_cxx_open_unique },
    { "shared_ptr<", tbd_cxx_open_shared },
    { "weak_ptr<", tbd_cxx_open_shared },
    { "variant<", tbd_cxx_open_variant },
    { "optional<", tbd_cxx_open_optional },
    { "tuple<", tbd_cxx_open_tuple },
    { "forward_list<", tbd_cxx_open_forward },
    { "bitset<", tbd_cxx_open_bitset },
    { "initializer_list<", tbd_cxx_open_initializer },
    { "function<", tbd_cxx_open_function },
    { "atomic<", tbd_cxx_open_atomic },
    { "stack<", tbd_cxx_open_adapter },
    { "queue<", tbd_cxx_open_adapter },
    { "priority_queue<", tbd_cxx_open_adapter },
    { "path", tbd_cxx_open_path },
    { "any", tbd_cxx_open_any },
};

static bool is_called(const char *name, const char *wanted)
{
    size_t length = strlen(wanted);

    return strncmp(name, wanted, length) == 0 &&
           (wanted[length - 1] == '<' || name[length] == '\0');
}

bool tbd_cxx_open(const struct tbd_place_of *place, const struct tbd_data *data,
                  struct tbd_cxx *out)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    const char *name = view.kind == TBD_TYPE_STRUCT ? tbd_die_name(&view.die) : NULL;

    memset(out, 0, sizeof(*out));
    if (name == NULL || !data->is_known)
        return false;
    out->name = name;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (is_called(name, kinds[i].name))
            return kinds[i].open(place, data, out) && out->count <= COUNT_MAX;
    }
    return tbd_cxx_open_iterator_named(place, data, out) && out->count <= COUNT_MAX;
}

/* ---- walks ---- */

static bool next_deque(const struct tbd_place_of *place, struct tbd_cxx *cxx, uint64_t bytes,
                       uint64_t *out)
{
    if (cxx->node == cxx->end) {
        cxx->extra[0] += 8;
        if (!tbd_cxx_read_word(place, cxx->extra[0], &cxx->node))
            return false;
        cxx->end = cxx->node + cxx->extra[1];
    }
    *out = cxx->node;
    cxx->node += bytes;
    return true;
}

/* The successor in a red-black tree: colour, parent, left, right. */
static bool next_tree(const struct tbd_place_of *place, struct tbd_cxx *cxx)
{
    uint64_t at = cxx->node, next, right;

    if (!tbd_cxx_read_word(place, at + 24, &next))
        return false;
    if (next != 0) {
        for (int i = 0; i < TREE_DEPTH_MAX && next != 0; i++) {
            at = next;
            if (!tbd_cxx_read_word(place, at + 16, &next))
                return false;
        }
        cxx->node = at;
        return next == 0;
    }
    for (int i = 0; i < TREE_DEPTH_MAX; i++) {
        uint64_t child = at;

        if (!tbd_cxx_read_word(place, at + 8, &at) || !tbd_cxx_read_word(place, at + 24, &right))
            return false;
        if (right != child) {
            cxx->node = at;
            return true;
        }
    }
    return false;
}

static bool next_address(const struct tbd_place_of *place, struct tbd_cxx *cxx, uint64_t *out)
{
    uint64_t bytes = tbd_type_look(&cxx->type).bytes;

    switch (cxx->walk) {
    case TBD_CXX_WALK_ARRAY: *out = cxx->node + cxx->index * bytes; return true;
    case TBD_CXX_WALK_DEQUE: return next_deque(place, cxx, bytes, out);
    case TBD_CXX_WALK_TREE:
        if (cxx->index != 0 && !next_tree(place, cxx))
            return false;
        *out = cxx->node + TBD_CXX_RB_NODE_BYTES;
        return true;
    default: break;
    }
    if (cxx->index != 0 && !tbd_cxx_read_word(place, cxx->node, &cxx->node))
        return false;
    *out = cxx->node +
           (cxx->walk == TBD_CXX_WALK_LIST ? TBD_CXX_LIST_NODE_BYTES : TBD_CXX_HASH_NODE_BYTES);
    return cxx->node != 0;
}

static bool next_bit(const struct tbd_place_of *place, struct tbd_cxx *cxx,
                     struct tbd_data *element)
{
    uint64_t word;

    if (!tbd_cxx_read_word(place, cxx->node + cxx->index / 64 * 8, &word))
        return false;
    tbd_data_number(word >> (cxx->index % 64) & 1, &cxx->type, element);
    cxx->index++;
    return true;
}

static bool next_set_bit(const struct tbd_place_of *place, struct tbd_cxx *cxx,
                         struct tbd_data *element)
{
    uint64_t word;

    for (uint64_t at = cxx->extra[0]; at < cxx->end; at++) {
        if (!tbd_cxx_read_word(place, cxx->node + at / 64 * 8, &word))
            return false;
        if ((word >> (at % 64) & 1) == 0)
            continue;
        cxx->number = at;
        cxx->extra[0] = at + 1;
        cxx->index++;
        tbd_data_number(1, &cxx->type, element);
        return true;
    }
    return false;
}

/* gdb counts a tuple's elements from 1.  An element without data is a base class itself. */
static bool next_of_tuple(const struct tbd_place_of *place, struct tbd_cxx *cxx,
                          struct tbd_data *element)
{
    struct tbd_data head;

    if ((cxx->index != 0 && !tbd_cxx_dig_base(place, &cxx->data, "_Tuple_impl<", &cxx->data)) ||
        !tbd_cxx_dig_base(place, &cxx->data, "_Head_base<", &head))
        return false;
    if (!tbd_cxx_dig(place, &head, "_M_head_impl", element))
        *element = head;
    cxx->number = ++cxx->index;
    return true;
}

bool tbd_cxx_next(const struct tbd_place_of *place, struct tbd_cxx *cxx, struct tbd_data *element,
                  struct tbd_data *second)
{
    struct tbd_data pair;
    uint64_t address;

    if (cxx->index >= cxx->count)
        return false;
    if (cxx->walk == TBD_CXX_WALK_BITS)
        return next_bit(place, cxx, element);
    if (cxx->walk == TBD_CXX_WALK_ONE) {
        *element = cxx->data;
        cxx->index++;
        return true;
    }
    if (cxx->walk == TBD_CXX_WALK_SET_BITS)
        return next_set_bit(place, cxx, element);
    if (cxx->walk == TBD_CXX_WALK_TUPLE)
        return next_of_tuple(place, cxx, element);
    if (!next_address(place, cxx, &address))
        return false;
    cxx->number = cxx->index++;
    TBD_INVARIANT("CXX_PRINT-1", cxx->index <= cxx->count);
    tbd_data_at(address, &cxx->type, element);
    if (cxx->kind != TBD_CXX_MAP)
        return true;
    pair = *element;
    return tbd_cxx_dig(place, &pair, "first", element) &&
           tbd_cxx_dig(place, &pair, "second", second);
}
