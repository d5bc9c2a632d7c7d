// SPDX-License-Identifier: MIT
/* elf_file.h - one ELF file of a trace: segments, symbols, call frame information
 *
 * Addresses here are the file's own (p_vaddr, st_value); symbols.c adds a module's bias.  The file
 * is hostile: everything read from it is checked, and unreadable parts count as absent. Symbols and
 * frame information are read at the first question for them.  One file from one thread. */
#ifndef TBD_QUERY_ELF_FILE_H
#define TBD_QUERY_ELF_FILE_H

#include "base/status.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_ELF_MAX_SEGMENTS   64
#define TBD_ELF_BUILD_ID_BYTES 64

struct tbd_dwarf;
struct tbd_elf_names;

/* Names are kept in blocks that never move. */
struct tbd_names {
    struct tbd_names_block *last; /* owned */
};
char *tbd_names_add(struct tbd_names *names, const char *text, size_t bytes, const char *suffix);
void tbd_names_free(struct tbd_names *names);

struct tbd_elf_symbol {
    uint64_t start;
    uint64_t end;         /* start if the symbol covers nothing: labels */
    const char *name;     /* borrowed from the file */
    const char *readable; /* of a mangled name, once asked for; tbd_elf_symbol_name() */
    uint16_t rank;        /* smaller = the better name among aliases */
    bool is_function;
    bool is_stub;
    bool is_resolver;
    bool is_made_up; /* sub_ADDRESS: the file does not name this function */
    bool is_part;    /* NAME.cold: code of a function that was moved away from it */
};

/* Addresses with at least one symbol that covers something. */
struct tbd_elf_span {
    uint64_t start;
    uint64_t end;    /* the longest of the aliases */
    uint64_t reach;  /* the largest end of this span and all before it */
    uint32_t symbol; /* its best name */
};

/* A word of memory that the dynamic linker fills with the address of a function. */
struct tbd_elf_slot {
    uint64_t address;
    const char *name; /* NULL: an indirect function of this file, whose resolver is at `resolver` */
    uint64_t resolver;
};

struct tbd_elf_symbols {
    bool loaded;
    struct tbd_elf_slot *slots; /* owned; sorted by address */
    size_t slot_count;
    size_t slot_capacity;
    struct tbd_elf_symbol *all; /* owned; sorted by start, then rank */
    size_t count;
    size_t capacity;
    struct tbd_elf_span *spans; /* owned; sorted by start */
    size_t span_count;
};

struct tbd_elf_one { /* a file as libelf sees it */
    int fd;          /* -1 for an image in memory */
    uint8_t *image;  /* owned, or NULL */
    Elf *elf;
};

struct tbd_elf_file {
    char *path;   /* owned */
    char *origin; /* owned; where the program had it, if `path` is a copy of that; else NULL */
    struct tbd_elf_one main;
    struct tbd_elf_one debug; /* separate debug file, elf == NULL if there is none */
    char *debug_path;         /* owned; of `debug`, NULL if there is none */
    bool debug_tried;
    struct tbd_elf_one unpacked;              /* debug_cache.h; elf == NULL if there is none */
    GElf_Phdr segments[TBD_ELF_MAX_SEGMENTS]; /* PT_LOAD only, in file order */
    size_t segment_count;
    uint64_t low, high; /* smallest and largest address of the segments */
    uint8_t build_id[TBD_ELF_BUILD_ID_BYTES];
    size_t build_id_bytes;
    char build_id_text[2 * TBD_ELF_BUILD_ID_BYTES + 1];
    struct tbd_elf_symbols symbols;
    struct tbd_names names;
    struct tbd_elf_names *by_name; /* owned; elf_names.c; NULL until a name is asked for */
    Dwarf_CFI *eh_frame;
    bool eh_frame_tried;
    Dwarf *dwarf;           /* of the debug file, or of the file itself */
    Dwarf_CFI *debug_frame; /* owned by `dwarf` */
    bool dwarf_tried;
    uint64_t refused_bytes;   /* the debug information would take this much; 0: it is not refused */
    struct tbd_dwarf *source; /* owned; dwarf_file.h; NULL: none */
    bool source_tried;
};

/* Fails with TBD_IO (cannot be read), TBD_CORRUPT (not a usable 64-bit x86 ELF file), TBD_NOMEM. */
TBD_MUST_CHECK enum tbd_status tbd_elf_open(const char *path, struct tbd_elf_file **out);
/* A trace's own copy of the file at `origin`: `name` below the directory `dir`.  It is mapped if
 * nobody else may write to it. */
TBD_MUST_CHECK enum tbd_status tbd_elf_open_copy(int dir, const char *name, const char *origin,
                                                 struct tbd_elf_file **out);
/* Copies `bytes` bytes at `image`: the vDSO. */
TBD_MUST_CHECK enum tbd_status tbd_elf_open_image(const char *name, const void *image, size_t bytes,
                                                  struct tbd_elf_file **out);
void tbd_elf_close(struct tbd_elf_file *file); /* `file` may be NULL. */

/* The bias to add to the file's addresses if its byte `file_offset` is mapped executable at
 * `start`. */
bool tbd_elf_bias(const struct tbd_elf_file *file, uint64_t start, uint64_t file_offset,
                  uint64_t *out);

/* Bytes of the loadable segments at `address`; bytes beyond the file's part of a segment are zero.
 * Returns how many could be read. */
size_t tbd_elf_read(struct tbd_elf_file *file, uint64_t address, void *out, size_t bytes);

/* True if `address` lies in an executable segment. */
bool tbd_elf_is_code(const struct tbd_elf_file *file, uint64_t address);
/* True if all of it lies in one segment that may be read and not written, and in the file. */
bool tbd_elf_is_constant(const struct tbd_elf_file *file, uint64_t address, size_t bytes);

/* The separate debug file, NULL if there is none; opened at the first call. */
Elf *tbd_elf_debug(struct tbd_elf_file *file);

/* Another ELF file that belongs to a module: opened if it has this build id, and closed. */
bool tbd_elf_one_open(const char *path, const uint8_t *id, size_t id_bytes,
                      struct tbd_elf_one *out);
void tbd_elf_one_close(struct tbd_elf_one *one);

/* Symbols, loaded at the first call; an empty table when there are none or memory is short. */
const struct tbd_elf_symbols *tbd_elf_symbols(struct tbd_elf_file *file);
const struct tbd_elf_symbol *tbd_elf_symbol_at(struct tbd_elf_file *file, uint64_t address);
/* The name to show: demangled. */
const char *tbd_elf_symbol_name(struct tbd_elf_file *file, const struct tbd_elf_symbol *symbol);
/* The function that a part belongs to; NULL if it is not known. */
const struct tbd_elf_symbol *tbd_elf_whole(struct tbd_elf_file *file,
                                           const struct tbd_elf_symbol *part);
/* The length of a name without what marks a part (".cold", ".cold.1"); all of it if nothing does. */
size_t tbd_elf_whole_length(const char *name);
/* Demangles all remaining names, for a caller that needs most of them: from the cache, or on all
 * processors. */
void tbd_elf_read_names(struct tbd_elf_file *file);
/* Indexes into all[], sorted by name; made at the first call.  NULL without symbols or memory. */
const uint32_t *tbd_elf_by_name(struct tbd_elf_file *file);
/* First index in by_name that is not before `name`; the number of symbols when there is none. */
size_t tbd_elf_lower_bound(struct tbd_elf_file *file, const char *name);

/* For tbd_elf_close(). */
void tbd_elf_free_names(struct tbd_elf_file *file);

/* Functions that the frame information's search table knows, in address order as the file has
 * them.  *out is the caller's to free, also when there are none. */
struct tbd_elf_range {
    uint64_t start, end;
};
size_t tbd_elf_frame_functions(struct tbd_elf_file *file, struct tbd_elf_range **out);

/* Call frame information that covers `address`, with .eh_frame preferred; NULL if none.  free()
 * it. */
Dwarf_Frame *tbd_elf_frame(struct tbd_elf_file *file, uint64_t address);

#endif
