// SPDX-License-Identifier: MIT
/* dwarf_print.h - values as text, in C's notation */
#ifndef TBD_QUERY_DWARF_PRINT_H
#define TBD_QUERY_DWARF_PRINT_H

#include "query/debuginfo/dwarf_location.h"

#include <stdio.h>

/* As gdb's `set print ...`. */
struct tbd_print_options {
    bool pretty;         /* a line for each member */
    bool object;         /* objects as what they are, not as what a pointer to them says */
    bool static_members; /* of structs */
};

struct tbd_printer {
    const struct tbd_place_of *place;
    struct tbd_print_options options;
    bool brief;  /* "<unknown>" in place of why something is not known */
    char format; /* 'x', 'd', 'u', 'o', 't', 'c'; 0: by type */
    /* The function at exactly `address` into `out`; may be NULL. */
    bool (*function)(void *context, uint64_t address, char *out, size_t bytes);
    /* "vtable for A+16": the symbol that `address` lies in; may be NULL. */
    bool (*symbol)(void *context, uint64_t address, char *out, size_t bytes);
    /* A type that the place's own module does not have; may be NULL. */
    bool (*type)(void *context, const char *name, struct tbd_type *out);
    void *context;
};

/* Is a value of such a type printed as nothing but its number, in decimal? */
bool tbd_print_is_number(const struct tbd_type_view *view);
/* How many numbers, texts and empty structs of a printed value are known. */
struct tbd_print_parts {
    uint32_t known, unknown;
};

/* One line without its end; "<optimized out: why>" where a value is not known. */
struct tbd_print_parts tbd_data_print(const struct tbd_printer *printer,
                                      const struct tbd_data *data, FILE *out);

#endif
