// SPDX-License-Identifier: MIT
/* replay.h - re-running windows: raise, partial replay, verify
 *
 * A replayer owns replay processes (stubs), one per worker, kept warm between windows.  One
 * replayer may be used from several threads, each with its own worker number.  Nothing here prints.
 */
#ifndef TBD_REPLAY_REPLAY_H
#define TBD_REPLAY_REPLAY_H

#include "base/status.h"
#include "format/trace/trace.h"

struct tbd_replayer;

/* `workers` >= 1: the number of windows that may be replayed at the same time. */
TBD_MUST_CHECK enum tbd_status tbd_replayer_new(struct tbd_trace *trace, unsigned workers,
                                                struct tbd_replayer **out, struct tbd_error *why);
void tbd_replayer_free(struct tbd_replayer *replayer);

/* How replay processes are isolated from the system: by a filter of system calls, limits, and
 * having no descriptors; if possible without privilege, by their own namespaces, too. */
enum tbd_isolation {
    TBD_ISOLATION_UNKNOWN /* no process was started yet */,
    TBD_ISOLATION_CALLS,
    TBD_ISOLATION_FULL
};
enum tbd_isolation tbd_replay_isolation(void);

/* The sum of block entries of all replays so far; called while none runs. */
uint64_t tbd_replayer_entries(const struct tbd_replayer *replayer);

/* Where and how a replay differed from the recording. */
struct tbd_divergence {
    struct tbd_position position;
    uint32_t window;
    uint32_t thread; /* tid; 0: the window as a whole */
    char what[256];  /* "system call 1 (write) where play had 0 (read)", ... */
    /* The replay itself has met the divergence, not a comparison of ends: where it was then, and which of the window's
     * logged messages it would have met next. */
    bool has_place;
    bool is_call; /* at a system call */
    struct tbd_regs regs;
    uint64_t log_next;
};

/* Full replay: *out is the window with all events (owned by the caller), equal to what play
 * wrote.  `hooks`: TBD_HOOKS_FULL, or with TBD_HOOK_LOADS added.  TBD_DIVERGED fills *divergence.
 * */
TBD_MUST_CHECK enum tbd_status
tbd_replay_full(struct tbd_replayer *replayer, unsigned worker, uint32_t window, uint32_t hooks,
                struct tbd_window **out, struct tbd_divergence *divergence, struct tbd_error *why);

/* Likewise, with hooks for all events, for callers that only want the summaries and the counts of stores, calls and returns. */
TBD_MUST_CHECK enum tbd_status tbd_replay_counts(struct tbd_replayer *replayer, unsigned worker,
                                                 uint32_t window, struct tbd_window **out,
                                                 struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

/* Likewise, for callers that only walk the events: takes much less time; the summaries are those
 * that the trace has at the window's level. */
TBD_MUST_CHECK enum tbd_status tbd_replay_events(struct tbd_replayer *replayer, unsigned worker,
                                                 uint32_t window, uint32_t hooks,
                                                 struct tbd_window **out,
                                                 struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

/* Is told what a window has, in order.  False ends the replay, as without memory. */
struct tbd_skim_listener {
    /* block entries, by the trace's ids; there is at least one */
    bool (*entries)(void *context, const uint32_t *ids, size_t count);
    /* The same with their operands, one record after the other, instead of `entries`; NULL: these are not replayed.  The replay process
     * may change them meanwhile: each is read once. */
    bool (*records)(void *context, const uint32_t *ids, size_t count, const uint8_t *operands);
    /* a message that is an event, checked; its payload is valid during the call */
    bool (*message)(void *context, uint32_t kind, const uint8_t *payload, uint32_t bytes);
    void *context;
};
/* Replays the entries and messages of a window, and keeps nothing: for callers that look at each once.  What the
 * listener was told is right only with TBD_OK. */
TBD_MUST_CHECK enum tbd_status tbd_replay_skim(struct tbd_replayer *replayer, unsigned worker,
                                               uint32_t window,
                                               const struct tbd_skim_listener *listener,
                                               struct tbd_divergence *divergence,
                                               struct tbd_error *why);

/* Is told the registers before an instruction, in order: of the block entered at `time`, relative, op->insn of it, those of op->add (TBD_NOTE_*) in
 * order.  False ends the replay, as without memory. */
struct tbd_note_listener {
    bool (*note)(void *context, uint64_t time, const struct tbd_op *op, const uint8_t *registers);
    void *context;
};
/* Registers before each execution of the instructions at `sites` (by pc, ascending), told and not kept.  If a block has too
 * many sites, the last ones are missing. */
TBD_MUST_CHECK enum tbd_status
tbd_replay_skim_notes(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                      const struct tbd_note_site *sites, size_t count,
                      const struct tbd_note_listener *listener, struct tbd_divergence *divergence,
                      struct tbd_error *why);

struct tbd_reg_state {
    struct tbd_position position;
    uint32_t thread;      /* of this thread; 0: the thread that has control at the position */
    struct tbd_regs regs; /* rip = the instruction about to execute */
    uint8_t xsave[4096];  /* regs.xsave_bytes of it; without tiles (AMX) */
    uint32_t unknown;     /* bit r: regs.gpr[r] is not known; only before the end of a crash dump */
    uint8_t *stack; /* input: buffer of stack_capacity bytes for the stack; NULL: not wanted */
    size_t stack_capacity; /* at most TBD_REPLAY_STACK_BYTES */
    /* output: address of the stack_bytes bytes in `stack`; 0 at a window's ends */
    uint64_t stack_start;
    size_t stack_bytes;
};
#define TBD_REPLAY_STACK_BYTES 65536u
/* Sets registers; `xsave` has regs->xsave_bytes, NULL: none of them. */
void tbd_reg_state_put(struct tbd_reg_state *state, const struct tbd_regs *regs,
                       const uint8_t *xsave);

/* Partial replay: registers at each of `count` positions, ascending, all in `window`.  Position and
 * thread of each are the input; the rest is filled, and regs.thread is the thread.  `slice`: a
 * slice of the window in memory (slices.h), or NULL; if no position is before it, the replay begins
 * where the slice begins.  TBD_NOTFOUND: a thread does not live at its position. */
TBD_MUST_CHECK enum tbd_status tbd_replay_regs(struct tbd_replayer *replayer, unsigned worker,
                                               uint32_t window, const struct tbd_window *slice,
                                               struct tbd_reg_state *states, size_t count,
                                               struct tbd_divergence *divergence,
                                               struct tbd_error *why);

/* Registers before each execution of the instructions at `sites` (by pc, ascending) in `window`,
 * which may be a slice (slices.h): *out is a window (owned by the caller) whose blocks have notes
 * at them and no other events.  If a block has too many, the last ones are missing. */
TBD_MUST_CHECK enum tbd_status
tbd_replay_notes(struct tbd_replayer *replayer, unsigned worker, const struct tbd_window *window,
                 const struct tbd_note_site *sites, size_t count, struct tbd_window **out,
                 struct tbd_divergence *divergence, struct tbd_error *why);

enum tbd_verify {
    TBD_VERIFY_ALL, /* also modified pages, and every event if the window has its events */
    /* as replayed for a question: end registers, contents of modified pages, system calls, messages */
    TBD_VERIFY_QUICK
};

/* Replays `window` in full and compares it with the trace.  TBD_OK, or TBD_DIVERGED. */
TBD_MUST_CHECK enum tbd_status tbd_replay_verify(struct tbd_replayer *replayer, unsigned worker,
                                                 uint32_t window, enum tbd_verify how,
                                                 struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

#endif
