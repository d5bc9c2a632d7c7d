// SPDX-License-Identifier: MIT
/* symbols_private.h - shared by symbols.c (files, modules, names of addresses) and symbols_find.c
 * (addresses of names) */
#ifndef TBD_QUERY_SYMBOLS_PRIVATE_H
#define TBD_QUERY_SYMBOLS_PRIVATE_H

#include "query/debuginfo/elf_file.h"
#include "query/session/code/symbols.h"

struct known_file {
    struct known_file *next; /* owned */
    char *path;              /* owned; the path that was opened */
    char *shown;             /* owned; the path that the program mapped */
    uint64_t inode;
    uint32_t device;
    bool is_refused;           /* a note says so */
    struct tbd_elf_file *file; /* owned; NULL: cannot be used (SYMBOLS-2) */
};

struct symbols_view {
    uint32_t window;            /* UINT32_MAX: none yet */
    bool deep;                  /* also holds mappings that existed only inside the window */
    struct tbd_module *modules; /* owned */
    size_t count;
    size_t capacity;
};

/* All symbols that a name means in the view; kept because callers ask several times in a row. */
struct symbols_answer {
    char *name; /* owned; NULL: none yet */
    uint32_t window;
    bool deep;                /* as the view was */
    struct tbd_symbol *found; /* owned */
    size_t count;
};

struct tbd_symbols {
    struct tbd_trace *trace;        /* borrowed; NULL with fixed regions */
    const struct tbd_region *fixed; /* borrowed */
    size_t fixed_count;
    struct known_file *files; /* owned */
    struct symbols_view view;
    struct tbd_names names;
    char **notes; /* owned array; strings live in names */
    size_t note_count;
    struct symbols_answer last; /* of tbd_symbols_find() */
};

/* Makes the view one of `window`. */
TBD_MUST_CHECK enum tbd_status tbd_symbols_view_at(struct tbd_symbols *symbols, uint32_t window);
/* Adds the mappings that existed only inside the window; true if there were any. */
bool tbd_symbols_view_deepen(struct tbd_symbols *symbols, uint32_t window);
/* The module around `address`; NULL if there is none. */
const struct tbd_module *tbd_symbols_view_find(const struct symbols_view *view, uint64_t address);
struct tbd_symbol tbd_symbols_make(const struct tbd_module *module,
                                   const struct tbd_elf_symbol *symbol);

#endif
