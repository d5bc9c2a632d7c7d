// SPDX-License-Identifier: MIT
/* dwarf_index.h - which units of the debug information contain a name
 *
 * A program of many units is not walked for each name: a table says for the last part of a name in
 * which units it occurs.  It is made when the first name is looked for, and kept for the next
 * question (name_cache.h).  It only leaves units out; the name is still looked up in the remaining
 * units. */
#ifndef TBD_QUERY_DWARF_INDEX_H
#define TBD_QUERY_DWARF_INDEX_H

#include "query/debuginfo/dwarf_file.h"

/* Units to be walked for a name, in order. */
struct tbd_unit_walk {
    struct tbd_dwarf *dwarf;
    const uint32_t *units; /* borrowed; NULL: all */
    size_t next, end;
};

/* May the file's debug information contain the name?  Without reading it: a table that an earlier question has made says no. */
bool tbd_dwarf_may_have(struct tbd_elf_file *file, const char *name);

/* `name` may have namespaces before it, `struct ` and the like, and template arguments. */
void tbd_unit_walk_start(struct tbd_unit_walk *walk, struct tbd_dwarf *dwarf, const char *name);
bool tbd_unit_walk_next(struct tbd_unit_walk *walk, Dwarf_Die *out);

/* For tbd_dwarf_free(). */
struct tbd_dwarf_index;
void tbd_dwarf_index_free(struct tbd_dwarf_index *index);

#endif
