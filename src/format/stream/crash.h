// SPDX-License-Identifier: MIT
/* crash.h - rings of what threads ran, in memory that outlives the program (mode=crash)
 *
 * The memory is that of a stream (stream.h) in which nothing is handed over: its definitions and their code
 * are as in a stream, and its areas are the rings.  Area 0 is struct tbd_crash; area 1 + n is the ring of
 * thread number n; a guard page follows each.  When the program has ended the collector reads it.
 *
 * A ring has a block id for each block entered, 4 bytes each, and a 0 after the last: translated code
 * stores 8 bytes and then goes on by 4.  At the ring's end it goes on at its start.  A ring may be shorter than its
 * area, and change its length: 0s in it then mean nothing, but for the first one.
 *
 *     ... 17 12 12 12 40  0  5  9  9 ...        40 was entered last, 5 is the oldest that is left
 *
 * CRASH-1  An id that is not 0 was entered before the one that follows it, up to the 0.  So any part of a
 *     ring makes sense. (not checked: killing programs anywhere does, test_free.py)
 * CRASH-2  A block's module is the last one with a first block not after it whose range has its start.
 *     (not checked: test_free.py compares names)
 * CRASH-3  Stamps order the threads.  The entries of a thread before one are older than those of another thread after a larger one.
 *     0 is not known. (not checked: test_merged.py has programs write their order down)
 *
 * After the rings' areas, from area TBD_CRASH_TABLES on, lie two tables of 8 bytes for each block id, from 1:
 * when it was entered first (microseconds after started_us, plus 1), and when last: the time of the end of the
 * lap of the ring in which that was, in the same unit, times 2^22, plus the place in the ring.  Laps that are not over are
 * in the rings only.  0: not entered, or not known.
 *
 * After these, parts of the program that have longer rings of their own (option `parts`): for each block id its class, 4
 * bytes, the part in the lower and the module in the upper half; then for each part TBD_CRASH_PART_BYTES for rows.  A lap that is
 * over leaves its entries there, in the ring of their part.  Part 0 has those with which another module was entered.
 *
 * After what there is of these, value_slots slots for each ring, and memory_slots for the first (format/stream/crash_values.h); and after those, for each of the first
 * tbd_condensed_rings() rings its older laps (format/stream/condensed.h).
 *
 * Readers treat all of it as hostile: a program can scribble over the memory. */
#ifndef TBD_FORMAT_CRASH_H
#define TBD_FORMAT_CRASH_H

#include "format/stream/condensed.h"
#include "format/stream/crash_values.h"
#include "format/stream/stream.h"

#define TBD_CRASH_RINGS       1024u
#define TBD_CRASH_MODULES     512u
#define TBD_CRASH_PATH_BYTES  256u
#define TBD_CRASH_FIRST       1u
#define TBD_CRASH_LAST        2u
#define TBD_CRASH_KEPT        4u
#define TBD_CRASH_IDS         (1u << 20) /* of the tables */
#define TBD_CRASH_TABLES      (2u + TBD_CRASH_RINGS)
#define TBD_CRASH_LAP_SHIFT   22u
#define TBD_CRASH_FIRST_LAP   2u
#define TBD_CRASH_TABLE_BYTES (2ull * TBD_CRASH_IDS * sizeof(uint64_t))
#define TBD_CRASH_RING_BYTES  (256u << 10) /* the least: area 0 is as large */
#define TBD_CRASH_PARTS       16u          /* the first is the one of modules */
#define TBD_CRASH_PART_NAME   48u
#define TBD_CRASH_PART_BYTES  (4ull << 20)
#define TBD_PART_RANGES       512u
#define TBD_CRASH_KEEPS_RINGS (1u << 31) /* threads' rings, with values and tables */
#define TBD_CRASH_WISHES      4096u      /* bytes of the text of all triggers */
#define TBD_MEMORY_MOST_BYTES (TBD_VALUE_MEMORY_SLOTS * TBD_VALUE_SLOT_BYTES)
/* All areas: of the shortest rings, with all that can be beside them. */
#define TBD_CRASH_MOST_AREAS                                                                       \
    (TBD_CRASH_TABLES + 2u +                                                                       \
     (TBD_CRASH_ALL_BYTES + (uint64_t)TBD_CRASH_RINGS * TBD_VALUE_MOST_BYTES +                     \
      TBD_MEMORY_MOST_BYTES + TBD_CONDENSED_ALL +                                                  \
      (uint64_t)TBD_CONDENSED_RINGS * TBD_CONDENSED_MORE) /                                        \
         TBD_CRASH_RING_BYTES)
/* From the first of these areas on. */
#define TBD_CRASH_CLASSES_AT TBD_CRASH_TABLE_BYTES
#define TBD_CRASH_ROWS_AT    (TBD_CRASH_CLASSES_AT + TBD_CRASH_IDS * sizeof(uint32_t))
#define TBD_CRASH_ALL_BYTES  (TBD_CRASH_ROWS_AT + TBD_CRASH_PARTS * TBD_CRASH_PART_BYTES)

/* A file mapped executable, as it was when block `first_block` was made; path "": none. */
struct tbd_crash_module {
    uint64_t start;                  /*   0 */
    uint64_t end;                    /*   8 */
    uint64_t file_offset;            /*  16: of `start` */
    uint32_t first_block;            /*  24: id */
    uint32_t reserved;               /*  28 */
    char path[TBD_CRASH_PATH_BYTES]; /* 32: ends with a NUL */
};
_Static_assert(sizeof(struct tbd_crash_module) == 288, "tbd_crash_module is 288 bytes");

/* An entry that a part keeps.  `moment` is written last: a row with 0 there is none. */
struct tbd_crash_row {
    uint64_t moment; /*  0: as in the table of last entries */
    uint32_t block;  /*  8: id */
    uint32_t tid;    /* 12 */
};
_Static_assert(sizeof(struct tbd_crash_row) == 16, "tbd_crash_row is 16 bytes");

struct tbd_crash_part {
    uint64_t count;    /*  0: rows ever written; the newest has the place (count - 1) % capacity */
    uint32_t capacity; /*  8: rows, a power of 2; 0: there is no such part */
    uint32_t is_found; /* 12: not 0: a module had the code of this function or source file */
    char name[TBD_CRASH_PART_NAME]; /* 16: of a module, or `modules`; ends with a NUL */
};
_Static_assert(sizeof(struct tbd_crash_part) == 64, "tbd_crash_part is 64 bytes");

/* Code of a part of the program that the option `parts` has named: as a request brings it (format/probe/trigger.h). */
struct tbd_part_range {
    uint64_t start;                 /*  0 */
    uint64_t end;                   /*  8: the address after it */
    char name[TBD_CRASH_PART_NAME]; /* 16: of the part; ends with a NUL */
};
_Static_assert(sizeof(struct tbd_part_range) == 64, "tbd_part_range is 64 bytes");

/* While the entries of a ring's lap go to the parts.  A program that is killed meanwhile has some of them there already, as rows with
 * this moment, and all in the ring. */
struct tbd_crash_sorting {
    uint64_t moment; /*  0: of the lap's first entry; 0: no lap is sorted out */
    uint32_t module; /*  8: before it, as in last_modules */
    uint32_t reserved;
};

/* A module has come or gone, and triggers or parts wait for code: the engine counts `wanted`, and waits at `done`; the collector has places
 * looked for again, which posts a request (format/probe/trigger.h) and wakes the engine, and makes `done` the same. */
struct tbd_crash_look {
    uint32_t wanted;               /* futex: of the engine's alone */
    uint32_t done;                 /* futex: of the collector's */
    char wishes[TBD_CRASH_WISHES]; /* the triggers that the engine has, as text; ends with a NUL */
};

struct tbd_crash {
    uint32_t module_count; /* 0: complete ones */
    uint32_t thread_count; /* 4: rings ever used */
    uint32_t signo; /* 8: the signal that the program dies of; 0: none that it has seen coming */
    uint32_t tid;   /* 12: of the thread that has it */
    uint8_t siginfo[TBD_SIGINFO_BYTES]; /* 16 */
    struct tbd_regs regs;               /* 144: of that thread */
    uint32_t tids[TBD_CRASH_RINGS];     /* of the thread that used the ring last */
    struct tbd_crash_module modules[TBD_CRASH_MODULES];
    uint32_t
        goes_on; /* 1: the program goes on when the collector has the dump that is being sent */
    uint32_t resumed;        /* how often it went on after one */
    uint64_t ring_bytes;     /* the part of each ring's area that is used now; it can be changed */
    uint32_t tables;         /* TBD_CRASH_FIRST, _LAST, _KEPT: what there is beside the rings */
    uint32_t answered_dumps; /* of asked_dumps, those that the collector has */
    uint64_t started_us;     /* CLOCK_REALTIME at the start */
    struct tbd_crash_part parts[TBD_CRASH_PARTS];
    uint32_t last_modules[TBD_CRASH_RINGS]; /* before each ring's lap, as in a class; 0: none */
    uint64_t values_at;                     /* from the first of the areas of tables on */
    uint32_t value_slots; /* of each ring (format/stream/crash_values.h); 0: there are none */
    uint32_t record;      /* the dial */
    uint32_t laps
        [TBD_CRASH_RINGS]; /* of each ring, from TBD_CRASH_FIRST_LAP; a ring that is given away skips one; 0: not counted */
    uint32_t value_next[TBD_CRASH_RINGS]; /* slots that were written so far */
    struct tbd_crash_sorting sorting[TBD_CRASH_RINGS];
    struct tbd_crash_look look;
    uint32_t
        keeps; /* what the dump that is being sent has: bit N for part N, TBD_CRASH_KEEPS_RINGS; 0: everything */
    uint32_t asked_dumps;     /* how many `tbd dump` has asked for, each as it begins */
    uint64_t condensed_at;    /* from the first of the areas of tables on */
    uint64_t condensed_bytes; /* of each ring's chunks; 0: laps that are over are forgotten */
    struct tbd_lap_call lap_call;
    uint64_t stamps_from, stamps_from_ns; /* the same moment, as a stamp and by CLOCK_MONOTONIC */
    uint32_t stamps_count_ns;             /* not 0: stamps are times of that clock */
    uint32_t without_ring;                /* threads for which there was none, ever */
    uint64_t called_at
        [TBD_CRASH_RINGS]; /* of each ring: a stamp after its last entry, in a system call; 0: its thread is in none */
    uint32_t memory_slots; /* of the first ring, after all value_slots; 0: there are none */
    uint32_t memory_next;  /* as value_next */
};
_Static_assert(sizeof(struct tbd_crash) <= 192u << 10,
               "format/probe/trigger.h has the rest of area 0");

#endif
