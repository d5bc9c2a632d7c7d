// SPDX-License-Identifier: MIT
/* dwarf_private.h - one file's debug information, for dwarf_file.c (opening, units, scopes) and
 * dwarf_lines.c (lines) */
#ifndef TBD_QUERY_DWARF_PRIVATE_H
#define TBD_QUERY_DWARF_PRIVATE_H

#include "query/debuginfo/dwarf_alt.h"
#include "query/debuginfo/dwarf_file.h"

#define TBD_DWARF_UNITS_MAX (1u << 20)

struct dwarf_unit {
    Dwarf *dwarf;  /* borrowed: this file's, or that of the file it shares with others */
    Dwarf_Off at;  /* of its entry */
    bool is_apart; /* in .debug_types, DWARF 4's section for types */
};

struct dwarf_range {
    uint64_t start, end;
    uint32_t unit;
};

/* A source path relative to its unit's folder of compilation, and the joined path. */
struct dwarf_path {
    const char *relative; /* borrowed from the debug information */
    char *path;           /* owned */
};

struct tbd_dwarf {
    struct tbd_elf_file *file;     /* borrowed; it owns this */
    Dwarf *dwarf;                  /* owned */
    struct tbd_dwarf_alt alt;      /* owned */
    struct tbd_dwarf_index *index; /* owned; NULL: none yet */
    struct dwarf_path *paths;      /* owned; sorted by the address of `relative` */
    size_t path_count, path_capacity;
    bool indexed;
    struct dwarf_unit *units; /* owned */
    size_t unit_count, unit_capacity;
    struct dwarf_range *ranges; /* owned; sorted by start */
    size_t range_count, range_capacity;
    uint64_t last_address;         /* of `last`; the same function is often asked for again */
    struct tbd_dwarf_scopes *last; /* owned */
    struct tbd_flow *flow;         /* owned; of the last function; NULL: not readable */
    uint64_t flow_start;           /* where that function starts; 0: none yet */
    void *found;                   /* owned: tree of struct tbd_dwarf_found */
};

/* A unit without code: types that several units share. */
bool tbd_dwarf_is_shared_unit(Dwarf_Die *die);
/* The unit whose code is at `address`. */
bool tbd_dwarf_unit_at(struct tbd_dwarf *dwarf, uint64_t address, Dwarf_Die *out);
/* The path with the folder of compilation before it, where that makes it absolute. */
const char *tbd_dwarf_whole_path(struct tbd_dwarf *dwarf, const Dwarf_Die *unit,
                                 const char *relative);
/* The source file with this number in the unit's table; NULL: there is none. */
const char *tbd_dwarf_source_path(struct tbd_dwarf *dwarf, const Dwarf_Die *unit, uint64_t file);
/* Where an inlined function was called; line 0: not known. */
struct tbd_source_line tbd_dwarf_call_site(struct tbd_dwarf *dwarf, const Dwarf_Die *unit,
                                           const Dwarf_Die *die);

#endif
