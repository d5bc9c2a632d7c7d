// SPDX-License-Identifier: MIT
/* call_splices.c - a stack that no recording had is mostly made of pieces that recordings had
 *
 * Programs do what they know in new surroundings: an interpreter calls its allocator from another place.  So each stack
 * that a recording had may be how the wanted one ends, from any of its calls on; what is further out must be reached
 * (call_reach.c: by recordings, and the calls from there).  If there is none, the innermost call may be one that no recording had, of
 * a function that the recorded stack has entered.  If the program calls tbd_context() by name, such a call comes further in.
 *
 * Only the order scheme tells pieces apart: with xor and sum each order of the same pieces has the value. */
#include "query/contexts/call_search_private.h"

#define PIECES_MAX (128u << 20)
#define LATE_STEPS 4096u /* between two looks at the clock */

struct splicing {
    struct tbd_stack_search *s;
    uint64_t value; /* without path[0, depth): a call of tbd_context(), or nothing */
    uint32_t depth;
    uint64_t pieces; /* tried */
};

/* The last calls of a known stack, one after another.  path[0, depth) is further in, and undone. */
static void undo_known(struct splicing *p, uint64_t value, size_t known, uint32_t depth)
{
    struct tbd_stack_search *s = p->s;

    while (known && depth < TBD_CALL_GRAPH_FRAMES) {
        const struct tbd_graph_known *call = &s->graph->known[known - 1];
        const struct tbd_graph_site *site;

        if (call->site == TBD_NO_SITE)
            return;
        site = &s->graph->sites[call->site];
        s->path[depth++] = call->site;
        value = tbd_calling_leave(s->scheme, value, site->number);
        tbd_stacks_meet(s, value, site, depth);
        p->pieces++;
        known = call->parent;
    }
}

static void try_known(struct splicing *p, size_t known)
{
    undo_known(p, p->value, known, p->depth);
}

/* The function that the known stack has entered calls once more. */
static void call_from(struct splicing *p, size_t known, uint32_t function)
{
    const struct tbd_call_graph *graph = p->s->graph;
    const struct tbd_graph_function *f;

    if (function == TBD_NO_FUNCTION)
        return;
    f = &graph->functions[function];
    for (uint32_t i = f->calls; i < f->calls + f->call_count; i++) {
        const struct tbd_graph_site *site = &graph->sites[i];

        if (!site->number)
            continue;
        p->s->path[p->depth] = i;
        undo_known(p, tbd_calling_leave(p->s->scheme, p->value, site->number), known, p->depth + 1);
    }
}

static void try_one_more_call(struct splicing *p, size_t known)
{
    uint32_t site = p->s->graph->known[known - 1].site;
    const struct tbd_graph_edge *edges;
    size_t count = tbd_graph_edges_from(p->s->graph, site, &edges);

    call_from(p, known, p->s->graph->sites[site].target);
    for (size_t i = 0; i < count; i++)
        call_from(p, known, edges[i].function);
}

static void try_each(struct splicing *p, void (*try)(struct splicing *p, size_t known))
{
    const struct tbd_call_graph *graph = p->s->graph;

    for (size_t i = 0; i < graph->known_count && p->pieces < PIECES_MAX; i++) {
        if (i % LATE_STEPS == 0 && tbd_stacks_is_late(p->s))
            return;
        if (graph->known[i].site != TBD_NO_SITE)
            try(p, i + 1);
    }
}

static void try_end(struct splicing *p)
{
    try_each(p, try_known);
    if (!p->s->answer->count)
        try_each(p, try_one_more_call);
}

void tbd_stacks_splice(struct tbd_stack_search *s)
{
    const struct tbd_call_graph *graph = s->graph;
    struct splicing p = { .s = s, .value = s->value };

    if (s->scheme != TBD_CALLING_ORDER)
        return;
    if (!s->asks)
        try_end(&p);
    for (uint32_t i = 0; s->asks && i < graph->site_count && !s->answer->count; i++) {
        if (!graph->sites[i].asks || !graph->sites[i].number)
            continue;
        s->path[0] = i;
        p.value = tbd_calling_leave(s->scheme, s->value, graph->sites[i].number);
        p.depth = 1;
        try_end(&p);
    }
    s->answer->tried += p.pieces;
}
