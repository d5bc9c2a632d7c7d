// SPDX-License-Identifier: MIT
/* history_register.h - the values of a variable whose place changes with the code: optimized code keeps it in registers, as a result
 * of them, as a constant, or for a while nowhere
 *
 * No store says when it changes: it is evaluated where each line and each block of its function begins,
 * in the call that one stands in. */
#ifndef TBD_QUERY_HISTORY_REGISTER_H
#define TBD_QUERY_HISTORY_REGISTER_H

#include "query/stepping/frame_end.h"
#include "query/session/source/source_place.h"

/* The call that an object lives in. */
struct tbd_lifetime {
    bool is_bounded; /* false: it is as old as the trace */
    bool has_end;    /* the function returns in the trace */
    struct tbd_position from, to;
};

/* The call of this frame, which lives at the current position; slot and from of `call` are given. */
struct tbd_lifetime tbd_lifetime_of(struct tbd_command_run *run, struct tbd_frame_call call);

/* `history EXPRESSION`, in the innermost frame of the place.  TBD_EXIT_NOT_FOUND: it has a value nowhere, and nothing is printed. */
enum tbd_exit tbd_history_register(struct tbd_command_run *run,
                                   const struct tbd_source_place *place);

#endif
