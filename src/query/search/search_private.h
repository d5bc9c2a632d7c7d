// SPDX-License-Identifier: MIT
/* search_private.h - shared by search.c (all windows), search_window.c (one) and search_pool.c
 * (many at once) */
#ifndef TBD_QUERY_SEARCH_PRIVATE_H
#define TBD_QUERY_SEARCH_PRIVATE_H

#include "query/condition/expr_keep.h"
#include "query/session/register_notes.h"
#include "query/search/search_plan.h"
#include "query/search/scan.h"
#include "query/search/search.h"

enum tbd_verdict { TBD_VERDICT_OPEN = 0, TBD_VERDICT_MATCH, TBD_VERDICT_MISS };

/* An event that only registers can decide. */
struct tbd_candidate {
    struct tbd_event event;
    struct tbd_expr *where; /* the condition's meaning here */
    uint64_t stack_bits;    /* which patterns match here */
    uint64_t frame;
    size_t first_memory; /* index into memory_values: memory_count of them */
    enum tbd_verdict verdict;
    struct tbd_kept_value *kept; /* owned; NULL: none */
};

/* The stack of callers of a thread that waits, while a window is walked. */
struct tbd_thread_callers {
    uint32_t thread;
    struct tbd_callers callers;
};

/* The parts to pick from windows (search_pick.c). */
struct tbd_search_picking {
    struct tbd_picker *picker;                     /* owned; NULL: to be made */
    uint8_t *blocks;                               /* owned: the wanted parts of each block */
    struct tbd_pick_range ranges[TBD_PICK_RANGES]; /* the memory that was asked for */
    uint32_t range_count;
    bool is_off; /* whole windows are needed, or cost no more */
};

/* Which returns may end a call, while a window is walked (search_returns.c). */
struct tbd_search_returns {
    struct tbd_thread_returns *threads; /* owned */
    size_t count, capacity;
};

/* The entries by jumps of one window, in order (search_operands.c); names are the event's. */
struct tbd_entry_operands {
    struct tbd_position position;
    uint64_t pc;
    uint32_t thread, flags;
    bool is_known; /* what follows is there */
    uint64_t sp, called_at;
    uint64_t args[6];
};
struct tbd_search_operands {
    struct tbd_entry_operands *all; /* a large buffer, owned */
    size_t count, capacity;
    size_t next; /* a guess: the one after what was looked for last */
};

struct tbd_search_run {
    struct tbd_search *search;
    struct tbd_session *session;
    const struct tbd_question *question;
    struct tbd_expr *where; /* NULL: everything matches */
    uint32_t uses;
    bool wants_values;     /* new values of all matching stores, for printing */
    struct tbd_kept *kept; /* owned: of the event being judged; NULL: the question keeps none */
    struct tbd_search_plan plan;
    struct tbd_span span;
    const struct tbd_window *window; /* perhaps a picked part */
    struct tbd_session_slice slice;  /* the slice that `window` is, or is picked from */
    struct tbd_search_picking picking;
    struct tbd_expr_env env;
    struct tbd_scopes
        *scopes; /* the condition's meaning at each instruction; NULL: the same everywhere */
    struct tbd_expr *here;    /* its meaning at the event being judged */
    uint32_t all_uses;        /* `uses`, and the uses of all meanings so far */
    struct tbd_value *memory; /* env.memory: one per slot */
    size_t memory_capacity;
    /* Walk n asks for the memory that level n needs, and has the answers of the earlier walks. */
    struct tbd_probes *probes[TBD_EXPR_MAX_LEVELS];
    uint32_t next_probe[TBD_EXPR_MAX_LEVELS]; /* number of the next event's first probe */
    uint32_t answered;                        /* walks whose probes are answered */
    uint32_t levels;             /* the most of all meanings so far; 0: they read no memory */
    bool asked;                  /* the current walk has asked for memory */
    bool undecided;              /* ... and has events that it has not decided against */
    struct tbd_bad_events bad;   /* of the last walk that was not counted */
    bool has_callers;            /* the current walk keeps `callers` up to date */
    bool again;                  /* the walks lacked a part of the window: repeat them with it */
    struct tbd_note_sites sites; /* which registers the first walk misses, and where; ... */
    uint64_t missed;             /* ... and at how many events */
    struct tbd_note_sites known; /* those of an earlier window, sorted */
    struct tbd_notes notes;      /* those registers */
    uint64_t noted;              /* events that have looked for theirs, and ... */
    uint64_t unnoted;            /* ... those that still miss them */
    struct tbd_callers callers;  /* the stack of the running thread */
    struct tbd_inlined_calls *inlined; /* owned: of that stack's addresses; NULL: no stack=<...> */
    struct tbd_thread_callers *others;
    size_t other_count, other_capacity;
    struct tbd_line_starts *lines; /* for line events */
    struct tbd_search_returns returns;
    struct tbd_search_operands operands;
    struct tbd_candidate *candidates;
    size_t count, capacity;
    struct tbd_value *memory_values;
    size_t memory_value_count, memory_value_capacity;
    /* counting */
    uint64_t seen, wanted;
    struct tbd_event found;
    /* the whole search */
    uint64_t total;
    bool passed_before, passed_after; /* windows before, after those that are counted */
    bool is_stopped;                  /* `each` wants no more */
    const struct tbd_module *modules; /* the modules to which names are bound */
    size_t module_count;
    uint64_t module_hash;
    bool has_changes; /* no mapping changed inside the window where names were bound, and ... */
    size_t changes;   /* ... this many changed before it */
    enum tbd_status status;
    struct tbd_query_error helper_problem; /* why the condition's variables have no meaning */
    bool has_helper_meaning;               /* one worker found a place where they have one */
};

/* ---- search_scope.c: the meaning of a condition over variables at each instruction ---- */

struct tbd_scopes;
TBD_MUST_CHECK enum tbd_status tbd_scopes_new(struct tbd_session *session, struct tbd_scopes **out);
void tbd_scopes_free(struct tbd_scopes *scopes); /* NULL is fine */
/* Other modules may be mapped now. */
void tbd_scopes_set_window(struct tbd_scopes *scopes, const struct tbd_window *window);
/* Borrowed until tbd_scopes_free(); NULL without memory. */
struct tbd_expr *tbd_scopes_get(struct tbd_scopes *scopes, struct tbd_expr *where,
                                const struct tbd_event *event);
/* Did all of the condition's variables have a meaning at some place? If not, *problem says why, for
 * the first place that was tried (TBD_OK: no place was). */
bool tbd_scopes_have_meaning(const struct tbd_scopes *scopes, struct tbd_query_error *problem);
/* Fills the search's error if the condition names a variable that nothing is called in any module, or is about functions or lines in
 * none of which its variables have a meaning.  Reads debug information only; names are bound anew for the first window that is searched. */
TBD_MUST_CHECK enum tbd_status tbd_search_check_variables(struct tbd_search_run *run);

/* ---- search_judge.c: one event ---- */

/* Evaluates `here` with the values known now. */
enum tbd_verdict tbd_search_judge(struct tbd_search_run *run, const struct tbd_event *event);
/* The same, when nothing more will be known: kept values that are unknown stay so. */
enum tbd_verdict tbd_search_judge_last(struct tbd_search_run *run, const struct tbd_event *event);
/* Finds `here` and evaluates it with the answers of all earlier walks, in the order of their
 * questions. env.memory stays set. */
enum tbd_verdict tbd_search_judge_answered(struct tbd_search_run *run, struct tbd_event *event);
/* Does the event get probes? */
bool tbd_search_asks(const struct tbd_search_run *run, enum tbd_verdict verdict);
/* Asks for the memory that the event needs in this walk. */
void tbd_search_ask(struct tbd_search_run *run, const struct tbd_event *event,
                    enum tbd_verdict verdict);

/* ---- search_pick.c: windows with only those events that matter ---- */

/* Opens run->slice: a picked part, if that is enough for the known needs. Decides whether walks
 * keep a stack of callers. */
TBD_MUST_CHECK enum tbd_status tbd_search_open(struct tbd_search_run *run);
/* Does run->window hold all stores to this memory? If not, it will when it is opened again. */
bool tbd_search_has_stores(struct tbd_search_run *run, uint64_t address, uint32_t bytes);
/* Call it when the plan changed, or the state that walks keep. */
void tbd_search_forget_picker(struct tbd_search_run *run);

/* ---- search_candidates.c: events that only registers can decide ---- */

/* False without memory. */
bool tbd_search_keep_candidate(struct tbd_search_run *run, const struct tbd_event *event,
                               enum tbd_verdict verdict);
/* Frees what they own; there are none after it. */
void tbd_search_forget_candidates(struct tbd_search_run *run);
/* Goes through the candidates in the direction of the search, deciding them as needed. */
TBD_MUST_CHECK enum tbd_status tbd_search_take_candidates(struct tbd_search_run *run);

/* Low 16 bytes of the vector registers; NULL: the state does not hold them. */
const uint8_t *tbd_search_vector(const struct tbd_reg_state *state);

/* ---- search_operands.c: functions that a jump enters ---- */

/* Does the question need operands of such entries? */
bool tbd_search_wants_operands(const struct tbd_search_run *run);
/* Lists an entry of a walk that has no operands and may be wanted. */
bool tbd_search_note_bare(void *run, struct tbd_event *event);
/* Finds the operands of all that are listed, in the open window. */
TBD_MUST_CHECK enum tbd_status tbd_search_find_operands(struct tbd_search_run *run);
/* Fills in those that were found. */
void tbd_search_take_operands(struct tbd_search_run *run, struct tbd_event *event);
/* Finds those of one entry. */
TBD_MUST_CHECK enum tbd_status tbd_search_find_entry(struct tbd_search_run *run,
                                                     struct tbd_event *event);
/* search_window.c: does one replay of the window with notes cost less than stops at this many events? */
bool tbd_search_is_many(const struct tbd_search_run *run, uint64_t events);

/* ---- search_callers.c: run->callers while a window is walked ---- */

/* Does the condition need callers, as far as is known? Whether a variable lies in its function's
 * frame is known when its place is looked up. */
bool tbd_search_needs_callers(const struct tbd_search_run *run);
/* The stack of the thread with which the window begins. */
void tbd_search_seed_callers(struct tbd_search_run *run);
/* The stack that is known, or found by a replay, as of a time before `time`, not far away; 0: none.
 * For the session's own thread, in a trace of one thread. */
#define TBD_SEED_BEFORE 131072u  /* block entries before `time` at which it is looked for */
#define TBD_SEED_REACH  1000000u /* block entries that are walked rather than looking for another */
uint64_t tbd_search_seed_near(struct tbd_search_run *run, uint64_t time);
void tbd_search_change_turn(void *run, uint32_t from, uint32_t to);
/* Frees run->others. */
void tbd_search_forget_callers(struct tbd_search_run *run);

/* ---- search_returns.c: questions that are with_returns, or own_returns ---- */

void tbd_search_note_entry(struct tbd_search_run *run, struct tbd_event *enter);
/* May this return end the frame of an entry, of one in an earlier window too? */
bool tbd_search_wants_return(struct tbd_search_run *run, const struct tbd_event *exit);
/* Finds where the import stub was called whose jump is an entry. */
void tbd_search_take_stub(struct tbd_search_run *run, struct tbd_event *enter);
/* The same with own_returns: for entries of the function, and for all other events.  An entry of another
 * function becomes an event of func_exit with TBD_EVENT_OVERWRITES. */
void tbd_search_note_own_entry(struct tbd_search_run *run, const struct tbd_event *enter);
bool tbd_search_wants_own(struct tbd_search_run *run, struct tbd_event *event);
void tbd_search_free_returns(struct tbd_search_run *run);

/* ---- search_seen.c: own_returns, and jumps that name no place ---- */

/* Plans for all that were seen by now. */
TBD_MUST_CHECK enum tbd_status tbd_search_take_seen(struct tbd_search_run *run, uint32_t window);
/* The open window is opened again, for what its own jumps lead to. */
TBD_MUST_CHECK enum tbd_status tbd_search_see_jumps(struct tbd_search_run *run);

/* ---- windows ---- */

/* Searches one window that is open (run->window); adds to run->total, and sets run->found. */
TBD_MUST_CHECK enum tbd_status tbd_search_one(struct tbd_search_run *run);
/* Opens and searches a slice of a window whose names are bound, or all of the window. TBD_NOWINDOW:
 * the window is left out, and this has been noted. */
TBD_MUST_CHECK enum tbd_status tbd_search_slice(struct tbd_search_run *run,
                                                const struct tbd_session_slice *slice);
/* search_slices.c: a window of `count` slices. */
TBD_MUST_CHECK enum tbd_status tbd_search_slices(struct tbd_search_run *run, uint32_t window,
                                                 uint32_t count);
/* Binds names for window `index`, which the plan kept, opens it and searches it. */
TBD_MUST_CHECK enum tbd_status tbd_search_chosen(struct tbd_search_run *run, uint32_t index);
/* Binds symbols and names as of window `start`, and plans. */
TBD_MUST_CHECK enum tbd_status tbd_search_prepare(struct tbd_search_run *run, uint32_t start);
/* Notes in the session's stats a word of the condition that is also a variable's name, where it is asked. */
void tbd_search_note_words(struct tbd_search_run *run, uint32_t window);
void tbd_search_release(struct tbd_search_run *run);
static inline bool tbd_search_is_done(const struct tbd_search_run *run)
{
    return run->is_stopped || (run->search->each == NULL && run->total >= run->question->count);
}
/* The i-th window (from 0) in the direction of the search. */
static inline uint32_t tbd_search_window_number(const struct tbd_search_run *run, uint32_t start,
                                                uint32_t i)
{
    return run->question->backward ? start - i : start + i;
}

/* Searches these windows, in the direction of the search, on several workers. */
TBD_MUST_CHECK enum tbd_status tbd_search_pool(struct tbd_search_run *run, const uint32_t *windows,
                                               uint32_t count);

#endif
