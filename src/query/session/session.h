// SPDX-License-Identifier: MIT
/* session.h - one trace being asked: handles, caches, the current position
 *
 * Owns everything a question needs and opens it when it is needed first.  One session from one
 * thread. */
#ifndef TBD_QUERY_SESSION_H
#define TBD_QUERY_SESSION_H

#include "format/coding/pick.h"
#include "query/session/left_out.h"
#include "query/session/disas.h"
#include "query/session/stack.h"
#include "query/session/window_cache.h"
#include "replay/slices.h"

#define TBD_SESSION_WINDOWS 4

#define TBD_STATS_WINDOWS 32u /* so many are named */

struct tbd_session_stats {
    uint32_t considered, skipped, scanned, raised; /* windows */
    uint32_t noted;  /* windows that were replayed for registers at many events */
    uint32_t cached; /* windows that an earlier question had raised */
    uint32_t other_time, not_in_index, not_in_toc; /* why they were skipped */
    uint32_t searched[TBD_STATS_WINDOWS];          /* the first ones that were, by number */
    uint32_t searched_count;
    double plan_s, open_s, walk_s;           /* seconds, added up over all workers */
    uint64_t candidates, replayed;           /* events that needed more; positions replayed to */
    uint64_t divisions, unmapped, optimized; /* evaluations that could not be made */
};

/* A slice of a window (replay/slices.h), or all of a window that has only one. */
struct tbd_session_slice {
    uint32_t window;
    uint32_t slice, last; /* the next ones are wanted, too, up to `last` */
    bool with_loads;
};

/* A window, or a slice, that is in memory. */
struct tbd_session_held {
    struct tbd_window *window; /* owned; NULL: none */
    uint32_t slice;
    bool has_loads;
    uint64_t used; /* larger = more recently */
};

/* What a replay to a position gave. */
struct tbd_moment_known {
    uint32_t thread; /* that was asked for, or 0 */
    struct tbd_reg_state state;
    uint8_t stack[16384]; /* state.stack_bytes of them */
};

struct tbd_session {
    struct tbd_trace *trace;
    const struct tbd_trace_info *info;
    struct tbd_symbols *symbols;
    struct tbd_disas *disas;
    struct tbd_replayer *replayer; /* NULL until needed */
    unsigned workers;
    unsigned worker;                /* this session's number among the replayer's workers */
    bool borrows_replayer;          /* from the session that it helps */
    bool no_cache;                  /* set before it is opened */
    struct tbd_window_cache *cache; /* NULL: none; borrowed with the replayer */
    enum tbd_syntax syntax;
    bool json;
    bool csv;    /* rows; not with json */
    bool has_at; /* --at was given: the position is not remembered */
    struct tbd_position at;
    struct {
        bool has_position, has_frame;
        struct tbd_position position;
        uint32_t thread;
        size_t frame; /* selected at `position` */
    } unwritten;      /* what a folder that cannot be written does not remember */
    /* whose registers are asked for; 0: of the one that has control at the position */
    uint32_t thread;
    bool has_thread; /* --thread was given: the remembered one does not matter */
    struct tbd_session_stats stats;
    struct tbd_left_out left_out; /* windows that the answers of this command are without */
    struct tbd_error why;         /* of the last failure */
    struct tbd_divergence divergence;
    struct tbd_session_held windows[TBD_SESSION_WINDOWS];
    struct {
        struct tbd_slices *run; /* owned; NULL: none */
        struct tbd_session_slice next;
        uint32_t asked;              /* 1 + the window in which registers were asked for last */
        uint32_t raised;             /* 1 + the window that counts as raised already, in stats */
    } slices;                        /* that are asked for one after the other */
    struct tbd_window *picked;       /* owned: what tbd_session_picked() gave last; NULL: none */
    struct tbd_moment_known *moment; /* owned: the position asked for last; NULL: none */
    struct tbd_window *summaries;    /* owned: of the window asked for last; NULL: none */
    size_t window_max;               /* of `windows` used */
    uint64_t clock;
};

/* A folder, or the name of one in the trace root; `path` NULL: the latest trace.  On failure
 * session->why says what is wrong; close it all the same. */
TBD_MUST_CHECK enum tbd_status tbd_session_open(struct tbd_session *session, const char *path);
void tbd_session_close(struct tbd_session *session);
/* A session of its own on the same trace, for another thread; uses the replayer of `of` with worker
 * number `worker`. Close it before `of`. */
TBD_MUST_CHECK enum tbd_status
tbd_session_open_helper(struct tbd_session *session, const struct tbd_session *of, unsigned worker);

/* In how many slices window `index` comes. */
uint32_t tbd_session_slices(const struct tbd_session *session, uint32_t index, bool with_loads);
/* With events; raised by replay where the trace has not kept them, or loads are wanted.  Borrowed
 * until TBD_SESSION_WINDOWS - 1 further ones were asked for; in a helper until the next one is.
 */
TBD_MUST_CHECK enum tbd_status tbd_session_slice(struct tbd_session *session,
                                                 const struct tbd_session_slice *wanted,
                                                 const struct tbd_window **out);
/* Of the same, what `picker` wants (format/coding/pick.h); TBD_NOTFOUND: too much.  Borrowed until the next
 * one is asked for, and as that. */
TBD_MUST_CHECK enum tbd_status tbd_session_picked(struct tbd_session *session,
                                                  const struct tbd_session_slice *wanted,
                                                  struct tbd_picker *picker,
                                                  const struct tbd_window **out);
/* With all events around `time`, where `window` is perhaps a picked one. */
TBD_MUST_CHECK enum tbd_status tbd_session_whole(struct tbd_session *session,
                                                 const struct tbd_window *window, uint64_t time,
                                                 const struct tbd_window **out);
/* The replay that gives slices in order is not needed any more. */
void tbd_session_end_slices(struct tbd_session *session);
/* The one that holds `time` of window `index`, without loads. */
TBD_MUST_CHECK enum tbd_status tbd_session_slice_at(struct tbd_session *session, uint32_t index,
                                                    uint64_t time, const struct tbd_window **out);
/* Is that in memory already? */
bool tbd_session_has_slice_at(const struct tbd_session *session, uint32_t index, uint64_t time);
/* Does this say that files of the trace are damaged? */
bool tbd_session_is_damage(enum tbd_status status);
TBD_MUST_CHECK enum tbd_status tbd_session_replayer(struct tbd_session *session);
/* TBD_NOTIME, and session->why says so, for a position that is not in the trace. */
TBD_MUST_CHECK enum tbd_status tbd_session_window_at(struct tbd_session *session,
                                                     struct tbd_position position, uint32_t *out);
/* tbd_replay_regs() from the nearest start that is known: that of a slice in memory.  May give up
 * the windows that are in memory. */
TBD_MUST_CHECK enum tbd_status tbd_session_replay_regs(struct tbd_session *session, uint32_t window,
                                                       struct tbd_reg_state *states, size_t count);
/* Registers of session->thread at `position`; from the trace where it has them, else by
 * partial replay. */
TBD_MUST_CHECK enum tbd_status tbd_session_regs(struct tbd_session *session,
                                                struct tbd_position position,
                                                struct tbd_reg_state *out);
/* Memory at `position`. */
TBD_MUST_CHECK enum tbd_status tbd_session_read(struct tbd_session *session,
                                                struct tbd_position position, uint64_t address,
                                                void *out, size_t bytes);
/* Frames at `position`, innermost first. */
TBD_MUST_CHECK enum tbd_status tbd_session_stack(struct tbd_session *session,
                                                 struct tbd_position position,
                                                 struct tbd_frame *out, size_t max,
                                                 size_t *out_count);

/* The block entered at position.time, and where the position's instruction is.  TBD_NOTIME if there
 * is none. */
struct tbd_place {
    uint32_t window;
    const struct tbd_block *block;
    uint32_t id;
    uint64_t pc;
    /* of the block that were begun: a signal or the program's end may cut it */
    uint32_t insns;
    uint32_t insn_bytes; /* 0: behind the block's last instruction */
    const uint8_t *code; /* of that instruction */
    uint32_t thread;
};
TBD_MUST_CHECK enum tbd_status
tbd_session_place(struct tbd_session *session, struct tbd_position position, struct tbd_place *out);
/* Only its instruction's address. */
TBD_MUST_CHECK enum tbd_status tbd_session_pc(struct tbd_session *session,
                                              struct tbd_position position, uint32_t *out_window,
                                              uint64_t *out);

struct tbd_position tbd_session_first(const struct tbd_session *session);
struct tbd_position tbd_session_last(struct tbd_session *session);
/* The remembered position, or --at; at first the last one of the trace.  With the remembered one
 * comes the remembered thread. */
struct tbd_position tbd_session_current(struct tbd_session *session);
/* Remembers both (`thread` as in the session), unless --at was given or the trace
 * cannot be written. */
/* Remembers the position in the trace's folder, or in the session if that cannot be written. */
void tbd_session_move(struct tbd_session *session, struct tbd_position position, uint32_t thread);

#endif
