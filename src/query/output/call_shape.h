// SPDX-License-Identifier: MIT
/* call_shape.h - what all calls of a function have in common: its parameters and its result, their types and where they are passed
 *
 * Debug information is read once for a function, and then again only where other modules may be mapped.  So rows of
 * many calls cost little.  Lives in its table; one thread. */
#ifndef TBD_QUERY_CALL_SHAPE_H
#define TBD_QUERY_CALL_SHAPE_H

#include "query/debuginfo/dwarf_passing.h"
#include "query/session/session.h"

/* A number in one general register, which no printer of a type needs to look at. */
enum tbd_plain {
    TBD_PLAIN_NONE = 0, /* it is none */
    TBD_PLAIN_SIGNED,
    TBD_PLAIN_UNSIGNED,
    TBD_PLAIN_POINTER,
};

struct tbd_call_value {
    struct tbd_type type;
    struct tbd_passing passing;
    enum tbd_plain plain;
    uint32_t bits; /* of a plain one */
};

struct tbd_call_parameter {
    const char *name; /* "?" if it has none */
    char *label;      /* owned: "name=", escaped as a field */
    struct tbd_call_value value;
};

struct tbd_call_shape {
    struct tbd_place_of place;
    bool has_function; /* false: no debug information here, and nothing else is set */
    bool has_result;   /* false: void */
    struct tbd_call_parameter *parameters; /* owned */
    size_t count, capacity;
    struct tbd_call_value result;
};

/* The window of a time, and what is mapped there (tbd_symbols_mapped()); kept for the next time, which is mostly in the same
 * one.  All zero at first. */
struct tbd_time_mapped {
    uint64_t from, to; /* times of the window */
    uint32_t window, mapped;
};
/* False if no window has this time. */
bool tbd_time_mapped_find(const struct tbd_session *session, uint64_t time,
                          struct tbd_time_mapped *inout);

struct tbd_call_shapes;

/* Borrows the session.  NULL without memory. */
struct tbd_call_shapes *tbd_call_shapes_new(struct tbd_session *session);
void tbd_call_shapes_free(struct tbd_call_shapes *shapes); /* NULL is fine */
struct tbd_session *tbd_call_shapes_session(const struct tbd_call_shapes *shapes);
/* The shape of the calls at `time` of the function that `pc` is in; borrowed until tbd_call_shapes_free().  NULL without
 * memory. */
struct tbd_call_shape *tbd_call_shapes_at(struct tbd_call_shapes *shapes, uint64_t time,
                                          uint64_t pc);

#endif
