// SPDX-License-Identifier: MIT
/* passing.h - what the files of search_passing.h share */
#ifndef TBD_QUERY_PASSING_H
#define TBD_QUERY_PASSING_H

#include "query/search/condition_bounds.h"
#include "query/search/kept_events.h"
#include "query/search/passing_values.h"
#include "query/search/plain_windows.h"
#include "query/search/value_counts.h"

struct tbd_passing_call { /* as a block with TBD_OP_CALL hands it to the next one */
    uint64_t sp, args[6];
};

/* An entry by a jump, of which the operands are not known yet. */
struct tbd_passing_jump {
    uint32_t time, block, before;
};

struct tbd_passing_window {
    struct tbd_search_run *run;
    const struct tbd_window *toc;   /* borrowed */
    uint32_t count;                 /* ids are below it */
    const struct tbd_block **block; /* by id; owned, as what follows */
    uint8_t *does;                  /* by id: TBD_DOES_* */
    struct tbd_leading leading;     /* of func_enter */
    uint32_t *first;                /* by id: of its counters, one for each op, and one more */
    uint64_t *matched; /* by counter; NULL: by value, or events are handed on one by one, ... */
    struct tbd_kept_events kept; /* ... when the window is over */
    struct tbd_value_counts by_value;
    struct tbd_passing_values *values; /* NULL: nobody asks what stores wrote */
    struct tbd_condition_bounds bounds;

    bool only_counts;     /* an event within the bounds is a match, and nobody looks at it */
    bool is_cut;          /* not all of the window is asked about */
    bool wants_operands;  /* of entries by jumps, too */
    bool wants_one;       /* the first match, or the last one, and how many there are; ... */
    bool has_one;         /* ... this is it: */
    struct tbd_event one; /* its bytes are in `bytes` */
    uint8_t *bytes;       /* owned */
    size_t bytes_capacity;

    uint64_t time;                  /* of the next block, relative */
    uint32_t last;                  /* id of the block before; 0: none */
    bool gives_up;                  /* the window has to be walked */
    struct tbd_passing_call call;   /* of that block */
    struct tbd_passing_jump *jumps; /* owned */
    size_t jump_count, jump_capacity, jump_next;
    struct tbd_waiting_store armed[8]; /* of the present instruction */
    unsigned armed_count;
    uint64_t matches, candidates;
};

#define TBD_DOES_STORE 1u
#define TBD_DOES_WANT  2u /* it may have a wanted event */
#define TBD_DOES_CALL  4u
#define TBD_DOES_RET   8u

/* What the condition says with the event's own values. */
enum tbd_verdict tbd_passing_judge(struct tbd_passing_window *p, const struct tbd_event *event);
/* Is the event wanted?  Its values are within the bounds. */
bool tbd_passing_holds(struct tbd_passing_window *p, const struct tbd_event *event);
/* It is: counts it, at a counter, or hands it on.  False: nobody wants more. */
bool tbd_passing_take(struct tbd_passing_window *p, struct tbd_event *event, uint32_t counter);
/* An event at an instruction of the block that was entered at `time`, relative. */
struct tbd_event tbd_passing_event(const struct tbd_passing_window *p, uint32_t id, uint64_t time,
                                   uint32_t insn);

/* passing_functions.c: the present block is entered by what the block before leads to (TBD_BY_*). */
TBD_MUST_CHECK bool tbd_passing_entry(struct tbd_passing_window *p, uint32_t id, uint8_t by);
/* The last block leads to the window's end. */
TBD_MUST_CHECK bool tbd_passing_last_entry(struct tbd_passing_window *p);
/* The block has a call; it has a return. */
void tbd_passing_call(struct tbd_passing_window *p, uint32_t id, const uint8_t *record);
TBD_MUST_CHECK bool tbd_passing_return(struct tbd_passing_window *p, uint32_t id,
                                       const uint8_t *record);

/* passing_jumps.c: lists an entry at the present block, unless nobody wants it. */
TBD_MUST_CHECK bool tbd_passing_list_jump(struct tbd_passing_window *p,
                                          const struct tbd_event *event);
/* When the window is over: finds their operands.  TBD_NOTFOUND: not of all of them. */
TBD_MUST_CHECK enum tbd_status tbd_passing_take_jumps(struct tbd_passing_window *p);

/* passing_stores.c: `record` is the block's, entered at p->time. */
bool tbd_passing_stores(struct tbd_passing_window *p, uint32_t id, const uint8_t *record);
/* Writes of the kernel, or of the engine: stores of the last block's last instruction. */
bool tbd_passing_writes(struct tbd_passing_window *p, uint32_t kind, const uint8_t *payload,
                        uint32_t bytes);
/* Makes p->values, if the question needs them, and gives all that wait what the window's end has. */
bool tbd_passing_begin_values(struct tbd_passing_window *p);
bool tbd_passing_end_values(struct tbd_passing_window *p);

#endif
