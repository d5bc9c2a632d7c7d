// SPDX-License-Identifier: MIT
/* crash_file.h - the file `crash` of a crash dump: what each thread ran last (docs/FORMAT.md)
 *
 * head, modules, blocks, threads, tables, parts, kept, values, chunks, ids, entries, code, older; little endian.  A reader checks everything before it uses
 * anything (tbd_crash_open). */
#ifndef TBD_FORMAT_CRASH_FILE_H
#define TBD_FORMAT_CRASH_FILE_H

#include "base/status.h"
#include "format/stream/crash.h"

#include <stdbool.h>
#include <stddef.h>

#define TBD_CRASH_FILE  "crash"
#define TBD_CRASH_MAGIC 0x0a1a0a0d68737263ull /* "crsh\r\n\x1a\n" */
#define TBD_CRASH_MAJOR 7
#define TBD_NO_MODULE   0xffffffffu
#define TBD_NO_CODE     0xffffffffu

struct tbd_crash_head {
    uint64_t magic;                     /*   0: TBD_CRASH_MAGIC */
    uint16_t major;                     /*   8: a reader refuses another */
    uint16_t minor;                     /*  10 */
    uint32_t pid;                       /*  12 */
    uint64_t checksum;                  /*  16: tbd_hash64() of the file with 0 here */
    uint32_t module_count;              /*  24 */
    uint32_t block_count;               /*  28 */
    uint32_t thread_count;              /*  32 */
    uint32_t signo;                     /*  36: that the program died of; 0: it was killed */
    uint64_t entry_count;               /*  40 */
    uint32_t tid;                       /*  48: of the thread that had the signal */
    uint32_t reserved;                  /*  52 */
    uint8_t siginfo[TBD_SIGINFO_BYTES]; /*  56 */
    struct tbd_regs regs;               /* 184: of that thread */
    uint64_t code_bytes;                /* at the end: of all blocks together */
    uint32_t first_count, last_count;   /* rows of the tables */
    uint32_t part_count, kept_count;    /* parts, and what they have kept */
    uint32_t value_count;               /* of all threads together */
    uint32_t chunk_count;               /* likewise */
    uint32_t id_count;                  /* that chunks may name, from 1 */
    uint32_t without_ring;              /* threads for which there was none */
    uint64_t older_bytes;               /* of all chunks */
};

struct tbd_crash_block {
    uint64_t start;       /*  0 */
    uint32_t code_bytes;  /*  8 */
    uint32_t module;      /* 12: index, or TBD_NO_MODULE */
    uint32_t code_offset; /* 16: in the file's code, or TBD_NO_CODE */
    uint32_t reserved;    /* 20 */
};
_Static_assert(sizeof(struct tbd_crash_block) == 24, "tbd_crash_block is 24 bytes");

/* The entries of threads follow each other in this order. */
struct tbd_crash_thread {
    uint32_t tid;
    uint32_t flags;    /* TBD_CRASH_* */
    uint64_t count;    /* of entries: indices of blocks, uint32_t, the last one entered last */
    uint64_t older;    /* entries before those, in chunks */
    uint64_t ended_ns; /* after its last entry, as in struct tbd_crash_file_value; 0: not known */
};
_Static_assert(sizeof(struct tbd_crash_thread) == 32, "tbd_crash_thread is 32 bytes");
#define TBD_CONDENSED_ENTRIES (8u << 20) /* that chunks of all rings together become */
#define TBD_CRASH_HAS_OLDER   1u         /* the ring was full: earlier blocks are lost */

/* Entries that stay condensed (format/stream/condensed.h).  Those of a thread follow each other, the oldest first. */
struct tbd_crash_chunk {
    uint64_t offset;  /*  0: of its bits, in `older` */
    uint32_t bytes;   /*  8 */
    uint32_t count;   /* 12: of ids */
    uint32_t thread;  /* 16: index */
    uint32_t id_bits; /* 20 */
};
_Static_assert(sizeof(struct tbd_crash_chunk) == 24, "tbd_crash_chunk is 24 bytes");

/* When a block was entered first, or last, in this order.  All those that the program entered. */
struct tbd_crash_when {
    uint64_t time_us; /*  0: after 1970; of a last entry: of the end of its ring's lap */
    uint32_t block;   /*  8 */
    uint32_t reserved;
};
_Static_assert(sizeof(struct tbd_crash_when) == 16, "tbd_crash_when is 16 bytes");

/* A part of the program that has a longer ring of its own (option `parts`). */
struct tbd_crash_kept_part {
    char name[TBD_CRASH_PART_NAME]; /*  0: ends with a NUL */
    uint32_t flags;                 /* 48: TBD_CRASH_HAS_OLDER */
    uint32_t reserved[3];           /* 52 */
};
_Static_assert(sizeof(struct tbd_crash_kept_part) == 64, "tbd_crash_kept_part is 64 bytes");

/* An entry that a part has kept.  Those of all parts, in order. */
struct tbd_crash_kept {
    uint64_t time_us; /*  0: of the end of its ring's lap */
    uint32_t block;   /*  8: index */
    uint32_t tid;     /* 12 */
    uint32_t part;    /* 16: index */
    uint32_t reserved;
};
_Static_assert(sizeof(struct tbd_crash_kept) == 24, "tbd_crash_kept is 24 bytes");

/* What was recorded beside a ring (format/stream/crash_values.h).  Those of a thread follow each other, as they were recorded.  Stamps are
 * nanoseconds after the rings' beginning, from 1; 0: not known. */
struct tbd_crash_file_value {
    uint64_t
        entry; /*  0: of the thread: the one that came next; its number of entries: none came */
    uint32_t thread; /*  8: index */
    uint32_t kind;   /* 12: enum tbd_value_kind */
    union {
        struct tbd_value_registers registers;
        struct tbd_value_call call;
        struct tbd_value_bytes more;
    } is; /* 16 */
};
_Static_assert(sizeof(struct tbd_crash_file_value) == 520, "tbd_crash_file_value is 520 bytes");

/* A file that was read and checked; pointers into `data`. */
struct tbd_crash_dump {
    uint8_t *data; /* owned */
    size_t bytes;
    const struct tbd_crash_head *head;
    const struct tbd_crash_module *modules;
    const struct tbd_crash_block *blocks;
    const struct tbd_crash_thread *threads;
    const struct tbd_crash_when *first, *last;
    const struct tbd_crash_kept_part *parts;
    const struct tbd_crash_kept *kept;
    const struct tbd_crash_file_value *values;
    const struct tbd_crash_chunk *chunks;
    const uint32_t *ids; /* of each id: the index of its block, or UINT32_MAX */
    const uint32_t *entries;
    const uint8_t *code;
    const uint8_t *older;
};

/* Reads the dump in the folder `path`.  TBD_NOTRACE: it has no such file. */
TBD_MUST_CHECK enum tbd_status tbd_crash_open(const char *path, struct tbd_crash_dump *out,
                                              struct tbd_error *why);
void tbd_crash_close(struct tbd_crash_dump *dump);

/* The entries [first, first + count) of the older ones of a thread, an index; all of them exist.  TBD_CORRUPT: a chunk cannot be expanded;
 * TBD_NOMEM.  (crash_older.c) */
TBD_MUST_CHECK enum tbd_status tbd_crash_older(const struct tbd_crash_dump *dump, uint32_t thread,
                                               uint64_t first, uint64_t count, uint32_t *out);

/* The last of these entries before *at whose block is wanted: *at becomes its number, the oldest being 0.  TBD_NOTFOUND: there is
 * none; else as above. */
TBD_MUST_CHECK enum tbd_status tbd_crash_find_older(const struct tbd_crash_dump *dump,
                                                    uint32_t thread, const bool *wanted,
                                                    uint64_t *at);

/* Are the lengths in it possible? */
bool tbd_crash_is_value(const struct tbd_crash_file_value *value);

/* Area 0 of a stream with rings, which may change at any time; NULL: it is none. */
const struct tbd_crash *tbd_crash_area(const void *stream, size_t bytes);
/* Where its rings have their condensed laps (format/stream/condensed.h): the first one at offset `at` of the stream, another one every
 * `each` bytes, each with a ring of `capacity` bytes. */
struct tbd_crash_condensed {
    uint64_t at, each, capacity;
    uint64_t area_at, area_each; /* of the rings themselves */
    uint32_t rings;
};
/* False: there are none. */
bool tbd_crash_condensed(const void *stream, size_t bytes, struct tbd_crash_condensed *out);
/* Did no thread enter a block? */
bool tbd_crash_is_empty(const void *stream, size_t bytes);
/* Writes the file for the memory of a program that has ended: a stream of `bytes` bytes.  TBD_CORRUPT: it
 * is none with rings. */
TBD_MUST_CHECK enum tbd_status tbd_crash_write(int dir, const uint8_t *stream, size_t bytes,
                                               uint32_t pid);

#endif
