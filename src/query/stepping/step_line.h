// SPDX-License-Identifier: MIT
/* step_line.h - where steps by source line end
 *
 * A step ends where a statement of another line begins.  What counts as the line that is left changes on the way: a jump into the middle
 * of a line, or a return into one, makes that the line.  Steps over calls pass over inlined functions, too. */
#ifndef TBD_QUERY_STEP_LINE_H
#define TBD_QUERY_STEP_LINE_H

#include "query/stepping/step_walk.h"
#include "query/stepping/step_place.h"

enum tbd_step_kind {
    TBD_STEP_INTO,  /* also into functions whose source lines are known */
    TBD_STEP_OVER,  /* over them */
    TBD_STEP_UNTIL, /* over them, and never back to code before the position in the same function */
    TBD_STEP_OUT    /* out of the selected copy of an inlined function */
};

struct tbd_stepping {
    struct tbd_step_walk walk;
    struct tbd_step_places *places; /* owned */
    enum tbd_step_kind kind;
    struct tbd_source_line line; /* that is left; line 0: any other one */
    uint64_t own
        [TBD_STEP_INLINED]; /* copies of inlined functions that the frame is in, innermost first */
    unsigned own_count;
    uint64_t began[TBD_STEP_INLINED]; /* copies around the place where OUT began */
    unsigned began_count;
    bool
        is_falling; /* it comes from code above in the copy that it leaves: its start here is no call */
    uint64_t from, to; /* the stretch of code that it was taken from */
    bool has_changed;  /* the frame, or its function, since the last place with a line */
    uint64_t start_pc, start_frame; /* of UNTIL */
    unsigned selected; /* the frame to be shown: it calls the copies that begin at the position */
    bool is_there;     /* the step ends where it began: only the frame is another one */
};

/* Call tbd_stepping_end() even on failure. */
TBD_MUST_CHECK enum tbd_status tbd_stepping_start(struct tbd_stepping *stepping,
                                                  struct tbd_command_run *run,
                                                  struct tbd_position from,
                                                  enum tbd_step_kind kind);
void tbd_stepping_end(struct tbd_stepping *stepping);

/* To the end of a step, stepping->walk.at; TBD_STEP_ON, TBD_STEP_ENDS or TBD_STEP_FAILED. */
enum tbd_step_move tbd_stepping_forward(struct tbd_stepping *stepping);
enum tbd_step_move tbd_stepping_backward(struct tbd_stepping *stepping);

#endif
