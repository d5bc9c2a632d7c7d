// SPDX-License-Identifier: MIT
/* age_private.h - what the three files of the ager share
 *
 * age_sizes.c knows what the trace takes on disk, age_plan.c decides which change is next, and
 * age.c makes it.  Invariants: see age.c.  All functions are called with the lock. */
#ifndef TBD_ORGANIZER_AGE_PRIVATE_H
#define TBD_ORGANIZER_AGE_PRIVATE_H

#include "organizer/age.h"

/* A merged window consists almost only of modified pages, whose number hardly grows with its
 * length; but a question about a moment waits until the window is replayed up to it.  512 million
 * block entries are about a second natively, ten when nothing but a full replay will do (slice by
 * slice: replay/slices.h).  Windows get longer only if the budget cannot be met otherwise; event
 * times in a window have 32 bits. */
#define TBD_MERGED_BLOCKS      (512ull << 20)
#define TBD_MERGED_BLOCKS_MOST (1ull << 31)
/* Shorter ones are merged again before long. */
#define TBD_BRIEF_BLOCKS (TBD_MERGED_BLOCKS / 2)

struct tbd_aged_window {
    struct tbd_disk_window disk;
    uint64_t bytes; /* of its files */
    uint32_t span;
    bool stays;     /* cannot be lowered or merged */
    uint64_t ended; /* seconds */
};

#define TBD_AGED_LEVELS (TBD_LEVEL_EVENTS + 1)

struct tbd_aged_level {
    uint64_t bytes;
    uint32_t count;
};

struct tbd_ager {
    struct tbd_age_limits limits;
    struct tbd_writer *writer;
    pthread_mutex_t *lock;
    struct tbd_aged_window *windows; /* owned */
    size_t count, capacity;
    struct tbd_aged_level levels[TBD_AGED_LEVELS];
    uint64_t other; /* bytes of files that are neither windows nor growing */
    uint64_t keys;  /* of these, bytes of the index over windows */
    uint32_t key_files;
    /* bytes of `cache/`, or its share if that is larger: questions keep it below their share
     * themselves */
    uint64_t cache;
    /* bytes of key files that are being written, or wait for space */
    uint64_t keys_expected;
    uint64_t measured_bytes;   /* of windows, when other files were measured */
    uint32_t measured_windows; /* added since then */
    uint64_t largest;          /* the largest window so far */
    uint64_t largest_change;   /* the largest file that the ager has written */
    uint32_t writing;          /* windows whose files are being written */
    uint64_t index_bytes;      /* of all growing files, when the index was last rewritten */
    bool has_stopped;
    bool is_stuck;           /* over budget, and nothing can be done */
    struct tbd_trace *trace; /* owned; NULL, or opened after the last merge or drop */
};

enum tbd_age_action {
    TBD_AGE_NOTHING,
    TBD_AGE_KEYS,
    TBD_AGE_EVENTS,
    TBD_AGE_COUNTS,
    TBD_AGE_MERGE,
    TBD_AGE_DROP,
    TBD_AGE_SHORTEN
};

struct tbd_age_plan {
    enum tbd_age_action action;
    uint32_t first;
    uint32_t count;
};

/* ---- age_sizes.c ---- */

/* The bytes of its TOC, trace and block file. */
uint64_t tbd_age_window_bytes(const struct tbd_disk_window *window);
/* The bytes of its stops, which native play writes before it. */
uint64_t tbd_age_stops_bytes(const struct tbd_ager *ager, const struct tbd_disk_window *window);
/* What the ager cannot make smaller; what windows take; and both. */
uint64_t tbd_ager_fixed_bytes(const struct tbd_ager *ager);
uint64_t tbd_ager_window_bytes(const struct tbd_ager *ager);
uint64_t tbd_ager_total_bytes(const struct tbd_ager *ager);
void tbd_ager_measure_others_locked(struct tbd_ager *ager);
void tbd_ager_measure_if_near_locked(struct tbd_ager *ager);
/* A window is counted at its level (`sign` 1), or no longer (-1). */
void tbd_ager_count_window(struct tbd_ager *ager, const struct tbd_aged_window *window, int sign);
bool tbd_ager_windows_follow(const struct tbd_ager *ager);

/* ---- age_plan.c ---- */

/* Seconds. */
uint64_t tbd_age_now(void);
/* Would the trace exceed a limit with all files that are being written, and `more` windows? */
bool tbd_ager_is_full(const struct tbd_ager *ager, uint32_t more);
struct tbd_age_plan tbd_ager_make_plan(const struct tbd_ager *ager);

#endif
