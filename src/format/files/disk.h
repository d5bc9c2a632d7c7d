// SPDX-License-Identifier: MIT
/* disk.h - the structs of a trace directory's files (docs/FORMAT.md has the same tables)
 *
 * Headers, records, the index, keys and cached answers are here; what only a window's own files
 * hold is in disk_window.h.
 *
 * A file is a struct tbd_file_header followed by records.  A record is a struct tbd_record and its
 * payload, padded with zeroes to a multiple of 8, so that every payload is 8-aligned in the file.
 * Little endian, natural alignment, padding written as 0.  The trace and block files of a window
 * are different: the header lies in an LZ4 skippable frame and one standard LZ4 frame follows, so
 * that lz4(1) unpacks them.
 *
 *   header           START, CONFIG
 *   index            append only: REGION, UNMAP, NOTE, MODULE, THREAD; PAGES, RAN, WINDOW for each
 *                    window; CHANGE for lowered, raised, merged windows; END. Rewritten now and then
 *   blocks           append only: BLOCKS
 *   image            PAGE_TABLE, PAGE_DATA: the initial image; image-N: memory before window N,
 *                    when the windows before it are gone
 *   windows/A/B.toc  META, STATE, THREADS, CALLED, PAGE_TABLE, PAGE_DATA, READ_PAGES, LOG,
 *                    EARLY_CALLS, WORDS, BLOCK_SUMMARIES; level 1: WORD_BITS, BLOCK_BITS,
 *                    CALLED_BITS instead of these two
 *   windows/A/B-N.toc  the same for N windows that were merged into one
 *   windows/A/B.trace, windows/A/B.blocks          (window number = A * 1000 + B)
 *   modules/...      copies of the files that were mapped executable
 */
#ifndef TBD_FORMAT_DISK_H
#define TBD_FORMAT_DISK_H

#include "format/stream/stream.h"

#include <stddef.h>
#include <stdint.h>

#define TBD_FILE_MAGIC "TBD\r\n\x1a\n" /* 7 characters and the NUL */
#define TBD_FILE_MAJOR 1
#define TBD_FILE_MINOR 1 /* 1: threads, changes of windows */

enum tbd_file_kind {
    TBD_FILE_HEADER = 1,
    TBD_FILE_INDEX = 2,
    TBD_FILE_BLOCKS = 3,
    TBD_FILE_IMAGE = 4,
    TBD_FILE_TOC = 5,
    TBD_FILE_TRACE = 6,
    TBD_FILE_ENTRIES = 7,
    TBD_FILE_KEYS = 8,
    TBD_FILE_RAISED = 9,
    TBD_FILE_ANSWER = 10,
    TBD_FILE_STOPS = 11, /* the messages of a window of native play, in order */
};

struct tbd_file_header {
    uint8_t magic[8];        /*  0: TBD_FILE_MAGIC */
    uint32_t kind;           /*  8: enum tbd_file_kind */
    uint16_t major;          /* 12: a reader refuses another one */
    uint16_t minor;          /* 14: a reader ignores what it does not know */
    uint32_t header_bytes;   /* 16: offset of the first record */
    uint32_t window;         /* 20: number of the window for its files, else 0 */
    uint64_t trace_id;       /* 24: random, the same in all files of a trace */
    uint64_t need_features;  /* 32: unknown bit: refuse */
    uint64_t extra_features; /* 40: unknown bit: ignore */
    uint64_t reserved;       /* 48: 0 */
    uint64_t checksum;       /* 56: XXH3_64 of the 56 bytes before */
};
/* need_features */
#define TBD_NEEDS_ZSTD     1u /* frames may be Zstandard ones */
#define TBD_NEEDS_COUNTING 2u /* windows may be uncounted: TBD_WINDOW_UNCOUNTED */
#define TBD_NEEDS_DUMP     4u /* a crash dump: TBD_START_DUMP, TBD_REGION_PARTIAL */
#define TBD_NEEDS_STOPS    8u /* times are numbers of stops: TBD_CONFIG_COUNT_STOPS */
/* a replay has instructions that the log does not have: TBD_MSG_UNLOGGED */
#define TBD_NEEDS_UNLOGGED 16u
/* contents of pages that went away are in the TOC: TBD_STOPS_ELSEWHERE */
#define TBD_NEEDS_GONE 32u
#define TBD_NEEDS_KNOWN                                                                            \
    (TBD_NEEDS_ZSTD | TBD_NEEDS_COUNTING | TBD_NEEDS_DUMP | TBD_NEEDS_STOPS | TBD_NEEDS_UNLOGGED | \
     TBD_NEEDS_GONE)
_Static_assert(sizeof(struct tbd_file_header) == 64, "tbd_file_header is 64 bytes");
_Static_assert(offsetof(struct tbd_file_header, trace_id) == 24, "offset");
_Static_assert(offsetof(struct tbd_file_header, checksum) == 56, "offset");

struct tbd_record {
    uint32_t type;     /*  0: enum tbd_record_type */
    uint32_t flags;    /*  4: TBD_RECORD_* */
    uint64_t bytes;    /*  8: of the payload, without padding */
    uint64_t checksum; /* 16: XXH3_64 of the payload, seeded with that of the 16 bytes before */
};
_Static_assert(sizeof(struct tbd_record) == 24, "tbd_record is 24 bytes");

#define TBD_RECORD_OPTIONAL 1u /* a reader that does not know the type skips it */

enum tbd_record_type {
    TBD_REC_START = 1,        /* payload of TBD_MSG_START */
    TBD_REC_CONFIG = 2,       /* struct tbd_disk_config */
    TBD_REC_REGION = 10,      /* struct tbd_disk_when, struct tbd_msg_region, path NUL */
    TBD_REC_UNMAP = 11,       /* struct tbd_disk_when, struct tbd_range */
    TBD_REC_NOTE = 12,        /* struct tbd_disk_when, uint32_t severity, text NUL */
    TBD_REC_MODULE = 13,      /* struct tbd_disk_module, path NUL, name below modules/ NUL */
    TBD_REC_PAGES = 14,       /* struct tbd_disk_when, varints: page difference * 4 + kinds */
    TBD_REC_WINDOW = 15,      /* struct tbd_disk_window; numbers count from 0 without gaps */
    TBD_REC_END = 16,         /* struct tbd_msg_end, text NUL */
    TBD_REC_THREAD = 17,      /* struct tbd_disk_when, struct tbd_disk_thread */
    TBD_REC_RAN = 18,         /* struct tbd_disk_when, struct tbd_disk_ran[] */
    TBD_REC_CLOSED = 19,      /* struct tbd_disk_closed */
    TBD_REC_CHANGE = 21,      /* struct tbd_disk_change, struct tbd_disk_shift[count] if count >
                                 1 */
    TBD_REC_BASE = 22,        /* struct tbd_disk_base: before all windows */
    TBD_REC_BLOCKS = 20,      /* struct tbd_disk_blocks, defs, ops, code bytes */
    TBD_REC_META = 30,        /* struct tbd_disk_meta */
    TBD_REC_STATE = 31,       /* LZ4 frame: xsave image at the start, then at the end */
    TBD_REC_PAGE_TABLE = 32,  /* struct tbd_disk_page[] */
    TBD_REC_PAGE_DATA = 33,   /* LZ4 frames, at the offsets of the page table */
    TBD_REC_PAGE_CHECKS = 42, /* uint32_t[]: low half of the XXH3_64 of each entry's frame */
    TBD_REC_READ_PAGES = 34,  /* uint64_t count, varints: page number differences */
    TBD_REC_LOG = 35,         /* struct tbd_disk_log, LZ4 frame: (uint32_t time, message)... */
    TBD_REC_WORDS = 36,       /* struct tbd_disk_summaries, directory, varints */
    TBD_REC_BLOCK_SUMMARIES = 37,
    TBD_REC_CALLED = 39,         /* struct tbd_called_thread[] */
    TBD_REC_THREADS = 38,        /* struct tbd_disk_threads, struct tbd_regs[], LZ4 frame: xsave
                                 images */
    TBD_REC_KEY_SPAN = 40,       /* struct tbd_disk_key_span, uint64_t times[windows + 1] */
    TBD_REC_KEY_DIRECTORY = 41,  /* struct tbd_disk_key_group[]; after it, up to the file's end, the
                                   groups */
    TBD_REC_STAMPS = 43,         /* varints: relative time, difference of nanoseconds (zigzag) */
    TBD_REC_OPENED = 44,         /* uint64_t bytes, LZ4 frame: format/window/opened.h */
    TBD_REC_WORD_BITS = 50,      /* struct tbd_disk_summaries, directory, varints: runs */
    TBD_REC_BLOCK_BITS = 51,     /* of block ids */
    TBD_REC_CALLED_BITS = 52,    /* of block ids that were entered by a call */
    TBD_REC_EARLY_CALLS = 53,    /* varints: thread, id, relative time */
    TBD_REC_RAISED = 60,         /* struct tbd_disk_raised */
    TBD_REC_RAISED_ENTRIES = 61, /* LZ4 frame: what a block file has */
    TBD_REC_RAISED_RECORDS = 62, /* LZ4 frame: what a trace file has */
    TBD_REC_QUESTION = 63,       /* text */
    TBD_REC_ANSWER = 64,         /* struct tbd_disk_answer, LZ4 frame: text */
    TBD_REC_STOPS = 65,          /* uint64_t bytes, LZ4 frame: (struct tbd_message, payload)... */
    TBD_REC_STOPS_BRIEF =
        66, /* the same; TBD_STOPS_ELSEWHERE in a kind: the window's TOC has the rest */
};

/* In the header: the index's size when its last writer finished. */
struct tbd_disk_closed {
    uint64_t index_bytes; /*  0: at least */
    uint64_t reserved;    /*  8 */
};
_Static_assert(sizeof(struct tbd_disk_closed) == 16, "tbd_disk_closed is 16 bytes");

struct tbd_disk_answer {
    uint64_t text_bytes; /*  0: unpacked */
    uint32_t result;     /*  8: exit status */
    uint32_t reserved;   /* 12 */
};
_Static_assert(sizeof(struct tbd_disk_answer) == 16, "tbd_disk_answer is 16 bytes");

/* The window that a file below cache/ belongs to. */
struct tbd_disk_raised {
    uint64_t first_time;    /*  0: of the window */
    uint64_t blocks;        /*  8 */
    uint64_t digest;        /* 16: of its end state, as in its TOC */
    uint64_t entry_count;   /* 24 */
    uint64_t operand_bytes; /* 32: records and messages */
    uint64_t coded_bytes;   /* 40: of the content of RAISED_RECORDS */
    uint32_t hooks;         /* 48: TBD_HOOK_* it was replayed with */
    uint32_t span;          /* 52: how many windows are merged in it */
    uint32_t level;         /* 56: the trace had it at */
    uint32_t reserved;      /* 60 */
};
_Static_assert(sizeof(struct tbd_disk_raised) == 64, "tbd_disk_raised is 64 bytes");

/* A place in the order of events: after `order` log messages of the window, at relative time
 * `time`. */
struct tbd_disk_when {
    uint32_t window; /*  0 */
    uint32_t order;  /*  4: log messages of the window before it */
    uint64_t time;   /*  8: relative to the window's first time */
};
_Static_assert(sizeof(struct tbd_disk_when) == 16, "tbd_disk_when is 16 bytes");

struct tbd_disk_config {
    uint64_t window_blocks; /*  0: N */
    uint64_t hook_set;      /*  8 */
    /* 16: bytes that the trace may have (budget or keep); 0: no limit, or not known */
    uint64_t budget;
    uint64_t flags; /* 24: TBD_CONFIG_* */
};
_Static_assert(sizeof(struct tbd_disk_config) == 32, "tbd_disk_config is 32 bytes");
#define TBD_CONFIG_COUNT_LATER 1u /* windows were recorded uncounted */
/* of native play: times count its stops, until a replay has found the blocks between them (replay/native/) */
#define TBD_CONFIG_COUNT_STOPS 2u
#define TBD_CONFIG_OWN_CODE    4u /* recorded by native play */

struct tbd_disk_module {
    uint64_t inode;   /*  0 */
    uint64_t bytes;   /*  8: size of the file */
    int64_t mtime_ns; /* 16 */
    uint32_t device;  /* 24 */
    uint32_t digest;  /* 28: of pieces of the file (modules.h); 0: older traces have none */
};
_Static_assert(sizeof(struct tbd_disk_module) == 32, "tbd_disk_module is 32 bytes");

#define TBD_DISK_THREAD_NAMED 4u /* beside enum tbd_thread_event: prctl(PR_SET_NAME) */

struct tbd_disk_thread {
    uint32_t event;  /*  0: enum tbd_thread_event without SWITCH, or TBD_DISK_THREAD_NAMED */
    uint32_t thread; /*  4: tid */
    uint32_t from;   /*  8: START: its creator */
    uint32_t value;  /* 12: END: exit status */
    uint64_t name;   /* 16: NAMED: address of the string */
};
_Static_assert(sizeof(struct tbd_disk_thread) == 24, "tbd_disk_thread is 24 bytes");

/* A thread that had control in the window.  The last one is in control at the window's end.  In a
 * window without this record the thread that had control before kept it all the time. */
struct tbd_disk_ran {
    uint32_t thread;   /* 0: tid */
    uint32_t switches; /* 4: to it */
    uint64_t blocks;   /* 8: entries */
};
_Static_assert(sizeof(struct tbd_disk_ran) == 16, "tbd_disk_ran is 16 bytes");

/* In REGION records, with TBD_REGION_*: the mapping is older than the trace's beginning, so unknown
 * pages are not simply zero. */
#define TBD_DISK_REGION_UNKNOWN 0x80000000u

/* Kinds in TBD_REC_PAGES. */
#define TBD_PAGES_CAPTURED 1u /* contents after a modification are in the window's page table */
#define TBD_PAGES_FIRST    2u /* contents from before its first use are */

/* How much of a window is kept: each level includes the levels below it. */
enum tbd_level {
    TBD_LEVEL_BITS = 1,   /* which words were stored to, which blocks were entered */
    TBD_LEVEL_COUNTS = 2, /* how often, and when last */
    TBD_LEVEL_EVENTS = 3, /* all events */
};

struct tbd_disk_window {
    uint32_t window;      /*   0 */
    uint8_t level;        /*   4: enum tbd_level */
    uint8_t complete;     /*   5 */
    uint16_t flags;       /*   6: TBD_WINDOW_* */
    uint64_t first_time;  /*   8 */
    uint64_t blocks;      /*  16 */
    uint64_t toc_bytes;   /*  24: sizes of its files */
    uint64_t trace_bytes; /*  32 */
    uint64_t block_bytes; /*  40 */
    uint64_t stores;      /*  48 */
    uint64_t calls;       /*  56 */
    uint64_t returns;     /*  64 */
    uint64_t syscalls;    /*  72 */
    uint64_t specials;    /*  80 */
    uint64_t signals;     /*  88 */
    uint64_t pages;       /*  96: entries of its page table */
    uint64_t words;       /* 104: word summaries */
    uint64_t block_ids;   /* 112: block summaries */
    uint64_t highest_id;  /* 120: block ids it may use: the block file holds them all */
};
_Static_assert(sizeof(struct tbd_disk_window) == 128, "tbd_disk_window is 128 bytes");
/* No events were counted, so level 1: words are all those of pages that were modified, blocks all that the program had
 * entered by then, and stores, calls and returns are 0. */
#define TBD_WINDOW_UNCOUNTED 1u

/* `count` consecutive windows, the first of them `window.window`, are one window now, with new
 * files or another level.  If count > 1, moments in them that the index has move: one shift for
 * each window. */
struct tbd_disk_change {
    uint32_t count;                /* 0 */
    uint32_t span;                 /* 4: numbers that the window has now */
    struct tbd_disk_window window; /* 8 */
};
_Static_assert(sizeof(struct tbd_disk_change) == 136, "tbd_disk_change is 136 bytes");
struct tbd_disk_shift {
    uint64_t time;     /*  0: relative */
    uint32_t order;    /*  8: log messages */
    uint32_t reserved; /* 12 */
};
_Static_assert(sizeof(struct tbd_disk_shift) == 16, "tbd_disk_shift is 16 bytes");

/* The trace begins here: earlier windows were dropped. */
struct tbd_disk_base {
    uint32_t window;     /* 0: number of the first */
    uint32_t image;      /* 4: N of image-N; 0: image */
    uint64_t first_time; /* 8 */
};
_Static_assert(sizeof(struct tbd_disk_base) == 16, "tbd_disk_base is 16 bytes");

struct tbd_disk_blocks {
    uint32_t first_id; /* 0 */
    uint32_t count;    /* 4: struct tbd_block_def that follow; offsets count from the payload */
};
_Static_assert(sizeof(struct tbd_disk_blocks) == 8, "tbd_disk_blocks is 8 bytes");

/* A file below keys/: which of up to 64 consecutive windows have a key (keys.h).  Each group has a
 * checksum, so that reading the directory and one group finds a key. */
#define TBD_KEY_WINDOWS 64u
#define TBD_KEY_GROUP   128u
struct tbd_disk_key_span {
    uint32_t windows;  /*  0: how many; then the time where each begins, and where the last one
                        *  ends */
    uint32_t reserved; /*  4 */
    uint64_t count;    /*  8: keys */
    uint64_t bytes;    /* 16: of all groups */
};
_Static_assert(sizeof(struct tbd_disk_key_span) == 24, "tbd_disk_key_span is 24 bytes");
struct tbd_disk_key_group {
    uint64_t key;      /*  0: the first one */
    uint32_t offset;   /*  8: from the end of the directory record */
    uint32_t checksum; /* 12: low half of XXH3_64 of the group's bytes */
};
_Static_assert(sizeof(struct tbd_disk_key_group) == 16, "tbd_disk_key_group is 16 bytes");

#endif
