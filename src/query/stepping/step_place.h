// SPDX-License-Identifier: MIT
/* step_place.h - what a step by source line must know about an instruction: its line, whether a statement begins there, and the copies of
 * inlined functions around it */
#ifndef TBD_QUERY_STEP_PLACE_H
#define TBD_QUERY_STEP_PLACE_H

#include "query/session/source/source.h"

#define TBD_STEP_INLINED 32u /* copies that are told apart */

/* A copy of an inlined function. */
struct tbd_step_inlined {
    uint64_t id;                 /* the same for the same copy */
    struct tbd_source_line call; /* line 0: not known */
};

struct tbd_step_place {
    uint64_t pc;
    struct tbd_source_line line; /* line 0: not known; `begins`: a statement begins at pc */
    bool is_line_event;          /* the code before it belongs to another line, or to none */
    struct tbd_step_inlined around[TBD_STEP_INLINED]; /* innermost first */
    unsigned count;
    unsigned starting; /* how many of them, from the innermost, have their start here */
};

/* Places that were looked at, by address. */
struct tbd_step_places;
TBD_MUST_CHECK enum tbd_status tbd_step_places_new(struct tbd_session *session,
                                                   struct tbd_step_places **out);
void tbd_step_places_free(struct tbd_step_places *places); /* NULL is fine */
/* Borrowed until the next call. */
const struct tbd_step_place *tbd_step_place_at(struct tbd_step_places *places, uint32_t window,
                                               uint64_t pc);

/* Where the next row of the line table begins after the set-up of a function's frame, be it a statement or not, as for gdb; the end of
 * the set-up if the function has no such row; `start`, where the function starts, if it sets up none. */
uint64_t tbd_step_after_prologue(struct tbd_session *session, uint32_t window, uint64_t start);

#endif
