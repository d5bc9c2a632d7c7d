// SPDX-License-Identifier: MIT
/* cxx_print.h - prints containers of the C++ standard library (libstdc++) by their elements
 *
 * A struct counts as a container if its name and its members fit: a struct with only the name is
 * printed as any other struct. */
#ifndef TBD_QUERY_CXX_PRINT_H
#define TBD_QUERY_CXX_PRINT_H

#include "query/debuginfo/dwarf_location.h"

enum tbd_cxx_kind {
    TBD_CXX_NONE = 0,
    TBD_CXX_STRING,   /* `data` and `count`: characters */
    TBD_CXX_WIDE,     /* the same, of `width` bytes each */
    TBD_CXX_NUMBERED, /* elements, each with `number`: tuples, bits that are set */
    TBD_CXX_SEQUENCE, /* elements */
    TBD_CXX_MAP,      /* elements are pairs: `element` and `second` */
    TBD_CXX_POINTER,  /* unique_ptr, shared_ptr: `element` is the pointer */
    TBD_CXX_OPTIONAL, /* one element, or none: optional, any, function */
    TBD_CXX_ATOMIC,   /* one element */
    TBD_CXX_ADAPTER,  /* one element, the container that a stack or a queue is made of */
    TBD_CXX_ITERATOR, /* one element: what it points to; none at the end, where that can be told */
};

/* A container being walked; everything in it came from the program and may be nonsense. */
struct tbd_cxx {
    enum tbd_cxx_kind kind;
    char
        title[160]; /* "std::vector of length 3, capacity 4"; before strings: "" or what they are */
    uint64_t count; /* elements, as the container claims */
    struct tbd_data data; /* STRING, WIDE: the first character */
    uint8_t width;        /* WIDE */
    bool is_numbered;     /* SEQUENCE: shown with each element's number, as gdb does */
    uint64_t number;      /* NUMBERED, SEQUENCE: of the last element */
    const char *name;     /* of the container's type; borrowed from the debug information */
    bool names_value;     /* OPTIONAL: `title` names what it holds */
    /* for the walk */
    int walk;
    bool is_indexed; /* an element is found without a walk: set `index` */
    uint64_t index, node, end, extra[4];
    struct tbd_type type;
};

/* Is this a container?  Then *out is ready to be walked. */
bool tbd_cxx_open(const struct tbd_place_of *place, const struct tbd_data *data,
                  struct tbd_cxx *out);
/* The next element; `second` is the value of a map's key.  False at the end, or when memory is not
 * as it should be. */
bool tbd_cxx_next(const struct tbd_place_of *place, struct tbd_cxx *cxx, struct tbd_data *element,
                  struct tbd_data *second);

/* ---- access by expressions (cxx_access.c) ---- */

/* The element `index` of a container with ordered elements; false if it is no such container, or is
 * shorter. */
bool tbd_cxx_element(const struct tbd_place_of *place, const struct tbd_data *data, uint64_t index,
                     struct tbd_data *out);
/* The pointer in a unique_ptr or shared_ptr. */
bool tbd_cxx_pointer(const struct tbd_place_of *place, const struct tbd_data *data,
                     struct tbd_data *out);
/* `*x` for an optional or an iterator; false if it is neither, or has no value. */
bool tbd_cxx_target(const struct tbd_place_of *place, const struct tbd_data *data,
                    struct tbd_data *out);
/* The value of a map's first key for which `is_key` is true; false if it is no map, or has none. */
bool tbd_cxx_find(const struct tbd_place_of *place, const struct tbd_data *data,
                  bool (*is_key)(void *context, const struct tbd_data *key), void *context,
                  struct tbd_data *out);
bool tbd_cxx_is_map(const struct tbd_place_of *place, const struct tbd_data *data);
/* The result of a member function without arguments: size, empty, front, back, data, c_str, get,
 * has_value, value, ...; false if it is none of these, or there is nothing to return. */
bool tbd_cxx_ask(const struct tbd_place_of *place, const struct tbd_data *data, const char *name,
                 struct tbd_data *out);

#endif
