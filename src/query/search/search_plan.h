// SPDX-License-Identifier: MIT
/* search_plan.h - which windows and which blocks can hold an answer
 *
 * A condition is evaluated with the facts about one block or window alone, to one of three answers
 * (no, perhaps, yes), through and, or, not. Its conjuncts give bounds of time, and the instruction
 * of a block_entry question. The index over windows (format/summaries/keys.h) tells what a window
 * contains, for up to 64 windows at once; where the index has a gap, the window's TOC tells it. */
#ifndef TBD_QUERY_SEARCH_PLAN_H
#define TBD_QUERY_SEARCH_PLAN_H

#include "format/summaries/keys.h"
#include "query/condition/question.h"
#include "query/search/search_tails.h"
#include "query/session/session.h"

/* What a block may hold: a wanted event; with tbd_question.own_returns a return that may be the function's, or
 * the first instruction of another function that this return may belong to. */
#define TBD_PLAN_EVENT  1u
#define TBD_PLAN_RETURN 2u
#define TBD_PLAN_OTHER  4u
#define TBD_PLAN_STUB   8u  /* an import stub of the function */
#define TBD_PLAN_JUMPED 16u /* func_enter: a wanted function begins here, which a jump may enter */
#define TBD_PLAN_LEADS                                                                             \
    32u /* it returns for the function, or jumps to one that does: by an address that it does not name */
#define TBD_PLAN_NO_ENTRY (TBD_PLAN_RETURN | TBD_PLAN_LEADS)

/* The plan for the windows of one segment of the index. */
struct tbd_plan_segment {
    const struct tbd_keys *keys; /* borrowed from the trace; NULL: the segment is damaged */
    uint64_t may;                /* mask of windows that may hold an answer */
    uint64_t uncounted;          /* of those that were uncounted when it was written */
    bool made;
};

struct tbd_search_plan {
    enum tbd_event_type type;
    const struct tbd_expr *where; /* borrowed */
    bool has_words;               /* the condition names addresses, or a system call */
    /* a wanted event touches addresses in [range_start, range_end) */
    bool has_range;
    uint64_t range_start, range_end;
    bool has_pc; /* pc == this, necessarily */
    uint64_t pc;
    uint64_t time_low, time_high; /* inclusive */
    bool has_thread;              /* thread == this, necessarily */
    uint64_t thread;
    /* the trace has several threads: a function may be entered windows after its call (or: all returns are asked for, too) */
    bool has_threads;
    bool has_jumped;        /* some block is TBD_PLAN_JUMPED */
    bool has_blocks;        /* `blocks` is narrower than "all blocks that have such events" */
    uint8_t *blocks;        /* by id: TBD_PLAN_*; owned */
    struct tbd_tails tails; /* with tbd_question.own_returns; ... */
    size_t seen;            /* ... with this many of its seen_jumps */
    uint32_t block_count;
    uint64_t *wanted; /* owned: a window must have one of these keys; ascending (has_blocks) */
    size_t wanted_count;
    struct tbd_plan_segment *segments; /* owned; for the whole trace, made on first use */
    size_t segment_count;
};

/* Why a window is not searched, or is. */
enum tbd_plan_verdict {
    TBD_PLAN_OTHER_TIME, /* it lies outside the wanted times, or has no event of the type */
    TBD_PLAN_NOT_IN_INDEX,
    TBD_PLAN_NOT_IN_TOC, /* the index does not know it; the window's TOC tells */
    TBD_PLAN_MAY_HOLD,
};

/* Call it after binding, as of `window`. Fills *out for the blocks that `table` knows. */
TBD_MUST_CHECK enum tbd_status tbd_plan_make(const struct tbd_question *question,
                                             struct tbd_session *session, uint32_t window,
                                             struct tbd_search_plan *out);
/* With tbd_question.own_returns: as of its seen_jumps now. */
TBD_MUST_CHECK enum tbd_status tbd_plan_see(const struct tbd_question *question,
                                            struct tbd_session *session, uint32_t window,
                                            struct tbd_search_plan *plan);
void tbd_plan_free(struct tbd_search_plan *plan);
/* Is it addr == *out, of a store or a load?  The address of a fault is in no summary. */
bool tbd_plan_is_access(const struct tbd_search_plan *plan, int32_t index, uint64_t *out);
/* May window `index` hold an answer? Yes, if nothing about it can be read. */
enum tbd_plan_verdict tbd_plan_ask(struct tbd_search_plan *plan, struct tbd_trace *trace,
                                   uint32_t index);

/* search_plan_windows.c: fills wanted and segments.  False without memory. */
bool tbd_plan_make_keys(struct tbd_search_plan *plan, struct tbd_trace *trace);

#endif
