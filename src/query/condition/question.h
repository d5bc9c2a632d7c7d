// SPDX-License-Identifier: MIT
/* question.h - which event is wanted: from which position, in which direction, of which type, how
 * many events further, under which condition
 *
 * A command makes a question from values (tbd_question_after() and the like, tbd_question_where()),
 * a user writes one: "FROM DIR TYPE COUNT [of EXPR] [where CONTEXT]".  The parts that a user wrote
 * keep their places in the text, so that messages point at the wrong word; the parts that a command
 * adds have no place.
 *
 * A question that could not be made because memory ran out is `is_lost`: asking it fails with
 * TBD_NOMEM. */
#ifndef TBD_QUERY_QUESTION_H
#define TBD_QUERY_QUESTION_H

#include "query/condition/expr_make.h"

enum tbd_from { TBD_FROM_CURRENT = 0, TBD_FROM_FIRST, TBD_FROM_LAST, TBD_FROM_POSITION };

#define TBD_QUESTION_ALL UINT64_MAX /* as a count */

struct tbd_seen_jumps;

struct tbd_question {
    enum tbd_from from;
    struct tbd_position position; /* TBD_FROM_POSITION */
    bool is_search;               /* false: go to `from`, nothing else is filled */
    bool backward;
    bool is_lost; /* no memory */
    /* Events of func_exit say which call's frame ends (TBD_EVENT_HAS_CALL, TBD_EVENT_OVER), those of
     * func_enter come from the call, not from an import stub on the way. */
    bool keeps_frames;
    /* func_enter with keeps_frames, in a function, which is the first name in `where`: also the events
     * of func_exit that may end the frame of one of the entries, in this window or an earlier one.
     * `where` is not about them. */
    bool with_returns;
    /* func_enter without keeps_frames, in a function, which is the first name in `where`: also all events of
     * func_exit in its own code, those in functions to which it jumps that may end its frames
     * (TBD_EVENT_ELSEWHERE), and entries for which `where` does not hold (TBD_EVENT_UNWANTED).  Entries by jumps that have no
     * operands stay without them (TBD_EVENT_BARE), whether `where` holds for them or not. */
    bool own_returns;
    /* func_enter: entries by calls, by import stubs and of signals' handlers, not those by other jumps. */
    bool only_calls;
    /* func_enter: nobody looks at the operands of events (TBD_EVENT_BARE), store, load: nor at new values, but for what `where` needs of
     * them. */
    bool skips_operands;
    /* func_enter without `where`: also all events of func_exit. */
    bool every_return;
    /* Borrowed, by window (tbd_trace_window_count() of them); NULL: none. */
    const uint8_t *only; /* only the windows with 1 are searched */
    uint8_t *searched;   /* receives 1 for those that were searched */
    /* Borrowed; with own_returns, NULL: jumps that name no place are not followed (search/seen_jumps.h). */
    struct tbd_seen_jumps *seen_jumps;
    uint32_t keeps; /* kept values in `where` (expr_keep.h): events come with `kept` */
    bool
        keeps_stack; /* with keeps_frames: one more kept value, the calls around the event (TBD_KEPT_FRAMES) */
    enum tbd_event_type type;
    uint64_t count;         /* >= 1 */
    struct tbd_expr *where; /* owned; NULL = every event of the type */
    uint64_t since, until;  /* only events from this time on, and with has_until before that one */
    bool has_until;
};

/* The places of a question's parts in the text from which it was read; an end of 0: it has no such
 * part. */
struct tbd_question_words {
    const char *text;      /* borrowed */
    size_t of;             /* the word "of" */
    size_t object, of_end; /* its expression: [object, of_end) */
    size_t where, end;     /* the condition: [where, end) */
};

/* ---- questions made by commands: the next event, or the one before, without a condition ---- */

struct tbd_question tbd_question_first(enum tbd_event_type type);
struct tbd_question tbd_question_last(enum tbd_event_type type);
struct tbd_question tbd_question_after(struct tbd_position position, enum tbd_event_type type);
struct tbd_question tbd_question_before(struct tbd_position position, enum tbd_event_type type);
/* All events, from the first one on. */
struct tbd_question tbd_question_all(enum tbd_event_type type);

/* Only events for which this condition holds too; takes `condition`, which is NULL if memory ran
 * out. */
void tbd_question_where(struct tbd_question *question, struct tbd_expr *condition);
/* Only events whose own value compares with a number in this way. */
void tbd_question_where_field(struct tbd_question *question, enum tbd_event_field field,
                              enum tbd_expr_op op, uint64_t value);

/* `since` and `until` become a part of `where`, which not all events of some questions must meet. */
void tbd_question_where_span(struct tbd_question *question);

/* ---- questions of users: text[from, to) ---- */

/* Reads a position or a search, and leaves the condition for tbd_question_take_where().  On failure
 * *error points at the wrong word. */
TBD_MUST_CHECK enum tbd_status tbd_question_read(const char *text, size_t from, size_t to,
                                                 struct tbd_question *out,
                                                 struct tbd_question_words *words,
                                                 struct tbd_query_error *error);
/* The same after "then": "DIR TYPE ...", from the current position on. */
TBD_MUST_CHECK enum tbd_status tbd_question_read_next(const char *text, size_t from, size_t to,
                                                      struct tbd_question *out,
                                                      struct tbd_question_words *words,
                                                      struct tbd_query_error *error);
/* "TYPE [of EXPR] [where CONTEXT]", all of them. */
TBD_MUST_CHECK enum tbd_status tbd_question_read_all(const char *text, size_t from, size_t to,
                                                     struct tbd_question *out,
                                                     struct tbd_question_words *words,
                                                     struct tbd_query_error *error);
/* "[of EXPR] [where CONTEXT]": the type is known. */
TBD_MUST_CHECK enum tbd_status tbd_question_read_tail(const char *text, size_t from, size_t to,
                                                      struct tbd_question_words *words,
                                                      struct tbd_query_error *error);
/* Adds the condition that was read. `own` gives the words in it whose meaning only the caller
 * knows; NULL: no such words. */
TBD_MUST_CHECK enum tbd_status tbd_question_take_where(struct tbd_question *question,
                                                       const struct tbd_question_words *words,
                                                       const struct tbd_expr_words *own,
                                                       struct tbd_query_error *error);

/* All of text[from..), with its condition; "of" is not understood. */
TBD_MUST_CHECK enum tbd_status tbd_question_parse(const char *text, size_t from,
                                                  struct tbd_question *out,
                                                  struct tbd_query_error *error);
/* The same for tbd_question_read_all(). */
TBD_MUST_CHECK enum tbd_status tbd_question_parse_all(const char *text, size_t from,
                                                      struct tbd_question *out,
                                                      struct tbd_query_error *error);

/* ---- both ---- */

/* It counts all instructions: no events need to be searched. */
bool tbd_question_is_states(const struct tbd_question *question);
/* A copy with its own condition, whose names are not bound. */
TBD_MUST_CHECK enum tbd_status tbd_question_copy(const struct tbd_question *question,
                                                 struct tbd_question *out);
void tbd_question_free(struct tbd_question *question);

#endif
