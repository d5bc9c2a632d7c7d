// SPDX-License-Identifier: MIT
/* inlined_calls.h - the calls on a stack with those that the compiler inlined, as bt shows them
 *
 * An address in code of inlined functions stands for several calls: one of each copy around it, and
 * that of the function whose code it is.  What debug information says of an address is kept, because
 * the stacks of a million events have the same few addresses. */
#ifndef TBD_QUERY_INLINED_CALLS_H
#define TBD_QUERY_INLINED_CALLS_H

#include "query/session/session.h"

/* A copy of an inlined function; the same numbers mean the same copy. */
struct tbd_inlined_copy {
    uint64_t entry; /* its first instruction, as mapped; 0: no copy, but a function's own code */
    uint64_t id;    /* struct tbd_dwarf_inlined */
};

struct tbd_inlined_call {
    uint64_t pc; /* inside the call instruction, or where the innermost call is */
    struct tbd_inlined_copy copy;
};

struct tbd_inlined_calls;
TBD_MUST_CHECK enum tbd_status tbd_inlined_calls_new(struct tbd_session *session,
                                                     struct tbd_inlined_calls **out);
void tbd_inlined_calls_free(struct tbd_inlined_calls *calls); /* NULL is fine */
/* The modules of this window count from now on. */
void tbd_inlined_calls_set_window(struct tbd_inlined_calls *calls, uint32_t window);
/* All calls at the addresses, both innermost first; borrowed until the next call.  With `is_entry` the
 * first address is where a function with code of its own is entered or left, and stands for this one
 * alone.  NULL: there is no memory. */
const struct tbd_inlined_call *tbd_inlined_calls_of(struct tbd_inlined_calls *calls,
                                                    const uint64_t *pcs, size_t count,
                                                    bool is_entry, size_t *out_count);
/* The innermost inlined function around the address; NULL: there is none.  What was looked up is kept
 * in the session. */
const char *tbd_inlined_calls_innermost(struct tbd_session *session, uint32_t window, uint64_t pc);
/* Negative, 0 or positive, as memcmp(). */
static inline int tbd_inlined_copy_compare(struct tbd_inlined_copy a, struct tbd_inlined_copy b)
{
    if (a.entry != b.entry)
        return a.entry < b.entry ? -1 : 1;
    return a.id < b.id ? -1 : a.id > b.id;
}

#endif
