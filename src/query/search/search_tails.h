// SPDX-License-Identifier: MIT
/* search_tails.h - which functions return for others, because code leaves by jumps
 *
 * A tail call is a jump: the function that it leads to returns for the one that was called.  Jumps between
 * functions are found in the blocks that ran.  Jumps to addresses that only registers or memory knew are
 * those that were seen (seen_jumps.h).  With others calls seem to live on, or there are returns without a call. */
#ifndef TBD_QUERY_SEARCH_TAILS_H
#define TBD_QUERY_SEARCH_TAILS_H

#include "query/condition/expr.h"
#include "query/session/session.h"

#define TBD_TAILS_MOST 256u

struct tbd_tail {
    struct tbd_range64 code;
    bool
        returns; /* for the function that is asked about: it is this one, or jumps of it lead here */
};

/* A function, those to which it leads, and those that lead to one of these. */
struct tbd_tails {
    struct tbd_tail all[TBD_TAILS_MOST]; /* by address */
    uint32_t count;                      /* 0: nothing is known */
    uint32_t others;                     /* all but the function itself */
};

/* `name` is bound as of `window`; `seen`: places to which these functions were seen to jump. */
TBD_MUST_CHECK enum tbd_status tbd_tails_find(struct tbd_session *session, uint32_t window,
                                              const struct tbd_expr_name *name,
                                              const uint64_t *seen, size_t seen_count,
                                              struct tbd_tails *out);

/* The place that the block's last instruction jumps to, if it names one. */
bool tbd_tails_target(const struct tbd_block *block, uint64_t *out);

/* May a return there end a call of the function that is asked about? */
bool tbd_tails_return(const struct tbd_tails *tails, uint64_t pc);
/* Does one of the functions begin there? */
bool tbd_tails_begin(const struct tbd_tails *tails, uint64_t pc);
/* Is it the first block of an import stub of the function?  It jumps there, perhaps by way of the loader. */
bool tbd_tails_is_stub(struct tbd_session *session, uint32_t window,
                       const struct tbd_expr_name *name, const struct tbd_block *block);

#endif
