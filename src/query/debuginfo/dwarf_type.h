// SPDX-License-Identifier: MIT
/* dwarf_type.h - types of the program, as its debug information describes them
 *
 * A type is an entry of the debug information, or a type of C expressions (int, void), with levels
 * of pointers to it, which casts and & need.  Copies are free; entries are borrowed from the file.
 * Typedefs and qualifiers are looked through.  Everything is bounded: hostile types may refer to
 * themselves. */
#ifndef TBD_QUERY_DWARF_TYPE_H
#define TBD_QUERY_DWARF_TYPE_H

#include "query/debuginfo/dwarf_file.h"

#include <stdio.h>

struct tbd_type {
    Dwarf_Die die;       /* die.addr NULL: made here, see `encoding` */
    uint8_t encoding;    /* DW_ATE_*, 0: void */
    uint8_t bytes;       /* of a type made here */
    uint8_t pointers;    /* levels of pointers to it, made here */
    uint8_t dimensions;  /* of an array, indexed already */
    uint64_t count;      /* elements of an array whose function computed its length; 0: see `die` */
    uint32_t made_count; /* an array made here: its elements, of the type that all above says */
    uint8_t made_pointers; /* levels of pointers to that array */
};

enum tbd_type_kind {
    TBD_TYPE_VOID = 0,
    TBD_TYPE_INTEGER, /* also characters and booleans */
    TBD_TYPE_FLOAT,
    TBD_TYPE_ENUM,
    TBD_TYPE_POINTER,
    TBD_TYPE_REFERENCE,
    TBD_TYPE_STRUCT, /* also unions and classes */
    TBD_TYPE_ARRAY,
    TBD_TYPE_FUNCTION,
    TBD_TYPE_UNKNOWN,
};

struct tbd_type_view {
    enum tbd_type_kind kind;
    uint64_t bytes;   /* 0: not known */
    uint64_t count;   /* ARRAY: elements of the outermost dimension left; 0: not known */
    uint8_t encoding; /* INTEGER, FLOAT, ENUM: DW_ATE_* */
    bool is_signed;
    char wide; /* INTEGER: 'L', 'u' or 'U' before literals of such characters; 0: no wide ones */
    Dwarf_Die die; /* without typedefs and qualifiers; addr NULL for types made here */
};

struct tbd_type tbd_type_made(uint8_t encoding, uint8_t bytes);
/* The type that C calls `name` without any debug information: "unsigned long", "uint8_t". */
bool tbd_type_made_find(const char *name, struct tbd_type *out);
struct tbd_type tbd_type_from(const Dwarf_Die *die);
/* The type of a variable, member, function (its result): void if it says none. */
struct tbd_type tbd_type_of(const Dwarf_Die *die);
struct tbd_type_view tbd_type_look(const struct tbd_type *type);
/* The target of a pointer or reference; the element of an array. */
bool tbd_type_target(const struct tbd_type *type, struct tbd_type *out);
/* The number of bytes that adding 1 to a pointer of this type moves it; at least 1. */
uint64_t tbd_type_step(const struct tbd_type *pointer);
struct tbd_type tbd_type_pointer_to(const struct tbd_type *type);
/* `count` of them in a row; *type is no such array itself. */
struct tbd_type tbd_type_array_of(const struct tbd_type *type, uint32_t count);
/* As C writes it: "struct node *", "char [16]"; returns `out`. */
char *tbd_type_text(const struct tbd_type *type, char *out, size_t bytes);
/* "int, const char *, ...": the parameters of a function's entry, without those that the compiler adds.  False: there are none. */
bool tbd_type_print_parameters(const Dwarf_Die *function, FILE *out);

struct tbd_member {
    const char *name; /* NULL: anonymous */
    struct tbd_type type;
    uint64_t offset;     /* bytes from the struct's start */
    uint32_t bit_offset; /* from bit 0 of the byte at `offset` */
    uint32_t bits;       /* 0: no bit-field */
    bool is_base;        /* a base class */
    bool is_static;      /* not in the struct: `die` declares it */
    bool is_virtual;     /* of a virtual base class: each object knows its offset */
    Dwarf_Die die;
};
/* Members in order: start with *at = the struct's entry and first = true. */
bool tbd_type_next_member(const Dwarf_Die *of, bool first, Dwarf_Die *at, struct tbd_member *out);
/* Also in anonymous members and base classes; offsets are added up, and are worth nothing if
 * out->is_virtual (tbd_data_find_member() knows the object). */
bool tbd_type_find_member(const Dwarf_Die *of, const char *name, size_t bytes,
                          struct tbd_member *out);
/* The enumerator of this value; NULL if there is none. */
const char *tbd_type_enumerator(const Dwarf_Die *of, uint64_t value);

/* The definition of the declaration `of`; `of` itself if it is a definition or none is found. */
Dwarf_Die tbd_type_complete(struct tbd_dwarf *dwarf, const Dwarf_Die *of);
/* A type called `name` ("struct node", "node", "unsigned long"), first in `unit`. */
bool tbd_type_find(struct tbd_dwarf *dwarf, const Dwarf_Die *unit, const char *name,
                   struct tbd_type *out);

#endif
