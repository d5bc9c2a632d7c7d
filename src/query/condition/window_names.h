// SPDX-License-Identifier: MIT
/* window_names.h - names in conditions, looked up in the modules of a window
 *
 * Called by any thread that may use the session. */
#ifndef TBD_QUERY_WINDOW_NAMES_H
#define TBD_QUERY_WINDOW_NAMES_H

#include "query/condition/expr.h"
#include "query/session/event.h"
#include "query/session/session.h"

struct tbd_window_names {
    struct tbd_session *session; /* borrowed */
    uint32_t window;
    /* A function's name means its inlined copies, too, except for entries and exits. */
    enum tbd_event_type type;
};
/* Names for expressions as of window `context->window`; borrows `context`. */
struct tbd_expr_names tbd_window_names_of(struct tbd_window_names *context);

#endif
