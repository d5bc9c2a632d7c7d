// SPDX-License-Identifier: MIT
/* dwarf_inlined.h - where the compiler put functions into others */
#ifndef TBD_QUERY_DWARF_INLINED_H
#define TBD_QUERY_DWARF_INLINED_H

#include "query/debuginfo/dwarf_file.h"

#define TBD_INLINED_RANGES 16u

/* One copy of an inlined function. */
struct tbd_dwarf_inlined {
    uint64_t id;                                     /* the same for the same copy */
    uint64_t entry;                                  /* its first instruction */
    struct tbd_elf_range ranges[TBD_INLINED_RANGES]; /* its code, with what is inlined into it */
    size_t range_count;                              /* at least 1 */
    struct tbd_source_line call;                     /* where it was called; line 0: not known */
    const char *name;                                /* of the function; "?": it has none */
    const char *outer; /* the function whose code it is in; NULL: not known */
};

/* The copies of functions called `name`, which may have namespaces, template arguments and parameters.  Stores up to `max`, returns how many
 * there are. */
size_t tbd_dwarf_inlined(struct tbd_dwarf *dwarf, const char *name, struct tbd_dwarf_inlined *out,
                         size_t max);
/* False: the file has no copies of functions called `name`, which costs nearly nothing to find out. */
bool tbd_dwarf_may_inline(struct tbd_elf_file *file, const char *name);
/* Is there such a function, and no instruction of its copies left? */
bool tbd_dwarf_inlined_away(struct tbd_dwarf *dwarf, const char *name);
/* Calls `each` with the names of inlined functions: "cost", and "shop::Item::cost" if it has scopes.
 * Not all, if there are very many; none if `dwarf` is NULL. */
void tbd_dwarf_inlined_names(struct tbd_dwarf *dwarf, void (*each)(void *context, const char *name),
                             void *context);
/* All copies around an address, innermost first: up to `max` into `out`; how many. */
size_t tbd_dwarf_inlined_around(struct tbd_dwarf *dwarf, uint64_t address,
                                struct tbd_dwarf_inlined *out, size_t max);
/* The name of a function or variable that is declared elsewhere, with its scopes: of a definition outside of its class the name that
 * is declared there, of an inlined copy that of the function.  By the name for the linker if it has one, which is the shorter way.
 * False: it has none, or not enough space. */
bool tbd_dwarf_declared_name(const Dwarf_Die *die, char *out, size_t bytes);

#endif
