// SPDX-License-Identifier: MIT
/* call_reach.c - stacks from the program's start on, by their values: those that recordings had, then what their functions call */
#include "query/contexts/call_search_private.h"

#include <stdlib.h>

#define REACHED_HASH (1u << 23)
#define KNOWN_MAX    (TBD_REACHED_MAX / 2) /* of them that recordings had */
#define SEEN_BITS    25
#define START_DEPTH  4u /* from the entry to main */

static uint32_t *hash_slot(const struct tbd_stack_search *s, uint64_t value)
{
    uint64_t at = tbd_hash64_mix(value) % REACHED_HASH;

    while (s->starts->hash[at] && s->starts->reached[s->starts->hash[at] - 1].value != value)
        at = (at + 1) % REACHED_HASH;
    return &s->starts->hash[at];
}

static uint64_t seen_bit(uint64_t value, size_t *word)
{
    uint64_t bit = tbd_hash64_mix(value) >> (64 - SEEN_BITS);

    *word = bit / 64;
    return 1ull << bit % 64;
}

const struct tbd_start_stack *tbd_stacks_reached(const struct tbd_stack_search *s, uint64_t value)
{
    size_t word;
    uint64_t bit = seen_bit(value, &word);
    uint32_t index = s->starts->seen[word] & bit ? *hash_slot(s, value) : 0;

    return index ? &s->starts->reached[index - 1] : NULL;
}

static void reach(struct tbd_stack_search *s, struct tbd_start_stack state)
{
    uint32_t *slot;
    uint64_t bit;
    size_t word;

    if (s->starts->reached_count == TBD_REACHED_MAX)
        return;
    slot = hash_slot(s, state.value);
    if (*slot && (state.function == TBD_NO_FUNCTION ||
                  s->starts->reached[*slot - 1].function == state.function))
        return; /* by a shorter way */
    bit = seen_bit(state.value, &word);
    s->starts->seen[word] |= bit;
    s->starts->reached[s->starts->reached_count++] = state;
    if (!*slot)
        *slot = s->starts->reached_count;
}

uint32_t tbd_stacks_jumps(const struct tbd_stack_search *s, uint32_t first, bool back,
                          uint32_t *out)
{
    const struct tbd_call_graph *graph = s->graph;
    uint32_t count = 1;

    out[0] = first;
    for (uint32_t i = 0; i < count; i++) {
        const struct tbd_graph_function *f = &graph->functions[out[i]];
        uint32_t sites = back ? f->caller_count : f->call_count;

        for (uint32_t n = 0; n < sites && count < TBD_JUMPS_MAX; n++) {
            const struct tbd_graph_site *site =
                &graph->sites[back ? graph->by_target[f->callers + n] : f->calls + n];
            uint32_t other = back ? site->function : site->target, k = 0;

            if (site->number)
                continue;
            while (k < count && out[k] != other)
                k++;
            if (k == count)
                out[count++] = other;
        }
    }
    return count;
}

/* Where recordings say that the call led. */
static void reach_learned(struct tbd_stack_search *s, struct tbd_start_stack next)
{
    const struct tbd_graph_edge *edges;
    size_t count = tbd_graph_edges_from(s->graph, next.site, &edges);

    for (size_t i = 0; i < count; i++) {
        next.function = edges[i].function;
        reach(s, next);
    }
}

static void reach_from(struct tbd_stack_search *s, uint32_t index)
{
    const struct tbd_call_graph *graph = s->graph;
    const struct tbd_start_stack from = s->starts->reached[index];
    uint32_t functions[TBD_JUMPS_MAX];
    uint32_t count = tbd_stacks_jumps(s, from.function, false, functions);

    for (uint32_t i = 0; i < count; i++) {
        const struct tbd_graph_function *f = &graph->functions[functions[i]];

        for (uint32_t n = f->calls; n < f->calls + f->call_count; n++) {
            const struct tbd_graph_site *site = &graph->sites[n];
            struct tbd_start_stack next = { .value = tbd_calling_enter(s->scheme, from.value,
                                                                       site->number),
                                            .function = site->target,
                                            .parent = index,
                                            .site = n,
                                            .depth = from.depth + 1 };

            if (!site->number)
                continue;
            if (site->target == TBD_NO_FUNCTION && from.depth < START_DEPTH)
                next.function = graph->main;
            reach(s, next);
            reach_learned(s, next);
        }
    }
}

/* The first stack of all with this value; 0 if it was not reached: there is a root. */
static uint32_t index_of(const struct tbd_stack_search *s, uint64_t value)
{
    uint32_t index = *hash_slot(s, value);

    return index ? index - 1 : 0;
}

/* Stacks that recordings had are where most others go on from.  `indices`: of their calls, in what is reached. */
static void reach_known(struct tbd_stack_search *s, uint32_t *indices, uint32_t other_root)
{
    const struct tbd_call_graph *graph = s->graph;

    for (size_t i = 0; i < graph->known_count && s->starts->reached_count < KNOWN_MAX; i++) {
        const struct tbd_graph_known *known = &graph->known[i];
        struct tbd_start_stack next = { .site = known->site };

        indices[i] = 0;
        if (known->site == TBD_NO_SITE || (known->parent && !indices[known->parent - 1]))
            continue;
        if (known->parent)
            next.parent = indices[known->parent - 1];
        else if (graph->sites[known->site].function != graph->entry)
            next.parent = other_root;
        next.value = tbd_calling_enter(s->scheme, s->starts->reached[next.parent].value,
                                       graph->sites[known->site].number);
        next.function = graph->sites[known->site].target;
        next.depth = s->starts->reached[next.parent].depth + 1;
        if (next.depth >= TBD_CALL_GRAPH_FRAMES)
            continue;
        reach(s, next);
        reach_learned(s, next);
        indices[i] = index_of(s, next.value);
    }
}

/* Threads begin with nothing called, too, but not at the program's entry. */
static bool begin_with_known(struct tbd_stack_search *s)
{
    uint32_t *indices = calloc(s->graph->known_count + 1, sizeof(*indices));

    if (!indices)
        return false;
    s->starts->reached[s->starts->reached_count] =
        (struct tbd_start_stack){ .function = TBD_NO_FUNCTION };
    reach_known(s, indices, s->starts->reached_count++);
    free(indices);
    return true;
}

void tbd_start_stacks_free(struct tbd_start_stacks *starts)
{
    free(starts->reached);
    free(starts->hash);
    free(starts->seen);
    *starts = (struct tbd_start_stacks){ .reached = NULL };
}

static bool make_tables(struct tbd_start_stacks *starts, enum tbd_calling_scheme scheme)
{
    *starts = (struct tbd_start_stacks){
        .reached = malloc(TBD_REACHED_MAX * sizeof(*starts->reached)),
        .hash = calloc(REACHED_HASH, sizeof(*starts->hash)),
        .seen = calloc((1u << SEEN_BITS) / 64, sizeof(*starts->seen)),
        .scheme = scheme,
    };
    return starts->reached && starts->hash && starts->seen;
}

static bool begin(struct tbd_stack_search *s)
{
    if (!make_tables(s->starts, s->scheme))
        return false;
    if (s->graph->entry != TBD_NO_FUNCTION)
        reach(s, (struct tbd_start_stack){ .function = s->graph->entry });
    return !s->graph->known_count || begin_with_known(s);
}

bool tbd_stacks_begin(struct tbd_stack_search *s)
{
    if (s->starts->reached && s->starts->scheme == s->scheme)
        return true;
    tbd_start_stacks_free(s->starts);
    if (begin(s))
        return true;
    tbd_start_stacks_free(s->starts);
    return false;
}

void tbd_stacks_reach_more(struct tbd_stack_search *s, uint32_t most)
{
    for (; s->starts->next < s->starts->reached_count && s->starts->reached_count < most;
         s->starts->next++)
        if (s->starts->reached[s->starts->next].function != TBD_NO_FUNCTION)
            reach_from(s, s->starts->next);
}
