// SPDX-License-Identifier: MIT
/* dwarf_type_private.h - shared by dwarf_type.c (types) and dwarf_type_text.c (how C writes
 * them) */
#ifndef TBD_QUERY_DWARF_TYPE_PRIVATE_H
#define TBD_QUERY_DWARF_TYPE_PRIVATE_H

#include "query/debuginfo/dwarf_type.h"

#define TBD_TYPE_CHAIN_MAX  32 /* steps through typedefs, pointers, anonymous members */
#define TBD_TYPE_TEXT_BYTES 1024

/* Follows a reference to a type unit, which holds the full type (-fdebug-types-section). */
void tbd_type_take_signed(Dwarf_Die *die);
/* Elements of dimension `index` of an array, and of it and all later ones together; false past the
 * last. */
bool tbd_type_array_counts(const Dwarf_Die *array, unsigned index, uint64_t *first, uint64_t *all);
/* "struct " for a struct's tag; "" for what has no keyword. */
const char *tbd_type_keyword(int tag);

#endif
