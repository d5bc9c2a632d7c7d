// SPDX-License-Identifier: MIT
/* call_search_private.h - what the parts of the search for stacks share: call_reach.c, call_splices.c, call_stacks.c */
#ifndef TBD_QUERY_CALL_SEARCH_PRIVATE_H
#define TBD_QUERY_CALL_SEARCH_PRIVATE_H

#include "query/contexts/call_graph_private.h"

#include <time.h>

#define TBD_JUMPS_MAX   32u
#define TBD_REACHED_MAX (2u << 20)

struct tbd_stack_search {
    const struct tbd_call_graph *graph;
    enum tbd_calling_scheme scheme;
    uint64_t value;
    const uint8_t *has_text;         /* of functions; NULL: all */
    struct tbd_start_stacks *starts; /* the graph's */
    uint32_t path[TBD_CALL_GRAPH_FRAMES];
    struct tbd_call_answer *answer;
    uint32_t seconds;    /* of the question */
    struct timespec end; /* processor time */
    uint64_t tried_most; /* calls */
    double step_bits;    /* what each way back costs, if it is the only one, too */
    bool asks;           /* the program calls tbd_context() by name */
    bool is_over, no_memory;
};

/* ---- call_reach.c: from the start ---- */

/* Makes the tables, with what recordings had, unless the graph has those of the scheme.  False: no memory. */
bool tbd_stacks_begin(struct tbd_stack_search *s);
/* Goes on calling, until `most` are reached. */
void tbd_stacks_reach_more(struct tbd_stack_search *s, uint32_t most);
/* NULL: it is not reached. */
const struct tbd_start_stack *tbd_stacks_reached(const struct tbd_stack_search *s, uint64_t value);
/* The functions that `first` is, or jumps to, or with `back`, that jump to it: at most TBD_JUMPS_MAX. */
uint32_t tbd_stacks_jumps(const struct tbd_stack_search *s, uint32_t first, bool back,
                          uint32_t *out);

/* ---- call_splices.c: the end is that of a stack that a recording had ---- */

void tbd_stacks_splice(struct tbd_stack_search *s);

/* ---- call_stacks.c ---- */

/* Is what is left of the value, before the call of `site` (NULL: it is none of a file), nothing, or reached?  Then
 * path[0, depth), the innermost call first, ends a stack that has the value. */
bool tbd_stacks_meet(struct tbd_stack_search *s, uint64_t left, const struct tbd_graph_site *site,
                     uint32_t depth);
/* Has the search had its time? */
bool tbd_stacks_is_late(const struct tbd_stack_search *s);

#endif
