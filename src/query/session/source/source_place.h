// SPDX-License-Identifier: MIT
/* source_place.h - the place at which expressions are evaluated: one frame of a trace
 *
 * Brings together the stack, registers and memory at a position (session), and the debug
 * information of the modules there. */
#ifndef TBD_QUERY_SOURCE_PLACE_H
#define TBD_QUERY_SOURCE_PLACE_H

#include "query/values/dwarf_expr.h"
#include "query/values/dwarf_print.h"
#include "query/session/source/source.h"

#define TBD_SOURCE_CALLERS 64 /* places kept for values at function entry */

struct tbd_source_place {
    struct tbd_session *session;
    struct tbd_source_stack stack; /* owned */
    struct tbd_reg_state *state;   /* owned */
    struct tbd_stack_memory memory;
    struct tbd_place_of places[TBD_SOURCE_CALLERS]; /* [0]: the frame itself */
    size_t first_frame, place_count;                /* of the stack: those that `places` are of */
};

/* Opens the frame selected at `position`, or with `frame` != SIZE_MAX frame `frame`. The struct
 * must not be moved in memory. */
TBD_MUST_CHECK enum tbd_status tbd_source_place_open(struct tbd_session *session,
                                                     struct tbd_position position, size_t frame,
                                                     struct tbd_source_place *out);
/* places[0] becomes call `call` of the stack.  From one to the next is cheap: for walks over all. */
void tbd_source_place_select(struct tbd_source_place *place, size_t call);
/* The same without registers and callers: scopes and globals only, without a replay. False if the
 * selected frame is not the innermost, or if there is no such place. */
bool tbd_source_place_glance(struct tbd_session *session, struct tbd_position position,
                             struct tbd_source_place *out);
void tbd_source_place_close(struct tbd_source_place *place);
/* Opens the place at `position` for the expression text[from, to) and evaluates it there; registers
 * are only read when the value needs them. On failure nothing is open, and error->message is empty
 * if the place is not available. */
TBD_MUST_CHECK enum tbd_status
tbd_source_evaluate(struct tbd_session *session, struct tbd_position position, const char *text,
                    size_t from, size_t to, struct tbd_source_place *out, struct tbd_data *out_data,
                    struct tbd_query_error *error);
/* For expressions and output at the place; borrow it. */
struct tbd_c_scope tbd_source_scope(struct tbd_source_place *place);
struct tbd_printer tbd_source_printer(struct tbd_source_place *place, char format);

#endif
