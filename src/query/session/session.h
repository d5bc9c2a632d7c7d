// SPDX-License-Identifier: MIT
/* session.h - one open trace: handles, caches, the current position
 *
 * Owns everything that a question needs, and opens each part on first use. One thread uses a
 * session. */
#ifndef TBD_QUERY_SESSION_H
#define TBD_QUERY_SESSION_H

#include "format/coding/pick.h"
#include "query/session/bad_events.h"
#include "query/session/breakpoints.h"
#include "query/session/left_out.h"
#include "query/session/code/disas.h"
#include "query/session/code/stack.h"
#include "query/session/user_values.h"
#include "query/session/window_cache.h"
#include "query/values/dwarf_print.h"
#include "replay/slices.h"

#define TBD_SESSION_WINDOWS 4
#define TBD_SESSION_LEFT    16u

#define TBD_STATS_WINDOWS 32u /* the number of searched windows that are named */

struct tbd_session_stats {
    uint32_t considered, skipped, scanned, raised; /* windows */
    uint32_t noted;  /* windows that were replayed for registers at many events */
    uint32_t cached; /* windows that an earlier question had raised */
    uint32_t other_time, not_in_index, not_in_toc; /* why they were skipped */
    uint32_t searched[TBD_STATS_WINDOWS];          /* the numbers of the first windows searched */
    uint32_t searched_count;
    double plan_s, open_s, walk_s; /* seconds, added up over all workers */
    uint64_t candidates, replayed; /* events that needed more; positions replayed to */
    struct tbd_bad_events bad;
    bool told;         /* something else was said beside the answer */
    char shadowed[40]; /* a word of the condition that names a variable there, too; "": none */
};

/* A slice of a window (replay/slices.h), or the whole window if it has only one slice. */
struct tbd_session_slice {
    uint32_t window;
    uint32_t slice, last; /* the next slices are wanted too, up to `last` */
    bool with_loads;
};

/* A window, or a slice, that is in memory. */
struct tbd_session_held {
    struct tbd_window *window; /* owned; NULL: none */
    uint32_t slice;
    bool has_loads;
    uint64_t used; /* larger = more recently */
};

/* The result of a replay to a position. */
struct tbd_moment_known {
    uint32_t thread;       /* that was asked for, or 0 */
    uint64_t block_start;  /* of the block that is entered at the position's time; 0: not known */
    uint32_t block_thread; /* which entered it */
    struct tbd_reg_state state;
    uint8_t stack[16384]; /* state.stack_bytes of them */
};

/* What stands for the trace while questions are about a moment before the end of a crash dump (query/past): values as far as they
 * are known. */
struct tbd_session_past {
    void *context;
    enum tbd_status (*regs)(void *context, struct tbd_reg_state *out);
    bool (*read)(void *context, uint64_t address, void *out, size_t bytes); /* false: unknown */
    bool
        is_row; /* one of many moments: about its innermost frame, whichever frame or thread is selected */
};

/* What questions about a crash dump keep for those that follow (query/past). */
struct tbd_session_kept {
    void *what; /* owned; NULL: nothing */
    void (*free)(void *what);
};

/* Times of block entries: [since, until). */
struct tbd_asked_span {
    bool has_since, has_until;
    uint64_t since, until;
};

/* A position of a crash dump's rings: instruction `insn` of the `back`-th block before a thread's end. */
struct tbd_session_before {
    uint64_t back; /* 0: the dump's end itself */
    uint32_t insn;
    uint32_t thread;
};

struct tbd_counted_part;

struct tbd_session {
    struct tbd_trace *trace;
    struct tbd_counted_part *part; /* borrowed; NULL: all of the trace is counted (part_trace.h) */
    const struct tbd_trace_info *info;
    struct tbd_symbols *symbols;
    struct tbd_disas *disas;
    struct tbd_replayer *replayer; /* NULL until needed */
    unsigned workers;
    unsigned worker;       /* this session's number among the replayer's workers */
    bool borrows_replayer; /* borrowed from the session that it helps */
    bool owns_replayer;    /* made here, maybe for a helper that found none to borrow */
    bool no_cache;         /* set before it is opened */
    bool
        takes_rings; /* likewise: the dump of a program that was killed may be opened (tbd_trace_open_rings()) */
    struct tbd_window_cache *cache; /* NULL: none; borrowed with the replayer */
    enum tbd_syntax syntax;
    bool json;
    bool csv;                       /* rows; not with json */
    struct tbd_print_options print; /* of values */
    struct tbd_user_values values;  /* $x, $1, ... */
    struct {
        uint64_t next; /* address */
        char format;   /* 0: nothing was examined yet */
        unsigned long count;
        unsigned bytes;
    } examined;                 /* by `x`, which goes on from there */
    bool shows_wall;            /* events show the clock's time */
    bool shows_threads;         /* without a trace: events name their threads */
    struct tbd_asked_span span; /* --since, --until: questions are about these events */
    struct {
        uint32_t number, count; /* count 0: questions are about the whole run */
        uint64_t from, to; /* the block entries of its windows; --since and --until narrow them */
        struct tbd_asked_span given; /* by the user: `span` is narrower */
        bool has_begun;
        uint64_t rows;
    } shard;         /* --shard K/N: answers go into a file for `unite` (query/output/shard.h) */
    bool has_at;     /* --at was given: the position is not remembered */
    bool is_private; /* position and frame are this session's own, not written to the trace */
    struct tbd_position at;
    struct tbd_session_before before;    /* --at, in a crash dump */
    const struct tbd_session_past *past; /* borrowed; NULL: questions are about the trace */
    struct tbd_session_kept kept;
    struct {
        bool has_position, has_frame;
        struct tbd_position position;
        struct tbd_session_before before;
        uint32_t thread;
        size_t frame; /* selected at `position` */
    } unwritten;      /* the position, if the folder cannot be written */
    /* the thread whose registers are wanted; 0: the thread that runs at the position */
    uint32_t thread;
    bool has_thread; /* --thread was given: the remembered thread is ignored */
    struct tbd_session_stats stats;
    struct tbd_left_out left_out; /* windows that are missing from the answers of this command */
    struct tbd_breakpoints breakpoints;
    struct tbd_error why; /* the reason of the last failure */
    struct tbd_divergence divergence;
    struct tbd_session_held windows[TBD_SESSION_WINDOWS];
    struct {
        struct tbd_slices *run; /* owned; NULL: none */
        struct tbd_session_slice next;
        uint32_t asked;        /* 1 + the window in which registers were asked for last */
        uint32_t raised;       /* 1 + the window that counts as raised already, in stats */
    } slices;                  /* slices that are requested one after the other */
    struct tbd_window *picked; /* owned: the last result of tbd_session_picked(); NULL: none */
    struct tbd_inlined_calls *inlined; /* owned: of rows; NULL: none yet (inlined_calls.h) */
    struct tbd_moment_known *moment;   /* owned: the position asked for last; NULL: none */
    uint32_t placed; /* window of the place that was looked for last by a replay, + 1 */
    uint8_t *
        passed; /* owned: bytes of the event that was found last in a window of which nothing is in memory */
    struct tbd_window *summaries; /* owned: of the window asked for last; NULL: none */
    struct {
        struct tbd_frame *frames; /* owned; NULL: none */
        size_t count;
        uint64_t time;
    } seed; /* the stack at a time: walks that need callers can start there */
    struct {
        bool is_known;
        uint64_t end; /* 0: not known */
    } main_stack;     /* tbd_is_on_main_stack() */
    struct {
        struct tbd_stamp *stamps; /* owned; NULL: none */
        size_t count;
        uint32_t window;
    } wall;            /* tbd_wall_time_at() */
    size_t window_max; /* of `windows` used */
    struct {
        struct tbd_trace *trace;
        struct tbd_symbols *symbols; /* the types of values that were printed */
    } left[TBD_SESSION_LEFT];        /* owned: what the session had before it was widened */
    unsigned left_count;
    uint64_t clock;
};

/* A folder, or the name of one in the trace root; `path` NULL: the latest trace.  On failure
 * session->why says what is wrong; close it all the same. */
TBD_MUST_CHECK enum tbd_status tbd_session_open(struct tbd_session *session, const char *path);
/* Opens the trace in which only the windows of *part are counted; it stays the caller's.  Position and frame are the session's own until
 * they are kept. */
TBD_MUST_CHECK enum tbd_status tbd_session_open_part(struct tbd_session *session,
                                                     struct tbd_counted_part *part);
/* Such a session goes on with *part, or, NULL, with all windows; position, values and settings stay.  On failure the session stays as it
 * was. */
TBD_MUST_CHECK enum tbd_status tbd_session_widen(struct tbd_session *session,
                                                 struct tbd_counted_part *part);
/* Writes the position that such a session has; false: it cannot be written. */
TBD_MUST_CHECK bool tbd_session_keep(struct tbd_session *session);
/* The folder of what is remembered for the user; borrowed. */
int tbd_session_home(const struct tbd_session *session);
/* A name that does not exist in the current folder may be a trace in the root: its path then, in `buffer`;
 * otherwise `name`. */
const char *tbd_session_find(const char *name, char *buffer, size_t bytes);
void tbd_session_close(struct tbd_session *session);
/* A separate session on the same trace, for another thread; uses the replayer of `of` with worker
 * number `worker`. Close it before `of`. */
TBD_MUST_CHECK enum tbd_status
tbd_session_open_helper(struct tbd_session *session, const struct tbd_session *of, unsigned worker);

/* The id of the thread that people call `number`: an id, or how many-th thread of the trace it is. */
uint32_t tbd_session_thread_called(const struct tbd_session *session, uint32_t number);

/* The number of slices of window `index`. */
uint32_t tbd_session_slices(const struct tbd_session *session, uint32_t index, bool with_loads);
/* A window with its events; replayed if the trace has not kept them, or if loads are wanted.
 * Borrowed until TBD_SESSION_WINDOWS - 1 further windows were requested; in a helper until the next
 * request. */
TBD_MUST_CHECK enum tbd_status tbd_session_slice(struct tbd_session *session,
                                                 const struct tbd_session_slice *wanted,
                                                 const struct tbd_window **out);
/* The same, if it is in memory already; else NULL. */
const struct tbd_window *tbd_session_held(struct tbd_session *session,
                                          const struct tbd_session_slice *wanted);
/* The part of the same window that `picker` wants (format/coding/pick.h); TBD_NOTFOUND: too much.
 * Borrowed until the next window or part is requested. */
TBD_MUST_CHECK enum tbd_status tbd_session_picked(struct tbd_session *session,
                                                  const struct tbd_session_slice *wanted,
                                                  struct tbd_picker *picker,
                                                  const struct tbd_window **out);
/* The window with all events around `time`, if `window` is perhaps a picked part. */
TBD_MUST_CHECK enum tbd_status tbd_session_whole(struct tbd_session *session,
                                                 const struct tbd_window *window, uint64_t time,
                                                 const struct tbd_window **out);
/* The replay that gives slices in order is not needed any more. */
void tbd_session_end_slices(struct tbd_session *session);
/* The slice that holds `time` of window `index`, without loads. */
TBD_MUST_CHECK enum tbd_status tbd_session_slice_at(struct tbd_session *session, uint32_t index,
                                                    uint64_t time, const struct tbd_window **out);
/* Is this slice in memory already? */
bool tbd_session_has_slice_at(const struct tbd_session *session, uint32_t index, uint64_t time);
/* The window's summaries, borrowed until the next call for another window; NULL: they cannot be read. */
const struct tbd_window *tbd_session_summaries(struct tbd_session *session, uint32_t index);
/* Does this say that files of the trace are damaged? */
bool tbd_session_is_damage(enum tbd_status status);
/* Does the status concern one window only?  Then others still answer. */
bool tbd_session_is_of_window(enum tbd_status status);
/* The window is missing from this command's answers, because of `status` and what the session knows of it. */
void tbd_session_leave_out(struct tbd_session *session, uint32_t index, enum tbd_status status);
TBD_MUST_CHECK enum tbd_status tbd_session_replayer(struct tbd_session *session);
/* Replays a window whose events `listener` sees, and nobody keeps. */
TBD_MUST_CHECK enum tbd_status tbd_session_skim(struct tbd_session *session, uint32_t index,
                                                const struct tbd_skim_listener *listener);
/* TBD_NOTIME, and session->why says so, for a position that is not in the trace. */
TBD_MUST_CHECK enum tbd_status tbd_session_window_at(struct tbd_session *session,
                                                     struct tbd_position position, uint32_t *out);
/* tbd_replay_regs() from the nearest known start: the start of a slice in memory. May free the
 * windows in memory. */
TBD_MUST_CHECK enum tbd_status tbd_session_replay_regs(struct tbd_session *session, uint32_t window,
                                                       struct tbd_reg_state *states, size_t count);
/* Registers of session->thread at `position`; from the trace if it has them, else by partial
 * replay. */
TBD_MUST_CHECK enum tbd_status tbd_session_regs(struct tbd_session *session,
                                                struct tbd_position position,
                                                struct tbd_reg_state *out);
/* The first instruction of the block that is entered at position.time, and which thread enters it, by a replay that gives the position's registers, too. */
TBD_MUST_CHECK enum tbd_status tbd_session_block_start(struct tbd_session *session, uint32_t window,
                                                       struct tbd_position position, uint64_t *out,
                                                       uint32_t *out_thread);
/* ... for which nothing is replayed, as that was just done. */
bool tbd_session_knows_start(const struct tbd_session *session, struct tbd_position position);
/* Memory at `position`. */
TBD_MUST_CHECK enum tbd_status tbd_session_read(struct tbd_session *session,
                                                struct tbd_position position, uint64_t address,
                                                void *out, size_t bytes);
/* Frames at `position`, innermost first. */
TBD_MUST_CHECK enum tbd_status tbd_session_stack(struct tbd_session *session,
                                                 struct tbd_position position,
                                                 struct tbd_frame *out, size_t max,
                                                 size_t *out_count);

/* The block entered at position.time, and the position's instruction. TBD_NOTIME if there is no
 * such position. */
struct tbd_place {
    uint32_t window;
    const struct tbd_block *block;
    uint32_t id;
    uint64_t pc;
    /* the block's instructions that began: a signal or the program's end may cut it */
    uint32_t insns;
    uint32_t insn_bytes; /* 0: after the block's last instruction */
    const uint8_t *code; /* of that instruction */
    uint32_t thread;
};
TBD_MUST_CHECK enum tbd_status
tbd_session_place(struct tbd_session *session, struct tbd_position position, struct tbd_place *out);
/* Only the address of the position's instruction. */
TBD_MUST_CHECK enum tbd_status tbd_session_pc(struct tbd_session *session,
                                              struct tbd_position position, uint32_t *out_window,
                                              uint64_t *out);

struct tbd_position tbd_session_first(const struct tbd_session *session);
struct tbd_position tbd_session_last(struct tbd_session *session);
/* The remembered position, or --at; at first the last one of the trace.  With the remembered one
 * comes the remembered thread. */
struct tbd_position tbd_session_current(struct tbd_session *session);
/* The window it is in, or UINT32_MAX; no window is read for it, nor is the thread taken. */
uint32_t tbd_session_current_window(struct tbd_session *session);
/* Remembers position and thread (`thread` as in the session), unless --at was given or the trace
 * cannot be written. */
/* Remembers the position in the trace's folder, or in the session if that cannot be written. */
void tbd_session_move(struct tbd_session *session, struct tbd_position position, uint32_t thread);
/* The same for a crash dump: back 0 if questions are about its end. */
struct tbd_session_before tbd_session_before(const struct tbd_session *session);
void tbd_session_move_before(struct tbd_session *session, struct tbd_session_before before);

#endif
