// SPDX-License-Identifier: MIT
/* cxx_private.h - what the files that open containers share (cxx_print.h)
 *
 * cxx_dig.c finds members, cxx_sequences.c and cxx_holders.c open one kind of container each,
 * cxx_print.c knows their names and walks through their elements. */
#ifndef TBD_QUERY_CXX_PRIVATE_H
#define TBD_QUERY_CXX_PRIVATE_H

#include "query/values/cxx_print.h"

#define TBD_CXX_RB_NODE_BYTES   32u
#define TBD_CXX_LIST_NODE_BYTES 16u
#define TBD_CXX_HASH_NODE_BYTES 8u
#define TBD_CXX_TEXT_BYTES      256u /* of a type */

/* How to come from an element to the next one. */
enum tbd_cxx_walk {
    TBD_CXX_WALK_ARRAY,
    TBD_CXX_WALK_BITS,
    TBD_CXX_WALK_DEQUE,
    TBD_CXX_WALK_LIST,
    TBD_CXX_WALK_TREE,
    TBD_CXX_WALK_HASH,
    TBD_CXX_WALK_ONE,
    TBD_CXX_WALK_SET_BITS,
    TBD_CXX_WALK_TUPLE,
};

/* The member at "a.b.c", also in base classes. */
bool tbd_cxx_dig(const struct tbd_place_of *place, const struct tbd_data *data, const char *path,
                 struct tbd_data *out);
bool tbd_cxx_dig_number(const struct tbd_place_of *place, const struct tbd_data *data,
                        const char *path, uint64_t *out);
/* The type argument `index` of a struct that is a template's instance. */
bool tbd_cxx_type_argument(const struct tbd_place_of *place, const struct tbd_type *type,
                           unsigned index, struct tbd_type *out);
/* The target type from the typedefs of an iterator's struct. */
bool tbd_cxx_pointed_type(const struct tbd_place_of *place, const struct tbd_type *type,
                          struct tbd_type *out);
bool tbd_cxx_read_word(const struct tbd_place_of *place, uint64_t address, uint64_t *out);
/* The base class with this prefix: several have members of the same name. */
bool tbd_cxx_dig_base(const struct tbd_place_of *place, const struct tbd_data *data,
                      const char *prefix, struct tbd_data *out);

/* "std::string" and "std::vector<int>": without the template arguments that have defaults. */
char *tbd_cxx_type_text(const struct tbd_type *type, char *out, size_t bytes);

/* Does the struct fit?  Then *cxx is ready to be walked. */
bool tbd_cxx_open_string(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx);
bool tbd_cxx_open_path(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_cxx *cxx);
bool tbd_cxx_open_forward(const struct tbd_place_of *place, const struct tbd_data *data,
                          struct tbd_cxx *cxx);
bool tbd_cxx_open_bitset(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx);
bool tbd_cxx_open_vector(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx);
bool tbd_cxx_open_deque(const struct tbd_place_of *place, const struct tbd_data *data,
                        struct tbd_cxx *cxx);
bool tbd_cxx_open_list(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_cxx *cxx);
bool tbd_cxx_open_tree(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_cxx *cxx);
bool tbd_cxx_open_hash(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_cxx *cxx);
bool tbd_cxx_open_tuple(const struct tbd_place_of *place, const struct tbd_data *data,
                        struct tbd_cxx *cxx);
bool tbd_cxx_open_variant(const struct tbd_place_of *place, const struct tbd_data *data,
                          struct tbd_cxx *cxx);
bool tbd_cxx_open_iterator_named(const struct tbd_place_of *place, const struct tbd_data *data,
                                 struct tbd_cxx *cxx);
bool tbd_cxx_open_unique(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx);
bool tbd_cxx_open_shared(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx);
bool tbd_cxx_open_optional(const struct tbd_place_of *place, const struct tbd_data *data,
                           struct tbd_cxx *cxx);

bool tbd_cxx_open_initializer(const struct tbd_place_of *place, const struct tbd_data *data,
                              struct tbd_cxx *cxx);
bool tbd_cxx_open_any(const struct tbd_place_of *place, const struct tbd_data *data,
                      struct tbd_cxx *cxx);
bool tbd_cxx_open_function(const struct tbd_place_of *place, const struct tbd_data *data,
                           struct tbd_cxx *cxx);
bool tbd_cxx_open_atomic(const struct tbd_place_of *place, const struct tbd_data *data,
                         struct tbd_cxx *cxx);
bool tbd_cxx_open_adapter(const struct tbd_place_of *place, const struct tbd_data *data,
                          struct tbd_cxx *cxx);

#endif
