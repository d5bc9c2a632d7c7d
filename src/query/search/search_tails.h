// SPDX-License-Identifier: MIT
/* search_tails.h - where the calls of a function may return, if its code leaves by jumps
 *
 * A tail call is a jump: the function that it leads to returns for the one that was called.  Jumps between
 * functions are found in the blocks that ran.  Jumps to addresses that only registers or memory knew are
 * not found: then the calls seem to live on. */
#ifndef TBD_QUERY_SEARCH_TAILS_H
#define TBD_QUERY_SEARCH_TAILS_H

#include "query/condition/expr.h"
#include "query/session/session.h"

#define TBD_TAILS_MOST 64u

struct tbd_tails {
    struct tbd_range64 ranges[TBD_TAILS_MOST]; /* code of whole functions, ... */
    uint32_t returning; /* ... of which this many come first: the function, and those that it leads to */
    uint32_t count;     /* the others lead to these; 0: nothing is known */
};

/* `name` is bound as of `window`. */
TBD_MUST_CHECK enum tbd_status tbd_tails_find(struct tbd_session *session, uint32_t window,
                                              const struct tbd_expr_name *name,
                                              struct tbd_tails *out);

/* May a return there end a call of the function? */
bool tbd_tails_return(const struct tbd_tails *tails, uint64_t pc);
/* Does one of the functions begin there? */
bool tbd_tails_begin(const struct tbd_tails *tails, uint64_t pc);

#endif
