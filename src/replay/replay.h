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

/* `workers` >= 1: how many windows may be replayed at once. */
TBD_MUST_CHECK enum tbd_status tbd_replayer_new(struct tbd_trace *trace, unsigned workers,
                                                struct tbd_replayer **out, struct tbd_error *why);
void tbd_replayer_free(struct tbd_replayer *replayer);

/* How replay processes are kept apart from the system: by a filter of system calls, limits, and no
 * descriptors; and where it can be had without privilege, by namespaces of their own as well. */
enum tbd_isolation {
    TBD_ISOLATION_UNKNOWN /* none was started */,
    TBD_ISOLATION_CALLS,
    TBD_ISOLATION_FULL
};
enum tbd_isolation tbd_replay_isolation(void);

/* How many block entries all replays so far were to run through, while none runs. */
uint64_t tbd_replayer_entries(const struct tbd_replayer *replayer);

/* Where and how a replay left the recorded path. */
struct tbd_divergence {
    struct tbd_position position;
    uint32_t window;
    uint32_t thread; /* tid; 0: the window as a whole */
    char what[256];  /* "system call 1 (write) where play had 0 (read)", ... */
};

/* Full replay: *out is the window with all events (owned by the caller), equal to what play
 * wrote.  `hooks`: TBD_HOOKS_FULL, or with TBD_HOOK_LOADS added.  TBD_DIVERGED fills *divergence.
 * */
TBD_MUST_CHECK enum tbd_status
tbd_replay_full(struct tbd_replayer *replayer, unsigned worker, uint32_t window, uint32_t hooks,
                struct tbd_window **out, struct tbd_divergence *divergence, struct tbd_error *why);

/* The same for who only walks the events: it takes much less time, and the summaries are those that
 * the trace has at the window's level. */
TBD_MUST_CHECK enum tbd_status tbd_replay_events(struct tbd_replayer *replayer, unsigned worker,
                                                 uint32_t window, uint32_t hooks,
                                                 struct tbd_window **out,
                                                 struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

struct tbd_reg_state {
    struct tbd_position position;
    uint32_t thread;       /* whose; 0: the thread that has control at the position */
    struct tbd_regs regs;  /* rip = the instruction about to execute */
    uint8_t xsave[4096];   /* regs.xsave_bytes of it; longer images are cut */
    uint8_t *stack;        /* input: room for stack_capacity bytes of the stack, too; NULL: none */
    size_t stack_capacity; /* at most TBD_REPLAY_STACK_BYTES */
    uint64_t stack_start;  /* what came of it: the stack_bytes bytes from here on; 0 at a
                                   window's ends */
    size_t stack_bytes;
};
#define TBD_REPLAY_STACK_BYTES 65536u

/* Partial replay: registers at each of `count` positions, ascending, all in `window`.
 * Position and thread of each are the input; the rest is filled, with regs.thread the thread meant.
 * `slice`: one of the window that is in memory (slices.h); if no position is before it, the replay
 * begins where it does.  NULL is fine.
 * TBD_NOTFOUND: a thread does not live at its position. */
TBD_MUST_CHECK enum tbd_status tbd_replay_regs(struct tbd_replayer *replayer, unsigned worker,
                                               uint32_t window, const struct tbd_window *slice,
                                               struct tbd_reg_state *states, size_t count,
                                               struct tbd_divergence *divergence,
                                               struct tbd_error *why);

/* Registers before each execution of the instructions at `sites` (by pc, ascending) in `window`,
 * which may be a slice (slices.h): *out is a window (owned by the caller) whose blocks have notes
 * at them and no other events.  Where there are too many in a block, the last ones are missing. */
TBD_MUST_CHECK enum tbd_status
tbd_replay_notes(struct tbd_replayer *replayer, unsigned worker, const struct tbd_window *window,
                 const struct tbd_note_site *sites, size_t count, struct tbd_window **out,
                 struct tbd_divergence *divergence, struct tbd_error *why);

enum tbd_verify {
    TBD_VERIFY_ALL,  /* with which pages were modified, and every event of a window that has its
                        events */
    TBD_VERIFY_QUICK /* as a question replays it: end registers, contents of modified pages, system
                        calls, messages */
};

/* Replays `window` in full and compares it with what the trace holds.  TBD_OK, or TBD_DIVERGED. */
TBD_MUST_CHECK enum tbd_status tbd_replay_verify(struct tbd_replayer *replayer, unsigned worker,
                                                 uint32_t window, enum tbd_verify how,
                                                 struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

#endif
