// SPDX-License-Identifier: MIT
/* diff.h - two runs compared: what the files of this folder share
 *
 * A run is a side.  Each of its threads is a sequence of steps.  A step is a block entry, named by a key that means
 * the same on both sides: module and offset, or function and line where the two sides have different builds of a module.
 * Blocks of ignored modules are no steps.  What a handler of a signal does is a sequence of its own, so that a signal
 * that comes elsewhere is no difference.  Two threads with the same number, in the order in which threads were made,
 * belong together, and their first difference is the first step whose keys differ. */
#ifndef TBD_QUERY_DIFF_H
#define TBD_QUERY_DIFF_H

#include "query/commands/commands.h"
#include "format/window/cursor.h"
#include "query/diff/diff_builds.h"

#define TBD_DIFF_IGNORED_MAX 32u
#define TBD_DIFF_CHUNK       4096u /* steps whose keys make one number */

/* ---- what is not compared ---- */

struct tbd_diff_rules {
    const char *modules[TBD_DIFF_IGNORED_MAX]; /* borrowed: words of the command */
    uint32_t module_count;
    bool with_libc;              /* the C library and the dynamic linker are compared, too */
    bool without_libc;           /* they never are */
    bool addresses, pids, times; /* differences that come from these are passed over */
    bool only_first;             /* the rest of the runs is not counted */
    bool is_brief;               /* `why` is not asked */
    uint32_t max;                /* differences of a thread that are shown */
};
bool tbd_diff_is_ignored(const struct tbd_diff_rules *rules, const char *module);

/* ---- a side (diff_side.c) ---- */

struct tbd_diff_code { /* of a block, by id */
    bool is_known;
    uint64_t key;               /* 0: it has lines, or is no step */
    uint32_t lines, line_count; /* of `line_keys` */
};

struct tbd_diff_side {
    unsigned number; /* 0, 1 */
    struct tbd_session session;
    bool is_open;
    const struct tbd_diff_rules *rules;   /* borrowed */
    const struct tbd_diff_builds *builds; /* borrowed */
    struct tbd_diff_code *codes;          /* owned; by block id */
    size_t code_capacity;
    uint64_t *line_keys; /* owned */
    size_t line_key_count, line_key_capacity;
    uint64_t *counts; /* owned; entries by block id, as far as the run was walked */
    size_t count_capacity;
};

void tbd_diff_side_close(struct tbd_diff_side *side);
/* The steps of a block; NULL without memory. */
const struct tbd_diff_code *tbd_diff_code_of(struct tbd_diff_side *side,
                                             const struct tbd_cursor *cursor);
/* A key for an instruction of any module: both sides are at the same place if it is the same. */
uint64_t tbd_diff_place_key(struct tbd_diff_side *side, uint32_t window, uint64_t pc);

/* ---- steps (diff_steps.c) ---- */

struct tbd_diff_step {
    uint64_t key, time;
    uint32_t id;
};

/* Where a chunk of steps begins, and what its steps were. */
struct tbd_diff_mark {
    uint64_t time;   /* of its first step */
    uint64_t before; /* of the step before it; UINT64_MAX: none */
    uint64_t last;   /* key of the step before it */
    uint64_t hash;
    uint32_t depth; /* handlers that have not returned */
};

/* A thread's steps, or those of its signal handlers. */
struct tbd_diff_stream {
    uint32_t thread; /* number in the trace's table */
    bool is_handlers;
    uint64_t count; /* of steps */
    uint64_t hash;  /* of the current chunk's */
    uint64_t last, last_time;
    struct tbd_diff_mark *marks; /* owned */
    size_t mark_count, mark_capacity;
    bool is_over; /* nothing is kept any more: a difference is known */
};

struct tbd_diff_walk {
    struct tbd_diff_side *side;
    struct tbd_diff_stream *streams; /* owned: two of each thread, its own and its handlers' */
    uint32_t *depth;                 /* owned; by thread: handlers that have not returned */
    uint32_t thread_count;
    uint32_t tid, index; /* of the thread looked up last */
    bool no_memory;
};

/* The streams of a run, without a step. */
TBD_MUST_CHECK enum tbd_status tbd_diff_walk_start(struct tbd_diff_side *side,
                                                   struct tbd_diff_walk *walk);
void tbd_diff_walk_end(struct tbd_diff_walk *walk);
/* Adds the steps of a window to the streams, and counts its block entries. */
TBD_MUST_CHECK enum tbd_status tbd_diff_walk_window(struct tbd_diff_walk *walk, uint32_t window);

/* Where a reader of one stream is. */
struct tbd_diff_reader {
    struct tbd_diff_side *side;
    uint32_t stream; /* 2 * number of the thread, + 1 for its handlers */
    uint64_t time;   /* of the next block to be looked at */
    uint64_t last;   /* key of the step before it */
    uint32_t depth;  /* handlers that have not returned */
};
/* The stream's next steps, up to `max` and those of the last block; none: it is over. */
TBD_MUST_CHECK enum tbd_status tbd_diff_read(struct tbd_diff_reader *reader,
                                             struct tbd_diff_step *out, size_t max,
                                             size_t *out_count);
#define TBD_DIFF_STEPS_OF_BLOCK 64u /* at most */

/* ---- the first difference (diff_first.c) ---- */

struct tbd_diff_point {
    bool is_there;                    /* the streams differ */
    bool has_before;                  /* there is a last common step */
    struct tbd_diff_step before[2];   /* the last common one, on both sides */
    bool has_step[2];                 /* false: the stream ends there */
    struct tbd_diff_step step[2];     /* the first that differ */
    uint64_t number;                  /* of steps that are equal before */
    struct tbd_diff_reader reader[2]; /* after `step` */
};
/* Walks both runs and finds the first difference of each stream: `points` has one for each pair of them.  With
 * rules->only_first it ends as soon as all are known. */
TBD_MUST_CHECK enum tbd_status tbd_diff_find(struct tbd_diff_side sides[2],
                                             struct tbd_diff_point *points, uint32_t count,
                                             struct tbd_diff_side **out_failed);

#endif
