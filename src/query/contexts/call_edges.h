// SPDX-License-Identifier: MIT
/* call_edges.h - calls that recordings of the program had where its code does not say where they lead
 *
 * The stacks themselves are where the search meets the program's start.
 *
 * Of the stacks in the dictionary each call and the one before it make an edge: a call of this place has entered that
 * function.  The search for other stacks (call_graph.h) tries these before all calls whose target is not known. */
#ifndef TBD_QUERY_CALL_EDGES_H
#define TBD_QUERY_CALL_EDGES_H

#include "query/contexts/context_dictionary.h"

/* Once for a graph.  TBD_NOMEM. */
TBD_MUST_CHECK enum tbd_status
tbd_call_graph_learn(struct tbd_call_graph *graph, const struct tbd_context_dictionary *dictionary);

#endif
