// SPDX-License-Identifier: MIT
/* dwarf_print.h - values as text, in C's notation */
#ifndef TBD_QUERY_DWARF_PRINT_H
#define TBD_QUERY_DWARF_PRINT_H

#include "query/debuginfo/dwarf_location.h"

#include <stdio.h>

struct tbd_printer {
    const struct tbd_place_of *place;
    char format; /* 'x', 'd', 'u', 'o', 't', 'c'; 0: by type */
    /* The function at exactly `address` into `out`; may be NULL. */
    bool (*function)(void *context, uint64_t address, char *out, size_t bytes);
    /* "vtable for A+16": the symbol that `address` lies in; may be NULL. */
    bool (*symbol)(void *context, uint64_t address, char *out, size_t bytes);
    void *context;
};

/* One line without its end; "<optimized out: why>" where a value is not known. */
void tbd_data_print(const struct tbd_printer *printer, const struct tbd_data *data, FILE *out);

#endif
