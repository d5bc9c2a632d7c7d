// SPDX-License-Identifier: MIT
/* parts.h - the parts of a value, to be shown one level at a time: members, elements, what a pointer points to
 *
 * A pointer to a struct has the struct's members; a container of the C++ library has its elements. */
#ifndef TBD_QUERY_PARTS_H
#define TBD_QUERY_PARTS_H

#include "query/values/dwarf_print.h"

struct tbd_value_part {
    char name[160]; /* "next", "[3]", "*", "<Base>" */
    /* How an expression goes on to it: ".next", "->next", "[3]"; "*": it stands before; "": by the same
     * names as the whole, of base classes and anonymous members. */
    char access[160];
    bool has_access; /* false: no expression denotes it */
    struct tbd_data data;
};

struct tbd_parts_count {
    uint64_t named, indexed; /* one of them is 0 */
};

/* 0 and 0: the value has no parts, or is not known. */
struct tbd_parts_count tbd_parts_count(const struct tbd_printer *printer,
                                       const struct tbd_data *data);
/* Calls `each` for parts [first, first + count) until it returns false. */
void tbd_parts_each(const struct tbd_printer *printer, const struct tbd_data *data, uint64_t first,
                    uint64_t count, bool (*each)(void *context, const struct tbd_value_part *part),
                    void *context);

#endif
