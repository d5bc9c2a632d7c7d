// SPDX-License-Identifier: MIT
/* dwarf_file.h - the debug information of one ELF file: source lines, functions, scopes
 *
 *   tbd_dwarf_of()           the debug information of a module's file, NULL if it has none
 *   tbd_dwarf_line_at()      address -> file and line
 *   tbd_dwarf_scopes()       address -> blocks and functions around it, inlined ones too
 *
 * Addresses are the file's own, as in elf_file.h.  The file is hostile: libdw checks what it
 * decodes, and walks over entries go forward only, have bounded depth and bounded length.  One file
 * from one thread.  Nothing here prints. */
#ifndef TBD_QUERY_DWARF_FILE_H
#define TBD_QUERY_DWARF_FILE_H

#include "query/debuginfo/elf_file.h"

struct tbd_dwarf;

/* From the separate debug file, or the file itself; opened at the first call.  Borrowed until the
 * file is closed. */
struct tbd_dwarf *tbd_dwarf_of(struct tbd_elf_file *file);
/* The module's file to which the debug information belongs. */
struct tbd_elf_file *tbd_dwarf_elf(const struct tbd_dwarf *dwarf);
/* The place where dwarf_index.c keeps its tables. */
struct tbd_dwarf_index;
struct tbd_dwarf_index **tbd_dwarf_index_place(struct tbd_dwarf *dwarf);
/* For tbd_elf_close(). */
void tbd_dwarf_free(struct tbd_dwarf *dwarf);

struct tbd_source_line {
    const char *file; /* borrowed from the debug information */
    uint32_t line;    /* >= 1 */
    bool begins;      /* a statement begins at the very address that was asked for */
    bool is_aside;    /* its code is not marked as a statement: it was moved there from elsewhere */
    uint32_t before;  /* bytes from the start of this stretch of the line's code to the address */
    uint32_t after;   /* bytes from the address to its end */
    bool starts;      /* code of the line starts there, perhaps in the middle of a statement */
};
/* The line whose instructions include `address`. */
bool tbd_dwarf_line_at(struct tbd_dwarf *dwarf, uint64_t address, struct tbd_source_line *out);

/* The file that has the debug information of the code at `address` (gcc -gsplit-dwarf), if it is not there, is not of
 * the same build or may not be opened; otherwise NULL.  Borrowed from the debug information, which may say anything. */
const char *tbd_dwarf_missing_file(struct tbd_dwarf *dwarf, uint64_t address);

/* All addresses of the lines `line` (0: any) of source files called `file`: its path or the end of
 * it.  Stores up to `max`, returns how many there are. */
size_t tbd_dwarf_line_ranges(struct tbd_dwarf *dwarf, const char *file, uint32_t line,
                             struct tbd_elf_range *out, size_t max);

/* Sets has[i] where there is code of line `first` + i of such a file, i < count; leaves the others alone.  As much work as one line. */
void tbd_dwarf_code_lines(struct tbd_dwarf *dwarf, const char *file, uint32_t first, size_t count,
                          bool *has);

/* All code of the units of compilation whose file is called so, functions of headers in them included, in order; what adjoins is one
 * range.  As above. */
size_t tbd_dwarf_file_ranges(struct tbd_dwarf *dwarf, const char *file, struct tbd_elf_range *out,
                             size_t max);

#define TBD_DWARF_MAX_SCOPES 64

/* The scopes around an address, innermost first: lexical blocks, inlined functions, the
 * function. */
struct tbd_dwarf_scopes {
    struct tbd_dwarf *dwarf; /* borrowed */
    Dwarf_Die unit;          /* of compilation */
    Dwarf_Die dies[TBD_DWARF_MAX_SCOPES];
    size_t count;
};
bool tbd_dwarf_scopes(struct tbd_dwarf *dwarf, uint64_t address, struct tbd_dwarf_scopes *out);

/* One function around an address.  An address in inlined code has several. */
struct tbd_dwarf_function {
    size_t first, end;           /* scopes that belong to it: [first, end), the last is itself */
    const char *name;            /* "?" if it has none */
    bool is_inlined;             /* into the next one */
    struct tbd_source_line call; /* where it was inlined; line 0: not known */
};
/* Innermost first; the last one is not inlined. */
size_t tbd_dwarf_functions(const struct tbd_dwarf_scopes *scopes, struct tbd_dwarf_function *out,
                           size_t max);

/* The number of units (of compilation, and of what they share), and one of them: for walks
 * over everything. */
size_t tbd_dwarf_unit_count(struct tbd_dwarf *dwarf);
bool tbd_dwarf_unit(struct tbd_dwarf *dwarf, size_t index, Dwarf_Die *out);

/* The meaning of a name at the top of a unit, or of all units (TBD_DWARF_ALL_UNITS): kept for later
 * look-ups. NULL if there is no memory. */
#define TBD_DWARF_ALL_UNITS ((Dwarf_Off)-1)
struct tbd_dwarf_found {
    Dwarf_Off unit;
    bool is_known; /* the search was made: the other members hold its result */
    bool is_there;
    Dwarf_Die die;
    char name[];
};
struct tbd_dwarf_found *tbd_dwarf_found(struct tbd_dwarf *dwarf, Dwarf_Off unit, const char *name);

/* ---- careful walks ---- */

/* The first child, the next sibling; false at the end, when something is wrong, or when one
 * question has visited too much. */
bool tbd_die_child(const Dwarf_Die *die, Dwarf_Die *out);
bool tbd_die_next(const Dwarf_Die *die, Dwarf_Die *out);
/* The entry that attribute `name` refers to, also through abstract origins and specifications. */
bool tbd_die_reference(const Dwarf_Die *die, unsigned name, Dwarf_Die *out);
/* The attribute, also of the abstract origin or specification. */
bool tbd_die_attribute(const Dwarf_Die *die, unsigned name, Dwarf_Attribute *out);
/* A constant; false if it is none. */
bool tbd_die_number(const Dwarf_Die *die, unsigned name, uint64_t *out);
bool tbd_die_flag(const Dwarf_Die *die, unsigned name);
/* The entries around `die`, outermost first, without the unit; how many (0 also when it
 * is not found). */
size_t tbd_die_around(const Dwarf_Die *die, Dwarf_Die *out, size_t max);
/* "shop::Item::count": the entry's name in its scopes; false if one has no name, or if it is no scope that a
 * name could be found in.  `nameless`: what nameless namespaces are called, NULL: they are left out. */
bool tbd_die_path(const Dwarf_Die *die, const char *nameless, char *out, size_t bytes);
/* The same of one that may be in no scope, or in one without a name: then it is its own name; false if it has none. */
bool tbd_die_full_name(const Dwarf_Die *die, char *out, size_t bytes);
#define TBD_DIE_NAMELESS "(anonymous namespace)" /* as demangled names have it */
/* NULL if it has no name. */
const char *tbd_die_name(const Dwarf_Die *die);

#endif
