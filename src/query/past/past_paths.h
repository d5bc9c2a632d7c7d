// SPDX-License-Identifier: MIT
/* past_paths.h - what all paths through a function to one of its instructions have computed, as its code says
 *
 * Rings begin somewhere, and have gaps.  What a register holds there may still follow from the code: an instruction that every
 * path from the function's beginning passes has set it, and none after it has.  This rests on two assumptions: the function was entered at
 * its beginning, and the functions that it called kept the registers that are theirs to keep (System V ABI, 3.2.1).
 *
 * PAST_PATHS-1  Each edge is followed, or nothing is said: a function with a jump to a computed address has no answer.  (not
 *     checked: test_values.py compares with what ran) */
#ifndef TBD_QUERY_PAST_PATHS_H
#define TBD_QUERY_PAST_PATHS_H

#include "query/past/past_pages.h"
#include "query/session/session.h"

#define TBD_PATHS_REGISTERS 16u
/* rbx, rbp, r12 to r15: a call leaves them as they are. */
#define TBD_PATHS_KEPT (1u << TBD_RBX | 1u << TBD_RBP | 0xf000u)

/* In place of an instruction's address. */
enum { TBD_PATHS_CALLER = 0, TBD_PATHS_SEVERAL = 1 /* or a function that was called */ };

struct tbd_paths {
    uint64_t function; /* where it begins */
    uint64_t set_by
        [TBD_PATHS_REGISTERS]; /* the instruction that set it last, on all paths; CALLER: none did */
    struct tbd_bits value[TBD_PATHS_REGISTERS];
};

/* Up to the instruction at `pc`, before it.  False: nothing follows. */
bool tbd_paths_to(struct tbd_session *session, struct tbd_past_pages *pages, uint64_t pc,
                  struct tbd_paths *out);

#endif
