// SPDX-License-Identifier: MIT
/* inlined.h - copies of inlined functions, in the modules of a window */
#ifndef TBD_QUERY_INLINED_H
#define TBD_QUERY_INLINED_H

#include "query/debuginfo/dwarf_inlined.h"
#include "query/session/code/symbols.h"

/* All copies of functions called `name`, with addresses as mapped in the window; the array is the
 * caller's.  NULL: there are none, or there is no memory. */
struct tbd_dwarf_inlined *tbd_inlined_find(struct tbd_symbols *symbols, uint32_t window,
                                           const char *name, size_t *out_count);
/* Does a module have such a function of whose copies no instruction is left? */
bool tbd_inlined_away(struct tbd_symbols *symbols, uint32_t window, const char *name);
/* The innermost copy around an address; false: the address is in no inlined function. */
bool tbd_inlined_at(struct tbd_symbols *symbols, uint32_t window, uint64_t address,
                    struct tbd_dwarf_inlined *out);
/* All copies around an address, innermost first: up to `max` into `out`; how many. */
size_t tbd_inlined_around(struct tbd_symbols *symbols, uint32_t window, uint64_t address,
                          struct tbd_dwarf_inlined *out, size_t max);
/* "list.c:31 (in main), list.c:40 (in main)": where the first copies were called. */
void tbd_inlined_places(const struct tbd_dwarf_inlined *all, size_t count, char *out, size_t bytes);

#endif
