// SPDX-License-Identifier: MIT
/* dwarf_listed.h - the functions, variables and types that an ELF file's debug information has at the top of its units and in
 * namespaces and classes */
#ifndef TBD_QUERY_DWARF_LISTED_H
#define TBD_QUERY_DWARF_LISTED_H

#include "query/debuginfo/dwarf_file.h"

enum tbd_listed_kind { TBD_LISTED_FUNCTION, TBD_LISTED_VARIABLE, TBD_LISTED_TYPE };

struct tbd_listed {
    const char *name; /* with its namespaces and classes; for the time of the call */
    Dwarf_Die die;
    bool has_address; /* a function of which only inlined copies exist has none, nor has a type */
    uint64_t address; /* in the file */
};

/* Calls `each` until it returns false, in no order.  A type that several units have comes from each of them. */
void tbd_dwarf_list(struct tbd_dwarf *dwarf, enum tbd_listed_kind kind,
                    bool (*each)(void *context, const struct tbd_listed *one), void *context);

/* Where the source declares it; line 0: not known. */
struct tbd_source_line tbd_dwarf_declared_at(struct tbd_dwarf *dwarf, const Dwarf_Die *die);

#endif
