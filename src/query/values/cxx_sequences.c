// SPDX-License-Identifier: MIT
/* cxx_sequences.c - strings, sequences, sets and maps of the C++ library (cxx_private.h) */
#include "query/values/cxx_private.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORWARD_MAX 10000u /* nodes of a forward list, which does not know its length */
#define BITSET_MAX  (1u << 16)

bool tbd_cxx_open_string(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx)
{
    struct tbd_data first;
    struct tbd_type type;
    uint64_t address;

    if ((!tbd_cxx_dig(place, data, "_M_dataplus._M_p", &first) &&
         !tbd_cxx_dig(place, data, "_M_str", &first)) ||
        (!tbd_cxx_dig_number(place, data, "_M_string_length", &cxx->count) &&
         !tbd_cxx_dig_number(place, data, "_M_len", &cxx->count)) ||
        !tbd_data_scalar(place, &first, &address) || !tbd_type_target(&first.type, &type))
        return false;
    cxx->width = (uint8_t)tbd_type_look(&type).bytes;
    if (cxx->width != 1 && cxx->width != 2 && cxx->width != 4)
        return false;
    tbd_data_at(address, &type, &cxx->data);
    cxx->kind = cxx->width == 1 ? TBD_CXX_STRING : TBD_CXX_WIDE;
    return true;
}

bool tbd_cxx_open_path(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_cxx *cxx)
{
    struct tbd_data text, parts;

    if (!tbd_cxx_dig(place, data, "_M_pathname", &text) ||
        !tbd_cxx_dig(place, data, "_M_cmpts", &parts) || !tbd_cxx_open_string(place, &text, cxx))
        return false;
    snprintf(cxx->title, sizeof(cxx->title), "filesystem::path ");
    return true;
}

bool tbd_cxx_open_forward(const struct tbd_place_of *place, const struct tbd_data *data,
                          struct tbd_cxx *cxx)
{
    if (!tbd_cxx_dig_number(place, data, "_M_impl._M_head._M_next", &cxx->node) ||
        !tbd_cxx_type_argument(place, &data->type, 0, &cxx->type))
        return false;
    for (uint64_t node = cxx->node; node != 0 && cxx->count < FORWARD_MAX; cxx->count++) {
        if (!tbd_cxx_read_word(place, node, &node))
            return false;
    }
    cxx->walk = TBD_CXX_WALK_HASH;
    cxx->kind = TBD_CXX_SEQUENCE;
    cxx->is_numbered = true;
    snprintf(cxx->title, sizeof(cxx->title), "%sstd::forward_list",
             cxx->count == 0 ? "empty " : "");
    return true;
}

/* Only bits that are set are elements. */
bool tbd_cxx_open_bitset(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx)
{
    struct tbd_data words;
    uint64_t word;

    cxx->end = strtoull(cxx->name + strlen("bitset<"), NULL, 10);
    if (!tbd_cxx_dig(place, data, "_M_w", &words) || !words.in_memory || cxx->end > BITSET_MAX)
        return false;
    cxx->node = words.address;
    for (uint64_t at = 0; at < cxx->end; at += 64) {
        if (!tbd_cxx_read_word(place, cxx->node + at / 8, &word))
            return false;
        cxx->count += (uint64_t)__builtin_popcountll(word);
    }
    cxx->walk = TBD_CXX_WALK_SET_BITS;
    cxx->kind = TBD_CXX_NUMBERED;
    cxx->type = tbd_type_made(DW_ATE_unsigned, 4);
    snprintf(cxx->title, sizeof(cxx->title), "std::bitset");
    return true;
}

static bool open_bits(const struct tbd_place_of *place, const struct tbd_data *data,
                      struct tbd_cxx *cxx)
{
    uint64_t last, offset, limit = 0;

    if (!tbd_cxx_dig_number(place, data, "_M_impl._M_start._M_p", &cxx->node) ||
        !tbd_cxx_dig_number(place, data, "_M_impl._M_finish._M_p", &last) ||
        !tbd_cxx_dig_number(place, data, "_M_impl._M_finish._M_offset", &offset) ||
        last < cxx->node)
        return false;
    cxx->walk = TBD_CXX_WALK_BITS;
    cxx->is_indexed = true;
    cxx->count = (last - cxx->node) * 8 + offset;
    cxx->type = tbd_type_made(DW_ATE_boolean, 1);
    (void)tbd_cxx_dig_number(place, data, "_M_impl._M_end_of_storage", &limit);
    snprintf(cxx->title, sizeof(cxx->title),
             "std::vector<bool> of length %" PRIu64 ", capacity %" PRIu64, cxx->count,
             limit < cxx->node ? 0 : (limit - cxx->node) * 8);
    return true;
}

bool tbd_cxx_open_vector(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx)
{
    struct tbd_data start;
    uint64_t last, limit, bytes;

    cxx->kind = TBD_CXX_SEQUENCE;
    if (tbd_cxx_dig(place, data, "_M_impl._M_start._M_p", &start))
        return open_bits(place, data, cxx);
    if (!tbd_cxx_dig(place, data, "_M_impl._M_start", &start) ||
        !tbd_data_scalar(place, &start, &cxx->node) || !tbd_type_target(&start.type, &cxx->type) ||
        !tbd_cxx_dig_number(place, data, "_M_impl._M_finish", &last) ||
        !tbd_cxx_dig_number(place, data, "_M_impl._M_end_of_storage", &limit))
        return false;
    bytes = tbd_type_look(&cxx->type).bytes;
    if (bytes == 0 || last < cxx->node || limit < last)
        return false;
    cxx->walk = TBD_CXX_WALK_ARRAY;
    cxx->is_indexed = true;
    cxx->count = (last - cxx->node) / bytes;
    snprintf(cxx->title, sizeof(cxx->title), "std::vector of length %" PRIu64 ", capacity %" PRIu64,
             cxx->count, (limit - cxx->node) / bytes);
    return true;
}

bool tbd_cxx_open_deque(const struct tbd_place_of *place, const struct tbd_data *data,
                        struct tbd_cxx *cxx)
{
    struct tbd_data current;
    uint64_t bytes, last_first, last_node, last_current, buffer;

    if (!tbd_cxx_dig(place, data, "_M_impl._M_start._M_cur", &current) ||
        !tbd_data_scalar(place, &current, &cxx->node) ||
        !tbd_type_target(&current.type, &cxx->type) ||
        !tbd_cxx_dig_number(place, data, "_M_impl._M_start._M_last", &cxx->end) ||
        !tbd_cxx_dig_number(place, data, "_M_impl._M_start._M_node", &cxx->extra[0]) ||
        !tbd_cxx_dig_number(place, data, "_M_impl._M_finish._M_cur", &last_current) ||
        !tbd_cxx_dig_number(place, data, "_M_impl._M_finish._M_first", &last_first) ||
        !tbd_cxx_dig_number(place, data, "_M_impl._M_finish._M_node", &last_node))
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
    cxx->walk = TBD_CXX_WALK_DEQUE;
    cxx->kind = TBD_CXX_SEQUENCE;
    snprintf(cxx->title, sizeof(cxx->title), "std::deque with %" PRIu64 " element%s", cxx->count,
             cxx->count == 1 ? "" : "s");
    return true;
}

bool tbd_cxx_open_list(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_cxx *cxx)
{
    struct tbd_data head;

    if (!tbd_cxx_dig(place, data, "_M_impl._M_node", &head) || !head.in_memory ||
        !tbd_cxx_dig_number(place, data, "_M_impl._M_node._M_size", &cxx->count) ||
        !tbd_cxx_type_argument(place, &data->type, 0, &cxx->type) ||
        !tbd_cxx_read_word(place, head.address, &cxx->node))
        return false;
    cxx->walk = TBD_CXX_WALK_LIST;
    cxx->kind = TBD_CXX_SEQUENCE;
    cxx->is_numbered = true;
    snprintf(cxx->title, sizeof(cxx->title), "%sstd::__cxx11::list",
             cxx->count == 0 ? "empty " : "");
    return true;
}

/* "std::map with 3 elements" */
static void title_by_name(struct tbd_cxx *cxx)
{
    int length = (int)strcspn(cxx->name, "<");

    snprintf(cxx->title, sizeof(cxx->title), "std::%.*s with %" PRIu64 " element%s",
             length > 60 ? 60 : length, cxx->name, cxx->count, cxx->count == 1 ? "" : "s");
}

bool tbd_cxx_open_tree(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_cxx *cxx)
{
    struct tbd_data tree;

    if (!tbd_cxx_dig(place, data, "_M_t", &tree) ||
        !tbd_cxx_dig_number(place, &tree, "_M_impl._M_node_count", &cxx->count) ||
        !tbd_cxx_dig_number(place, &tree, "_M_impl._M_header._M_left", &cxx->node) ||
        !tbd_cxx_type_argument(place, &tree.type, 1, &cxx->type))
        return false;
    cxx->walk = TBD_CXX_WALK_TREE;
    cxx->kind = strstr(cxx->name, "map<") != NULL ? TBD_CXX_MAP : TBD_CXX_SEQUENCE;
    cxx->is_numbered = cxx->kind == TBD_CXX_SEQUENCE;
    title_by_name(cxx);
    return true;
}

bool tbd_cxx_open_hash(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_cxx *cxx)
{
    struct tbd_data table;

    if (!tbd_cxx_dig(place, data, "_M_h", &table) ||
        !tbd_cxx_dig_number(place, &table, "_M_element_count", &cxx->count) ||
        !tbd_cxx_dig_number(place, &table, "_M_before_begin._M_nxt", &cxx->node) ||
        !tbd_cxx_type_argument(place, &table.type, 1, &cxx->type))
        return false;
    cxx->walk = TBD_CXX_WALK_HASH;
    cxx->kind = strstr(cxx->name, "map<") != NULL ? TBD_CXX_MAP : TBD_CXX_SEQUENCE;
    cxx->is_numbered = cxx->kind == TBD_CXX_SEQUENCE;
    title_by_name(cxx);
    return true;
}

bool tbd_cxx_open_initializer(const struct tbd_place_of *place, const struct tbd_data *data,
                              struct tbd_cxx *cxx)
{
    struct tbd_data first;

    if (!tbd_cxx_dig(place, data, "_M_array", &first) ||
        !tbd_cxx_dig_number(place, data, "_M_len", &cxx->count) ||
        !tbd_data_scalar(place, &first, &cxx->node) || !tbd_type_target(&first.type, &cxx->type))
        return false;
    cxx->walk = TBD_CXX_WALK_ARRAY;
    cxx->kind = TBD_CXX_SEQUENCE;
    cxx->is_indexed = true;
    snprintf(cxx->title, sizeof(cxx->title), "std::initializer_list of length %" PRIu64,
             cxx->count);
    return true;
}
