// SPDX-License-Identifier: MIT
/* print_private.h - what the files that print values share (dwarf_print.h)
 *
 * dwarf_print.c prints a value by its kind, print_scalar.c numbers and characters, print_wide.c
 * wide ones, print_struct.c structs and arrays, print_container.c what cxx_print.h knows. */
#ifndef TBD_QUERY_PRINT_PRIVATE_H
#define TBD_QUERY_PRINT_PRIVATE_H

#include "query/values/dwarf_print.h"

#define TBD_PRINT_NESTING_MAX  12
#define TBD_PRINT_ELEMENTS_MAX 200u
#define TBD_PRINT_ARRAY_BYTES  65536u /* gdb's max-value-size */
#define TBD_PRINT_SEEN_MAX     32

/* One value being printed. */
struct tbd_print {
    const struct tbd_printer *printer;
    FILE *out;
    uint32_t elements; /* printed so far */
    struct tbd_print_parts parts;
    int nesting;
    uint64_t seen[TBD_PRINT_SEEN_MAX]; /* static members that are structs: printed once */
    size_t seen_count;
};

void tbd_print_value(struct tbd_print *p, const struct tbd_data *data);
/* Says why the value is not shown. */
void tbd_print_unmapped(struct tbd_print *p, const struct tbd_data *data);
/* Says that more of a text would follow, or of a container. */
void tbd_print_unknown_rest(struct tbd_print *p);
void tbd_print_damaged_rest(struct tbd_print *p);
/* With one line for each member: a new one for what is `deeper` levels within the value. */
void tbd_print_line(struct tbd_print *p, int deeper);
/* Counts an element; false, and "...", if there are enough. */
bool tbd_print_may_go_on(struct tbd_print *p);

/* ---- print_scalar.c ---- */

bool tbd_print_is_char(const struct tbd_type_view *view);
/* An array of `count` characters, as far as it is known; false if nothing of it is. */
bool tbd_print_chars(struct tbd_print *p, const struct tbd_data *data, uint64_t count);
void tbd_print_scalar(struct tbd_print *p, const struct tbd_data *data,
                      const struct tbd_type_view *view);
void tbd_print_float(struct tbd_print *p, const struct tbd_data *data,
                     const struct tbd_type_view *view);
void tbd_print_complex(struct tbd_print *p, const struct tbd_data *data,
                       const struct tbd_type_view *view);

/* ---- print_wide.c ---- */

bool tbd_print_is_wide(const struct tbd_type_view *view);
/* 228 u'\303\244', as text. */
void tbd_print_wide_char(struct tbd_print *p, const struct tbd_type_view *view, uint64_t value);
/* `count` characters from *first on, between quotes. */
void tbd_print_wide(struct tbd_print *p, const struct tbd_data *first, uint64_t count);
void tbd_print_wide_array(struct tbd_print *p, const struct tbd_data *data, uint64_t count);
/* A blank, and the characters up to NUL; nothing if they are not known. */
void tbd_print_wide_pointer(struct tbd_print *p, uint64_t address, const struct tbd_type *type);

/* ---- print_struct.c ---- */

void tbd_print_array(struct tbd_print *p, const struct tbd_data *data,
                     const struct tbd_type_view *view);
void tbd_print_struct(struct tbd_print *p, const struct tbd_data *data,
                      const struct tbd_type_view *view);

/* ---- print_container.c ---- */

/* A container of the C++ library; false: it is none. */
bool tbd_print_container(struct tbd_print *p, const struct tbd_data *data);

#endif
