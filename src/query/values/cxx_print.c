// SPDX-License-Identifier: MIT
/* cxx_print.c - see cxx_print.h
 *
 * Titles are those of libstdc++'s own printers for gdb, so that both read the same.
 *
 * CXX_PRINT-1  A walk makes at most `count` steps; the printer has a further bound.
 * CXX_PRINT-2  Members are found by name and typed by the debug information, nodes by the layout
 *     that libstdc++'s ABI has fixed: a node's links, then its value. (not checked: layouts are the
 *     library's: test_source.py compares with gdb) */
#include "query/values/cxx_print.h"

#include "base/assert.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RB_NODE_BYTES   32u
#define LIST_NODE_BYTES 16u
#define HASH_NODE_BYTES 8u
#define TREE_DEPTH_MAX  128
#define COUNT_MAX       (1ull << 40)
#define PATH_BYTES      64
#define FORWARD_MAX     10000u /* nodes of a forward list, which does not know its length */
#define BITSET_MAX      (1u << 16)
#define TUPLE_MAX       64

enum walk_kind {
    WALK_ARRAY,
    WALK_BITS,
    WALK_DEQUE,
    WALK_LIST,
    WALK_TREE,
    WALK_HASH,
    WALK_ONE,
    WALK_SET_BITS,
    WALK_TUPLE
};

/* The member at "a.b.c", also in base classes. */
static bool dig(const struct tbd_place_of *place, const struct tbd_data *data, const char *path,
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

static bool dig_number(const struct tbd_place_of *place, const struct tbd_data *data,
                       const char *path, uint64_t *out)
{
    struct tbd_data found;

    return dig(place, data, path, &found) && tbd_data_scalar(place, &found, out);
}

/* The type argument `index` of a struct that is a template's instance. */
static bool type_argument(const struct tbd_place_of *place, const struct tbd_type *type,
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
static bool pointed_type(const struct tbd_place_of *place, const struct tbd_type *type,
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

static bool read_word(const struct tbd_place_of *place, uint64_t address, uint64_t *out)
{
    return place->memory != NULL &&
           place->memory->read(place->memory->context, address, out, sizeof(*out));
}

/* ---- one function for each kind of container ---- */

static bool open_string(const struct tbd_place_of *place, const struct tbd_data *data,
                        struct tbd_cxx *cxx)
{
    struct tbd_data first;
    struct tbd_type type;
    uint64_t address;

    if ((!dig(place, data, "_M_dataplus._M_p", &first) && !dig(place, data, "_M_str", &first)) ||
        (!dig_number(place, data, "_M_string_length", &cxx->count) &&
         !dig_number(place, data, "_M_len", &cxx->count)) ||
        !tbd_data_scalar(place, &first, &address) || !tbd_type_target(&first.type, &type))
        return false;
    cxx->width = (uint8_t)tbd_type_look(&type).bytes;
    if (cxx->width != 1 && cxx->width != 2 && cxx->width != 4)
        return false;
    tbd_data_at(address, &type, &cxx->data);
    cxx->kind = cxx->width == 1 ? TBD_CXX_STRING : TBD_CXX_WIDE;
    return true;
}

static bool open_path(const struct tbd_place_of *place, const struct tbd_data *data,
                      struct tbd_cxx *cxx)
{
    struct tbd_data text, parts;

    if (!dig(place, data, "_M_pathname", &text) || !dig(place, data, "_M_cmpts", &parts) ||
        !open_string(place, &text, cxx))
        return false;
    snprintf(cxx->title, sizeof(cxx->title), "filesystem::path ");
    return true;
}

static bool open_forward(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx)
{
    if (!dig_number(place, data, "_M_impl._M_head._M_next", &cxx->node) ||
        !type_argument(place, &data->type, 0, &cxx->type))
        return false;
    for (uint64_t node = cxx->node; node != 0 && cxx->count < FORWARD_MAX; cxx->count++) {
        if (!read_word(place, node, &node))
            return false;
    }
    cxx->walk = WALK_HASH;
    cxx->kind = TBD_CXX_NUMBERED;
    snprintf(cxx->title, sizeof(cxx->title), "%sstd::forward_list",
             cxx->count == 0 ? "empty " : "");
    return true;
}

/* Only bits that are set are elements. */
static bool open_bitset(const struct tbd_place_of *place, const struct tbd_data *data,
                        const char *name, struct tbd_cxx *cxx)
{
    struct tbd_data words;
    uint64_t word;

    cxx->end = strtoull(name + strlen("bitset<"), NULL, 10);
    if (!dig(place, data, "_M_w", &words) || !words.in_memory || cxx->end > BITSET_MAX)
        return false;
    cxx->node = words.address;
    for (uint64_t at = 0; at < cxx->end; at += 64) {
        if (!read_word(place, cxx->node + at / 8, &word))
            return false;
        cxx->count += (uint64_t)__builtin_popcountll(word);
    }
    cxx->walk = WALK_SET_BITS;
    cxx->kind = TBD_CXX_NUMBERED;
    cxx->type = tbd_type_made(DW_ATE_unsigned, 4);
    snprintf(cxx->title, sizeof(cxx->title), "std::bitset");
    return true;
}

static bool open_bits(const struct tbd_place_of *place, const struct tbd_data *data,
                      struct tbd_cxx *cxx)
{
    uint64_t last, offset, limit = 0;

    if (!dig_number(place, data, "_M_impl._M_start._M_p", &cxx->node) ||
        !dig_number(place, data, "_M_impl._M_finish._M_p", &last) ||
        !dig_number(place, data, "_M_impl._M_finish._M_offset", &offset) || last < cxx->node)
        return false;
    cxx->walk = WALK_BITS;
    cxx->is_indexed = true;
    cxx->count = (last - cxx->node) * 8 + offset;
    cxx->type = tbd_type_made(DW_ATE_boolean, 1);
    (void)dig_number(place, data, "_M_impl._M_end_of_storage", &limit);
    snprintf(cxx->title, sizeof(cxx->title),
             "std::vector<bool> of length %" PRIu64 ", capacity %" PRIu64, cxx->count,
             limit < cxx->node ? 0 : (limit - cxx->node) * 8);
    return true;
}

static bool open_vector(const struct tbd_place_of *place, const struct tbd_data *data,
                        struct tbd_cxx *cxx)
{
    struct tbd_data start;
    uint64_t last, limit, bytes;

    cxx->kind = TBD_CXX_SEQUENCE;
    if (dig(place, data, "_M_impl._M_start._M_p", &start))
        return open_bits(place, data, cxx);
    if (!dig(place, data, "_M_impl._M_start", &start) ||
        !tbd_data_scalar(place, &start, &cxx->node) || !tbd_type_target(&start.type, &cxx->type) ||
        !dig_number(place, data, "_M_impl._M_finish", &last) ||
        !dig_number(place, data, "_M_impl._M_end_of_storage", &limit))
        return false;
    bytes = tbd_type_look(&cxx->type).bytes;
    if (bytes == 0 || last < cxx->node || limit < last)
        return false;
    cxx->walk = WALK_ARRAY;
    cxx->is_indexed = true;
    cxx->count = (last - cxx->node) / bytes;
    snprintf(cxx->title, sizeof(cxx->title), "std::vector of length %" PRIu64 ", capacity %" PRIu64,
             cxx->count, (limit - cxx->node) / bytes);
    return true;
}

static bool open_deque(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_cxx *cxx)
{
    struct tbd_data current;
    uint64_t bytes, last_first, last_node, last_current, buffer;

    if (!dig(place, data, "_M_impl._M_start._M_cur", &current) ||
        !tbd_data_scalar(place, &current, &cxx->node) ||
        !tbd_type_target(&current.type, &cxx->type) ||
        !dig_number(place, data, "_M_impl._M_start._M_last", &cxx->end) ||
        !dig_number(place, data, "_M_impl._M_start._M_node", &cxx->extra[0]) ||
        !dig_number(place, data, "_M_impl._M_finish._M_cur", &last_current) ||
        !dig_number(place, data, "_M_impl._M_finish._M_first", &last_first) ||
        !dig_number(place, data, "_M_impl._M_finish._M_node", &last_node))
        return false;
    bytes = tbd_type_look(&cxx->type).bytes;
    if (bytes == 0 || last_node < cxx->extra[0] || cxx->end < cxx->node ||
        last_current < last_first)
        return false;
    buffer = bytes < 512 ? 512 / bytes : 1;
    cxx->extra[1] = buffer * bytes;
    cxx->count = last_node == cxx->extra[0] ? (last_current - cxx->node) / bytes
                                            : (cxx->end - cxx->node) / bytes +
                                                  ((last_node - cxx->extra[0]) / 8 - 1) * buffer +
                                                  (last_current - last_first) / bytes;
    cxx->walk = WALK_DEQUE;
    cxx->kind = TBD_CXX_SEQUENCE;
    snprintf(cxx->title, sizeof(cxx->title), "std::deque with %" PRIu64 " element%s", cxx->count,
             cxx->count == 1 ? "" : "s");
    return true;
}

static bool open_list(const struct tbd_place_of *place, const struct tbd_data *data,
                      struct tbd_cxx *cxx)
{
    struct tbd_data head;

    if (!dig(place, data, "_M_impl._M_node", &head) || !head.in_memory ||
        !dig_number(place, data, "_M_impl._M_node._M_size", &cxx->count) ||
        !type_argument(place, &data->type, 0, &cxx->type) ||
        !read_word(place, head.address, &cxx->node))
        return false;
    cxx->walk = WALK_LIST;
    cxx->kind = TBD_CXX_SEQUENCE;
    snprintf(cxx->title, sizeof(cxx->title), "std::__cxx11::list");
    return true;
}

/* "std::map with 3 elements" */
static void title_by_name(struct tbd_cxx *cxx, const char *name)
{
    int length = (int)strcspn(name, "<");

    snprintf(cxx->title, sizeof(cxx->title), "std::%.*s with %" PRIu64 " element%s",
             length > 60 ? 60 : length, name, cxx->count, cxx->count == 1 ? "" : "s");
}

static bool open_tree(const struct tbd_place_of *place, const struct tbd_data *data,
                      const char *name, struct tbd_cxx *cxx)
{
    struct tbd_data tree;

    if (!dig(place, data, "_M_t", &tree) ||
        !dig_number(place, &tree, "_M_impl._M_node_count", &cxx->count) ||
        !dig_number(place, &tree, "_M_impl._M_header._M_left", &cxx->node) ||
        !type_argument(place, &tree.type, 1, &cxx->type))
        return false;
    cxx->walk = WALK_TREE;
    cxx->kind = strstr(name, "map<") != NULL ? TBD_CXX_MAP : TBD_CXX_SEQUENCE;
    title_by_name(cxx, name);
    return true;
}

static bool open_hash(const struct tbd_place_of *place, const struct tbd_data *data,
                      const char *name, struct tbd_cxx *cxx)
{
    struct tbd_data table;

    if (!dig(place, data, "_M_h", &table) ||
        !dig_number(place, &table, "_M_element_count", &cxx->count) ||
        !dig_number(place, &table, "_M_before_begin._M_nxt", &cxx->node) ||
        !type_argument(place, &table.type, 1, &cxx->type))
        return false;
    cxx->walk = WALK_HASH;
    cxx->kind = strstr(name, "map<") != NULL ? TBD_CXX_MAP : TBD_CXX_SEQUENCE;
    title_by_name(cxx, name);
    return true;
}

/* gdb's name for the type that a pointer or an optional holds: `std::optional<int>`. */
static void title_by_argument(const struct tbd_place_of *place, const struct tbd_data *data,
                              const char *name, struct tbd_cxx *cxx)
{
    struct tbd_type type;
    char text[96] = "?";
    const char *word = text;

    if (type_argument(place, &data->type, 0, &type))
        (void)tbd_type_text(&type, text, sizeof(text));
    for (size_t i = 0; i < 2; i++) {
        word += strncmp(word, "struct ", 7) == 0 ? 7 : 0;
        word += strncmp(word, "class ", 6) == 0 ? 6 : 0;
    }
    snprintf(cxx->title, sizeof(cxx->title), "std::%.*s<%s>", (int)strcspn(name, "<"), name, word);
}

/* The base class with this prefix: several base classes have members of the same name. */
static bool dig_base(const struct tbd_place_of *place, const struct tbd_data *data,
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

/* Each part of a tuple has the next one and an element as base classes. */
static bool open_tuple(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_cxx *cxx)
{
    struct tbd_data part, head;

    cxx->walk = WALK_TUPLE;
    cxx->kind = TBD_CXX_NUMBERED;
    if (dig_base(place, data, "_Tuple_impl<0", &cxx->data)) {
        part = cxx->data;
        while (cxx->count < TUPLE_MAX && dig_base(place, &part, "_Head_base<", &head)) {
            cxx->count++;
            if (!dig_base(place, &part, "_Tuple_impl<", &part))
                break;
        }
    }
    snprintf(cxx->title, sizeof(cxx->title),
             cxx->count == 0 ? "empty std::tuple" : "std::tuple containing");
    return true;
}

/* Alternatives are nested: the first, and the rest. */
static bool open_variant(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx)
{
    struct tbd_type type;
    uint64_t index;
    size_t used;

    if (!dig_number(place, data, "_M_index", &index) || !dig(place, data, "_M_u", &cxx->data))
        return false;
    snprintf(cxx->title, sizeof(cxx->title), "std::variant");
    used = strlen(cxx->title);
    cxx->walk = WALK_ONE;
    cxx->kind = TBD_CXX_SEQUENCE;
    if (index >= 0xff) {
        snprintf(cxx->title + used, sizeof(cxx->title) - used, " [no contained value]");
        return true;
    }
    snprintf(cxx->title + used, sizeof(cxx->title) - used, " [index %" PRIu64 "]", index);
    cxx->count = 1;
    for (; index > 0; index--) {
        if (!dig(place, &cxx->data, "_M_rest", &cxx->data))
            return false;
    }
    /* A value with a destructor lies in raw bytes: its type is only the template's argument. */
    if (!dig(place, &cxx->data, "_M_first", &cxx->data) ||
        !type_argument(place, &cxx->data.type, 0, &type))
        return false;
    tbd_data_part(&cxx->data, 0, &type, &cxx->data);
    return true;
}

/* Is this the header of a red-black tree, where end() points?  It is red, and the root's parent. */
static bool is_tree_end(const struct tbd_place_of *place, uint64_t node)
{
    uint64_t colour, parent, back;

    return read_word(place, node, &colour) && (uint32_t)colour == 0 &&
           read_word(place, node + 8, &parent) &&
           (parent == 0 || (read_word(place, parent + 8, &back) && back == node));
}

/* An iterator: the member that points, to a node with `bytes` of links before the value or to the value. */
static bool open_iterator(const struct tbd_place_of *place, const struct tbd_data *data,
                          const char *member, uint64_t bytes, const char *what, struct tbd_cxx *cxx)
{
    struct tbd_data pointer;

    cxx->walk = WALK_ONE;
    cxx->kind = TBD_CXX_ITERATOR;
    if (!dig(place, data, member, &pointer) || !tbd_data_scalar(place, &pointer, &cxx->node) ||
        !(bytes == 0 ? tbd_type_target(&pointer.type, &cxx->type)
                     : type_argument(place, &data->type, 0, &cxx->type) ||
                           pointed_type(place, &data->type, &cxx->type)))
        return false;
    snprintf(cxx->title, sizeof(cxx->title), "non-dereferenceable iterator for %s", what);
    cxx->count = cxx->node != 0 && (bytes != RB_NODE_BYTES || !is_tree_end(place, cxx->node));
    tbd_data_at(cxx->node + bytes, &cxx->type, &cxx->data);
    return true;
}

static bool open_iterator_named(const struct tbd_place_of *place, const struct tbd_data *data,
                                const char *name, struct tbd_cxx *cxx)
{
    static const struct {
        const char *name, *member;
        uint64_t bytes;
        const char *what;
    } rows[] = {
        { "__normal_iterator<", "_M_current", 0, "std::vector" },
        { "_Deque_iterator<", "_M_cur", 0, "std::deque" },
        { "_List_iterator<", "_M_node", LIST_NODE_BYTES, "std::list" },
        { "_List_const_iterator<", "_M_node", LIST_NODE_BYTES, "std::list" },
        { "_Rb_tree_iterator<", "_M_node", RB_NODE_BYTES, "associative container" },
        { "_Rb_tree_const_iterator<", "_M_node", RB_NODE_BYTES, "associative container" },
        { "_Node_iterator<", "_M_cur", HASH_NODE_BYTES, "unordered container" },
        { "_Node_const_iterator<", "_M_cur", HASH_NODE_BYTES, "unordered container" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strncmp(name, rows[i].name, strlen(rows[i].name)) == 0)
            return open_iterator(place, data, rows[i].member, rows[i].bytes, rows[i].what, cxx);
    }
    return false;
}

static bool open_unique(const struct tbd_place_of *place, const struct tbd_data *data,
                        const char *name, struct tbd_cxx *cxx)
{
    cxx->walk = WALK_ONE;
    cxx->kind = TBD_CXX_POINTER;
    cxx->count = 1;
    title_by_argument(place, data, name, cxx);
    return dig(place, data, "_M_t._M_t", &cxx->data) &&
           dig_base(place, &cxx->data, "_Tuple_impl<0", &cxx->data) &&
           dig_base(place, &cxx->data, "_Head_base<0", &cxx->data) &&
           dig(place, &cxx->data, "_M_head_impl", &cxx->data) &&
           tbd_type_look(&cxx->data.type).kind == TBD_TYPE_POINTER;
}

static bool open_shared(const struct tbd_place_of *place, const struct tbd_data *data,
                        const char *name, struct tbd_cxx *cxx)
{
    uint64_t control, uses = 0, weak = 0, counts = 0;
    size_t used;

    cxx->walk = WALK_ONE;
    cxx->kind = TBD_CXX_POINTER;
    cxx->count = 1;
    title_by_argument(place, data, name, cxx);
    used = strlen(cxx->title);
    if (!dig(place, data, "_M_ptr", &cxx->data) ||
        !dig_number(place, data, "_M_refcount._M_pi", &control))
        return false;
    if (control == 0) {
        snprintf(cxx->title + used, sizeof(cxx->title) - used, " (empty)");
    } else if (read_word(place, control + 8, &counts)) {
        uses = (uint32_t)counts;
        weak = counts >> 32;
        weak -= uses != 0 && weak != 0;
        snprintf(cxx->title + used, sizeof(cxx->title) - used,
                 " (use count %" PRIu64 ", weak count %" PRIu64 ")", uses, weak);
    }
    return true;
}

static bool open_optional(const struct tbd_place_of *place, const struct tbd_data *data,
                          const char *name, struct tbd_cxx *cxx)
{
    cxx->walk = WALK_ONE;
    cxx->kind = TBD_CXX_OPTIONAL;
    title_by_argument(place, data, name, cxx);
    return dig_number(place, data, "_M_payload._M_engaged", &cxx->count) &&
           dig(place, data, "_M_payload._M_payload._M_value", &cxx->data);
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool open_named(const struct tbd_place_of *place, const struct tbd_data *data,
                       const char *name, struct tbd_cxx *cxx)
{
    if (starts_with(name, "basic_string<") || starts_with(name, "basic_string_view<"))
        return open_string(place, data, cxx);
    if (starts_with(name, "vector<"))
        return open_vector(place, data, cxx);
    if (starts_with(name, "deque<"))
        return open_deque(place, data, cxx);
    if (starts_with(name, "list<"))
        return open_list(place, data, cxx);
    if (starts_with(name, "map<") || starts_with(name, "set<") || starts_with(name, "multimap<") ||
        starts_with(name, "multiset<"))
        return open_tree(place, data, name, cxx);
    if (starts_with(name, "unordered_"))
        return open_hash(place, data, name, cxx);
    if (starts_with(name, "unique_ptr<"))
        return open_unique(place, data, name, cxx);
    if (starts_with(name, "shared_ptr<") || starts_with(name, "weak_ptr<"))
        return open_shared(place, data, name, cxx);
    if (starts_with(name, "variant<"))
        return open_variant(place, data, cxx);
    if (starts_with(name, "optional<"))
        return open_optional(place, data, name, cxx);
    if (starts_with(name, "tuple<"))
        return open_tuple(place, data, cxx);
    if (starts_with(name, "forward_list<"))
        return open_forward(place, data, cxx);
    if (starts_with(name, "bitset<"))
        return open_bitset(place, data, name, cxx);
    return open_iterator_named(place, data, name, cxx);
}

bool tbd_cxx_open(const struct tbd_place_of *place, const struct tbd_data *data,
                  struct tbd_cxx *out)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    const char *name = view.kind == TBD_TYPE_STRUCT ? tbd_die_name(&view.die) : NULL;

    memset(out, 0, sizeof(*out));
    if (name != NULL && data->is_known && strcmp(name, "path") == 0)
        return open_path(place, data, out) && out->count <= COUNT_MAX;
    return name != NULL && data->is_known && strchr(name, '<') != NULL &&
           open_named(place, data, name, out) && out->count <= COUNT_MAX;
}

/* ---- walks ---- */

static bool next_deque(const struct tbd_place_of *place, struct tbd_cxx *cxx, uint64_t bytes,
                       uint64_t *out)
{
    if (cxx->node == cxx->end) {
        cxx->extra[0] += 8;
        if (!read_word(place, cxx->extra[0], &cxx->node))
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

    if (!read_word(place, at + 24, &next))
        return false;
    if (next != 0) {
        for (int i = 0; i < TREE_DEPTH_MAX && next != 0; i++) {
            at = next;
            if (!read_word(place, at + 16, &next))
                return false;
        }
        cxx->node = at;
        return next == 0;
    }
    for (int i = 0; i < TREE_DEPTH_MAX; i++) {
        uint64_t child = at;

        if (!read_word(place, at + 8, &at) || !read_word(place, at + 24, &right))
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
    case WALK_ARRAY: *out = cxx->node + cxx->index * bytes; return true;
    case WALK_DEQUE: return next_deque(place, cxx, bytes, out);
    case WALK_TREE:
        if (cxx->index != 0 && !next_tree(place, cxx))
            return false;
        *out = cxx->node + RB_NODE_BYTES;
        return true;
    default: break;
    }
    if (cxx->index != 0 && !read_word(place, cxx->node, &cxx->node))
        return false;
    *out = cxx->node + (cxx->walk == WALK_LIST ? LIST_NODE_BYTES : HASH_NODE_BYTES);
    return cxx->node != 0;
}

static bool next_bit(const struct tbd_place_of *place, struct tbd_cxx *cxx,
                     struct tbd_data *element)
{
    uint64_t word;

    if (!read_word(place, cxx->node + cxx->index / 64 * 8, &word))
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
        if (!read_word(place, cxx->node + at / 64 * 8, &word))
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

    if ((cxx->index != 0 && !dig_base(place, &cxx->data, "_Tuple_impl<", &cxx->data)) ||
        !dig_base(place, &cxx->data, "_Head_base<", &head))
        return false;
    if (!dig(place, &head, "_M_head_impl", element))
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
    if (cxx->walk == WALK_BITS)
        return next_bit(place, cxx, element);
    if (cxx->walk == WALK_ONE) {
        *element = cxx->data;
        cxx->index++;
        return true;
    }
    if (cxx->walk == WALK_SET_BITS)
        return next_set_bit(place, cxx, element);
    if (cxx->walk == WALK_TUPLE)
        return next_of_tuple(place, cxx, element);
    if (!next_address(place, cxx, &address))
        return false;
    cxx->number = cxx->index++;
    TBD_INVARIANT("CXX_PRINT-1", cxx->index <= cxx->count);
    tbd_data_at(address, &cxx->type, element);
    if (cxx->kind != TBD_CXX_MAP)
        return true;
    pair = *element;
    return dig(place, &pair, "first", element) && dig(place, &pair, "second", second);
}
