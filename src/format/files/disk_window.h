// SPDX-License-Identifier: MIT
/* disk_window.h - the structs of a window's own files: TOC, trace file, block file (docs/FORMAT.md)
 *
 * disk.h has the file header and the records around them. */
#ifndef TBD_FORMAT_DISK_WINDOW_H
#define TBD_FORMAT_DISK_WINDOW_H

#include "format/files/disk.h"

struct tbd_disk_meta {
    struct tbd_disk_window window; /*   0: sizes of files are 0 here */
    uint64_t digest;               /* 128 */
    uint64_t entry_count;          /* 136 */
    uint64_t operand_bytes;        /* 144: with messages */
    uint64_t reserved;             /* 152 */
    struct tbd_regs regs;          /* 160 */
    struct tbd_regs end_regs;      /* 328 */
};
_Static_assert(sizeof(struct tbd_disk_meta) == 496, "tbd_disk_meta is 496 bytes");

/* Threads that are not in control, by tid, at the window's start and then at its end. */
struct tbd_disk_threads {
    uint64_t at_start; /* 0: struct tbd_regs that follow */
    uint64_t at_end;   /* 8: and after these */
};
_Static_assert(sizeof(struct tbd_disk_threads) == 16, "tbd_disk_threads is 16 bytes");

#define TBD_DISK_PAGE_END   1u /* modified in the window; contents at its end */
#define TBD_DISK_PAGE_GONE  2u /* modified; contents at `time`, just before the mapping went away */
#define TBD_DISK_PAGE_FIRST 4u /* contents when the window began, or when it was mapped at `time` */
#define TBD_DISK_PAGE_ZERO  8u /* all bytes are 0: nothing is stored */
#define TBD_DISK_PAGE_IMAGE 16u
/* With END: the stored bytes are the difference (exclusive or) to the page's contents when the
 * window began, which are FIRST at moment 0 of the same table, else the latest contents before. */
#define TBD_DISK_PAGE_DELTA 32u
/* The frame holds several pages, at most TBD_PAGE_GROUP; bits 16-31 have this page's index in
 * it. */
#define TBD_DISK_PAGE_GROUP 64u
#define TBD_PAGE_GROUP      16u

struct tbd_disk_page {
    uint64_t address; /*  0: page aligned; the table is sorted by (address, time, order, flags) */
    uint32_t time;    /*  8: relative */
    uint32_t order;   /* 12: log messages before */
    uint32_t flags;   /* 16: TBD_DISK_PAGE_* */
    uint32_t bytes;   /* 20: length of the frame; 0 with ZERO */
    uint64_t offset;  /* 24: in the PAGE_DATA payload */
};
_Static_assert(sizeof(struct tbd_disk_page) == 32, "tbd_disk_page is 32 bytes");

struct tbd_disk_log {
    uint64_t count;     /* 0 */
    uint64_t raw_bytes; /* 8: of the unpacked (time, message) sequence */
};
_Static_assert(sizeof(struct tbd_disk_log) == 16, "tbd_disk_log is 16 bytes");

/* WORDS and BLOCK_SUMMARIES: groups of TBD_SUMMARY_GROUP entries; a directory entry holds the
 * first key of a group, so that one key is found by unpacking one group. */
#define TBD_SUMMARY_GROUP 128u
struct tbd_disk_summaries {
    uint64_t count;  /* 0: entries */
    uint64_t groups; /* 8: struct tbd_disk_group that follow, then the groups' bytes */
};
_Static_assert(sizeof(struct tbd_disk_summaries) == 16, "tbd_disk_summaries is 16 bytes");
/* WORD_BITS, ...: the same, but an entry is a run: the number of consecutive keys, less 1. */
struct tbd_disk_group {
    uint64_t key;    /*  0: of the first entry (word number, block id) */
    uint64_t offset; /*  8: counted from the end of the directory */
};
_Static_assert(sizeof(struct tbd_disk_group) == 16, "tbd_disk_group is 16 bytes");

/* How the content of a trace or block file is coded before LZ4. */
enum tbd_coding {
    TBD_CODING_PLAIN = 0,   /* block file: entries as uint32_t */
    TBD_CODING_COLUMNS = 1, /* trace file: records of blocks, without messages (coding.c) */
};

#define TBD_SKIPPABLE_MAGIC 0x184d2a5bu /* LZ4 skippable frame number 11 */

/* Head of a trace or block file. */
struct tbd_disk_packed {
    uint32_t skippable;            /*  0: TBD_SKIPPABLE_MAGIC */
    uint32_t skip_bytes;           /*  4: what follows in the skippable frame */
    struct tbd_file_header header; /*  8 */
    uint32_t coding;               /* 72: enum tbd_coding */
    uint32_t reserved;             /* 76 */
    uint64_t packed_bytes;         /* 80: of the LZ4 frame's content */
    uint64_t count;                /* 88: entries (block file), bytes of records (trace file) */
    uint64_t checksum;             /* 96: XXH3_64 of the frame's content */
    uint64_t head_checksum;        /* 104: XXH3_64 of bytes 0..103 */
};
_Static_assert(sizeof(struct tbd_disk_packed) == 112, "tbd_disk_packed is 112 bytes");

#endif
