// SPDX-License-Identifier: MIT
/* frame_end.h - how a function's frame ends: by its return, or by a jump over it (an exception,
 * longjmp)
 *
 * A frame is known by the stack slot of its return address.  Frames of a thread that lie below the
 * stack pointer are gone. */
#ifndef TBD_QUERY_FRAME_END_H
#define TBD_QUERY_FRAME_END_H

#include "query/commands/commands.h"

struct tbd_frame_call {
    uint64_t slot;             /* address of the return address */
    uint64_t from;             /* address in the call instruction; 0: not known */
    struct tbd_position since; /* a position at which the frame lives */
    uint32_t thread;
};

enum tbd_frame_end {
    TBD_FRAME_STAYS,
    TBD_FRAME_RETURNS,
    TBD_FRAME_SEEMS_TO_RETURN,
    TBD_FRAME_LEFT
};

/* What the text of an answer says about a frame that was left. */
#define TBD_FRAME_LEFT_TEXT "left by exception or longjmp"

/* What this event does to the frame: a func_exit of a question with `keeps_frames`, after
 * call->since.  If the frame seems to return, tbd_frame_settle() tells; not during a search. */
enum tbd_frame_end tbd_frame_end_by(struct tbd_session *session, const struct tbd_frame_call *call,
                                    const struct tbd_event *exit);
enum tbd_frame_end tbd_frame_settle(struct tbd_command_run *run, const struct tbd_frame_call *call,
                                    struct tbd_position exit);

/* The frame of the function at a position. */
TBD_MUST_CHECK enum tbd_status tbd_frame_call_at(struct tbd_session *session,
                                                 struct tbd_position position,
                                                 struct tbd_frame_call *out);

/* Sets slot and from, by frame `index` of a stack, innermost first. */
void tbd_frame_take_slot(const struct tbd_frame *frames, size_t count, size_t index,
                         struct tbd_frame_call *out);

/* Finds what ends the frame: *out_at is the return, or the first instruction after the jump over it.
 * TBD_NOTFOUND: the frame lives up to the end of the recording, or up to `limit` (NULL: none). */
TBD_MUST_CHECK enum tbd_status tbd_frame_find_end(struct tbd_command_run *run,
                                                  const struct tbd_frame_call *call,
                                                  const struct tbd_position *limit,
                                                  enum tbd_frame_end *out_end,
                                                  struct tbd_event *out_at);

/* The thread's next block, or with `backward` the last instruction of the one before; blocks of
 * other threads may lie between. */
TBD_MUST_CHECK enum tbd_status tbd_frame_thread_block(struct tbd_command_run *run, bool backward,
                                                      uint32_t thread, struct tbd_position *out);

#endif
