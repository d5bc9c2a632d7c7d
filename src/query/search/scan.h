// SPDX-License-Identifier: MIT
/* scan.h - a window's events of one type, in order, with their positions */
#ifndef TBD_QUERY_SCAN_H
#define TBD_QUERY_SCAN_H

#include "query/session/code/disas.h"
#include "query/session/code/register_moves.h"
#include "query/session/event.h"
#include "query/session/source/line_starts.h"
#include "query/search/probes.h"
#include "query/session/callers.h"
#include "format/window/cursor.h"

/* The positions strictly between two others; `from_start`, `to_end`: no bound on that side. */
struct tbd_span {
    struct tbd_position after, before;
    bool from_start, to_end;
};

/* A call whose target, the next block of its thread, has not been entered yet. */
struct tbd_scan_call {
    bool is_there;
    bool by_jump;    /* a stub or a tail call jumps to it */
    uint64_t target; /* 0: any block that comes next */
    struct tbd_event event;
    uint64_t made_at; /* time of the block that ends with the call; 0: in an earlier window */
    uint64_t back;    /* where it returns to */
};

/* What a call handed to the function that it entered, for a jump from that function's first block (scan_jumps.h). */
struct tbd_scan_handed {
    uint64_t time;  /* of that block; 0: there is none */
    uint32_t block; /* its id */
    uint64_t back;  /* where the call returns to */
    struct tbd_call_operands operands;
};

#define TBD_SCAN_MOVES 32u

/* The moves of a block, kept for the next time it comes. */
struct tbd_scan_moves {
    uint32_t block; /* id; 0: none */
    struct tbd_register_moves moves;
};

/* What leads to the next block of a thread, where no call does (scan_jumps.h). */
struct tbd_scan_way {
    uint32_t block;     /* the thread's block before, if it ran to its end; 0: not known */
    bool is_at_start;   /* the thread has entered no block in this window */
    uint32_t held;      /* the block that would have led on, had no signal come; 0: none */
    uint64_t held_back; /* where the thread goes on when the handler is done */
};

/* State of a thread that does not run now. */
struct tbd_scan_turn {
    uint32_t thread;
    struct tbd_scan_call waiting;
    struct tbd_scan_way way;
};

struct tbd_scan {
    /* set by the caller */
    const struct tbd_window *window;
    struct tbd_disas *disas;
    struct tbd_symbols
        *symbols; /* tells jumps within a function from jumps to one; NULL: all count */
    enum tbd_event_type type;
    struct tbd_span span;
    const uint8_t *blocks; /* by id: what this block may hold (search_plan.h)?  NULL: all may */
    /* store, load: only those that touch [range_start, range_end) are wanted */
    bool has_range;
    uint64_t range_start, range_end;
    bool
        has_pc; /* block_entry: entries of a block that contains `pc`, at that instruction; state: that instruction alone */
    uint64_t pc;
    struct tbd_line_starts *lines; /* for line events */
    struct tbd_probes *probes;     /* receives all stores; NULL if not wanted */
    struct tbd_callers *callers;   /* kept up to date; NULL if not wanted */
    bool keeps_frames;             /* see tbd_question.keeps_frames; needs `callers` */
    bool with_returns;             /* func_enter: all events of func_exit too */
    bool
        own_returns; /* func_enter: those in blocks with TBD_PLAN_RETURN, entries with TBD_PLAN_OTHER */
    bool every_return; /* func_enter: all events of func_exit, and no more */
    bool
        with_jumps; /* func_enter: those by jumps without operands, to blocks with TBD_PLAN_JUMPED */
    bool only_jumps; /* ... and no other events */
    bool
        makes_operands; /* ... with operands, where these follow from those of a call right before (with own_returns) */
    uint64_t seeded_at; /* `callers` are as of this block; 0: of the window's start */
    /* Called in order; false stops the walk. With probes the walk goes on, but emit is not called
     * again. */
    bool (*emit)(void *context, struct tbd_event *event);
    /* Called when another thread takes over; it may exchange `callers`.  NULL if not wanted. */
    void (*turn)(void *context, uint32_t from, uint32_t to);
    void *context;
    /* the walk's own state */
    struct tbd_cursor cursor;
    uint32_t limit; /* only instructions of the current block below this one ran */
    uint32_t insn;  /* the op whose effects are not applied yet: see settle() in scan.c */
    bool has_push;  /* it is a call: a frame for `callers` */
    uint64_t push_slot, push_pc, push_time;
    uint64_t due; /* bit i: instruction i of the block `due_at` is an event, not delivered yet */
    struct tbd_event due_at; /* position of its first instruction */
    uint32_t due_id;
    bool stopped;
    struct tbd_scan_call waiting; /* the thread's previous block ended with a call */
    struct tbd_scan_way way;
    struct tbd_scan_handed handed;               /* with makes_operands */
    struct tbd_scan_moves moves[TBD_SCAN_MOVES]; /* at the block's id modulo their number */
    struct tbd_scan_turn *turns;                 /* of other threads */
    size_t turn_count, turn_capacity;
    bool has_switch; /* `switched` waits for the block that the thread enters */
    struct tbd_event switched;
};

/* Walks until emit returns false, or to the end of the span or window. */
void tbd_scan_run(struct tbd_scan *scan);

/* Where a walk starts if it needs nothing from before but `callers`: at the block before the span. */
uint64_t tbd_scan_start_time(const struct tbd_scan *scan);

/* May a jump of an import stub, or a tail call, to `target` enter a function there? */
bool tbd_scan_is_function(struct tbd_symbols *symbols, uint32_t window, uint64_t target);

/* Could ops of this block be events of `type`?  Always for block_entry; for loads only a replay
 * tells. */
bool tbd_scan_block_has(const struct tbd_block *block, enum tbd_event_type type);

#endif
