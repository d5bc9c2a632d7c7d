// SPDX-License-Identifier: MIT
/* symbols.h - names for addresses and addresses for names, in the modules of a trace
 *
 * A module is a file that the program had mapped executable (the program, its libraries, the vDSO).
 * Its symbols come from the trace's own copy of the file (tbd_region.copy), with .symtab, .dynsym,
 * the separate debug file found by build id or debug link, and names made up for import stubs
 * (puts@plt). Without a copy the file at the recorded path is used, but only while its code is
 * still what the trace executed; otherwise a note says so (tbd_symbols_note()).
 *
 * Modules are mapped and unmapped, so every question names a window: it sees the modules mapped at
 * its start or during it. Files are opened and read when the first question needs them.
 *
 * All files are hostile input.  One object from one thread.  Nothing here prints. */
#ifndef TBD_QUERY_SYMBOLS_H
#define TBD_QUERY_SYMBOLS_H

#include "base/status.h"
#include "format/trace/trace.h"

struct tbd_symbols;
struct tbd_elf_file;

/* Borrows `trace` until tbd_symbols_free().  Opens no file yet. */
TBD_MUST_CHECK enum tbd_status tbd_symbols_new(struct tbd_trace *trace, struct tbd_symbols **out);
/* For one fixed list of regions (borrowed), whatever the window: live processes, tests. */
TBD_MUST_CHECK enum tbd_status tbd_symbols_new_fixed(const struct tbd_region *regions, size_t count,
                                                     struct tbd_symbols **out);
void tbd_symbols_free(struct tbd_symbols *symbols); /* NULL is fine */

/* What is wrong with a module, one line each ("/usr/bin/x changed since recording ..."); NULL past
 * the last. Grows as questions open files. */
const char *tbd_symbols_note(struct tbd_symbols *symbols, size_t index);

struct tbd_module {
    const char *name;          /* last part of the path; "[vdso]" */
    const char *path;          /* as mapped by the program */
    const char *build_id;      /* hexadecimal, "" if it has none */
    uint64_t start, end;       /* addresses of its loadable segments */
    uint64_t bias;             /* address = bias + address in the file */
    struct tbd_elf_file *file; /* borrowed until tbd_symbols_free() */
};
/* Sorted by start.  The array is borrowed until a question about another window. */
TBD_MUST_CHECK enum tbd_status tbd_symbols_modules(struct tbd_symbols *symbols, uint32_t window,
                                                   const struct tbd_module **out,
                                                   size_t *out_count);
/* Windows with the same number have the same modules, from their starts to their ends. */
uint32_t tbd_symbols_mapped(const struct tbd_symbols *symbols, uint32_t window);
/* Tells whether the same modules are mapped. */
uint64_t tbd_symbols_hash(const struct tbd_module *modules, size_t count);
/* The module that holds `address`; NULL if none. */
const struct tbd_module *tbd_symbols_module_at(struct tbd_symbols *symbols, uint32_t window,
                                               uint64_t address);

/* One name: strings are borrowed until tbd_symbols_free(). */
struct tbd_symbol {
    const char *module;  /* module name; "" if `address` is in none */
    const char *name;    /* NULL if there is no symbol */
    uint64_t start, end; /* the range that the name covers; without a name the module's */
    bool is_function;
    bool is_stub;     /* an import stub: NAME@plt */
    bool is_resolver; /* the resolver of an indirect function (memcpy, strlen, ... of libc) */
    bool is_made_up;  /* sub_4a30, ADDRESS in the file: known from frame information only */
    bool is_part;     /* x.cold: code of x that optimization moved away; jumps lead there */
};

/* Finds the name that covers `address`, code or data.  False if the address is in no module (then
 * all of *out is empty). */
bool tbd_symbols_at(struct tbd_symbols *symbols, uint32_t window, uint64_t address,
                    struct tbd_symbol *out);
/* True if a function's symbol (or an import stub) starts exactly here. */
bool tbd_symbols_is_function_start(struct tbd_symbols *symbols, uint32_t window, uint64_t address);

/* Makes of a part the function that it belongs to, if the file names it. */
void tbd_symbols_to_whole(struct tbd_symbols *symbols, uint32_t window, struct tbd_symbol *symbol);

/* All symbols called `name`, and parts of functions called so; or with `module!name` those of one module ("libc!malloc",
 * "libc.so.6!malloc").  `*` and `?` match as in file names.  Aliases of one address are one answer.
 * For an indirect function (memcpy, strlen, ... of libc) the answers are the functions that the
 * program's import slots lead to, under that name; without any the resolver itself.  Stores up to
 * `max` and returns how many there are; functions come first, import stubs and parts last.  `name` matches
 * any alias of an address, so compare functions by start, not by name. */
size_t tbd_symbols_find(struct tbd_symbols *symbols, uint32_t window, const char *name,
                        struct tbd_symbol *out, size_t max);

/* "module!function+0x12", "module+0x1234", or "0x7f..." into `out`; returns `out`. */
char *tbd_symbols_format(struct tbd_symbols *symbols, uint32_t window, uint64_t address, char *out,
                         size_t out_bytes);
/* The same of a frame's pc, which a call returns to: it belongs to the function of the call, `call_pc`, though that may end there. */
char *tbd_symbols_format_frame(struct tbd_symbols *symbols, uint32_t window, uint64_t call_pc,
                               uint64_t pc, char *out, size_t out_bytes);

/* Bytes of the module's file at `address` (code and constants as loaded, before any store); how
 * many were copied. */
size_t tbd_symbols_read_file(struct tbd_symbols *symbols, uint32_t window, uint64_t address,
                             void *out, size_t bytes);

#endif
