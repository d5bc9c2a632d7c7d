// SPDX-License-Identifier: MIT
/* step_walk.h - going along the instructions of one function's frame, forward and backward, over the calls that it makes
 *
 * The frame is that of the function at the position.  When it ends, the walk goes on in the caller's; signal handlers are passed over
 * like calls. */
#ifndef TBD_QUERY_STEP_WALK_H
#define TBD_QUERY_STEP_WALK_H

#include "query/stepping/frame_end.h"
#include "query/session/thread_path.h"

struct tbd_step_walk {
    struct tbd_command_run *run; /* borrowed */
    struct tbd_path path;        /* owned */
    struct tbd_position at;
    struct tbd_frame_call frame; /* where it is */
    uint32_t window;
    uint64_t pc;
};

enum tbd_step_move {
    TBD_STEP_FAILED = 0, /* session->why says why */
    TBD_STEP_ENDS,       /* of the recording */
    TBD_STEP_ON, /* in the same frame: the next instruction, or the one after a call's return */
    TBD_STEP_ENTERED,  /* forward: a function that was called; backward: at the return of one */
    TBD_STEP_RETURNED, /* forward: to the caller; backward: to the call in the caller */
    TBD_STEP_LEFT      /* by an exception or longjmp, into a frame further out */
};

/* Call tbd_step_walk_end() even on failure. */
TBD_MUST_CHECK enum tbd_status tbd_step_walk_start(struct tbd_step_walk *walk,
                                                   struct tbd_command_run *run,
                                                   struct tbd_position from);
void tbd_step_walk_end(struct tbd_step_walk *walk);

/* `enters` says of a call's target whether the walk goes into it; NULL: into none. */
typedef bool (*tbd_step_enters)(void *context, uint32_t window, uint64_t function);
enum tbd_step_move tbd_step_forward(struct tbd_step_walk *walk, tbd_step_enters enters,
                                    void *context);
enum tbd_step_move tbd_step_backward(struct tbd_step_walk *walk, tbd_step_enters enters,
                                     void *context);

/* Back to a position that the walk has passed, and walk->frame as it was there. */
bool tbd_step_stand(struct tbd_step_walk *walk, struct tbd_position at,
                    const struct tbd_frame_call *frame);

/* Goes to the call of the function at the position: backward over all of it. */
enum tbd_step_move tbd_step_to_call(struct tbd_step_walk *walk);

/* The function that the code at `pc` belongs to, although it may have been moved away from it (x.cold). */
bool tbd_step_function(const struct tbd_step_walk *walk, uint32_t window, uint64_t pc,
                       struct tbd_symbol *out);

/* Is the position a function's first instruction? */
bool tbd_step_is_entry(struct tbd_step_walk *walk);

#endif
