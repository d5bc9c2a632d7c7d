// SPDX-License-Identifier: MIT
/* call_edges.c - see call_edges.h */
#include "query/contexts/call_edges.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "query/contexts/call_graph_private.h"

#include <stdlib.h>

#define NO_FILE UINT32_MAX

/* The call of a node, and the function that makes it. */
struct node_place {
    uint32_t site, function;
};

/* The graph's file for each of the dictionary's. */
static void match_files(const struct tbd_call_graph *graph, const struct tbd_context_dictionary *d,
                        uint32_t *out)
{
    for (size_t i = 0; i < d->path_count; i++) {
        uint64_t number = tbd_calling_module(d->paths[i]);

        out[i] = NO_FILE;
        for (uint32_t k = 0; k < graph->file_count && out[i] == NO_FILE; k++)
            out[i] = graph->files[k].number == number ? k : NO_FILE;
    }
}

static uint32_t site_at(const struct tbd_call_graph *graph, uint32_t function, uint64_t after)
{
    const struct tbd_graph_function *f = &graph->functions[function];
    uint32_t first = f->calls, count = f->call_count;
    size_t at = first + TBD_COUNT_BEFORE(i, count, graph->sites[first + i].after < after);

    return at < (size_t)first + count && graph->sites[at].after == after && graph->sites[at].number
               ? (uint32_t)at
               : TBD_NO_SITE;
}

static struct node_place place_of(const struct tbd_call_graph *graph, uint32_t file,
                                  uint64_t offset)
{
    struct node_place place = { TBD_NO_SITE, TBD_NO_FUNCTION };
    uint64_t address = file != NO_FILE ? tbd_contexts_address(graph->files[file].elf, offset) : 0;

    if (address == 0)
        return place;
    place.function = tbd_graph_function_at(graph, file, address - 1);
    if (place.function != TBD_NO_FUNCTION)
        place.site = site_at(graph, place.function, address);
    return place;
}

static bool add_edge(struct tbd_call_graph *graph, uint32_t function, uint32_t site)
{
    if (!tbd_array_grow(&graph->edges, graph->edge_count, &graph->edge_capacity,
                        sizeof(*graph->edges)))
        return false;
    graph->edges[graph->edge_count++] = (struct tbd_graph_edge){ function, site };
    return true;
}

static bool add_edges(struct tbd_call_graph *graph, const struct tbd_context_dictionary *d,
                      const uint32_t *files, struct node_place *places)
{
    for (size_t i = 0; i < d->node_count; i++) {
        const struct tbd_context_node *node = &d->nodes[i];
        uint32_t from = node->parent ? places[node->parent - 1].site : TBD_NO_SITE;

        places[i] = place_of(graph, files[node->file], node->offset);
        if (from == TBD_NO_SITE || places[i].function == TBD_NO_FUNCTION ||
            graph->sites[from].target == places[i].function)
            continue;
        if (!add_edge(graph, places[i].function, from))
            return false;
    }
    return true;
}

static int compare_edges(const void *a, const void *b)
{
    const struct tbd_graph_edge *one = a, *other = b;

    if (one->function != other->function)
        return one->function < other->function ? -1 : 1;
    return one->site < other->site ? -1 : one->site > other->site;
}

static int compare_sites(const void *a, const void *b)
{
    const struct tbd_graph_edge *one = a, *other = b;

    return one->site < other->site ? -1 : one->site > other->site;
}

/* Each once; then the same by site. */
static bool sort_edges(struct tbd_call_graph *graph)
{
    size_t kept = 0;

    if (graph->edge_count == 0)
        return true;
    qsort(graph->edges, graph->edge_count, sizeof(*graph->edges), compare_edges);
    for (size_t i = 0; i < graph->edge_count; i++)
        if (kept == 0 || compare_edges(&graph->edges[kept - 1], &graph->edges[i]) != 0)
            graph->edges[kept++] = graph->edges[i];
    graph->edge_count = kept;
    graph->edges_by_site = malloc(kept * sizeof(*graph->edges));
    if (!graph->edges_by_site)
        return false;
    for (size_t i = 0; i < kept; i++)
        graph->edges_by_site[i] = graph->edges[i];
    qsort(graph->edges_by_site, kept, sizeof(*graph->edges), compare_sites);
    return true;
}

static bool keep_stacks(struct tbd_call_graph *graph, const struct tbd_context_dictionary *d,
                        const struct node_place *places)
{
    graph->known = malloc((d->node_count + 1) * sizeof(*graph->known));
    if (!graph->known)
        return false;
    for (size_t i = 0; i < d->node_count; i++)
        graph->known[i] = (struct tbd_graph_known){ d->nodes[i].parent, places[i].site };
    graph->known_count = d->node_count;
    return true;
}

enum tbd_status tbd_call_graph_learn(struct tbd_call_graph *graph,
                                     const struct tbd_context_dictionary *dictionary)
{
    uint32_t *files = calloc(dictionary->path_count + 1, sizeof(*files));
    struct node_place *places = calloc(dictionary->node_count + 1, sizeof(*places));
    bool ok = files && places;

    if (ok) {
        match_files(graph, dictionary, files);
        ok = add_edges(graph, dictionary, files, places) && sort_edges(graph) &&
             keep_stacks(graph, dictionary, places);
    }
    free(files);
    free(places);
    return ok ? TBD_OK : TBD_NOMEM;
}

/* ---- for the search ---- */

size_t tbd_graph_edges_to(const struct tbd_call_graph *graph, uint32_t function,
                          const struct tbd_graph_edge **out)
{
    size_t first = TBD_COUNT_BEFORE(i, graph->edge_count, graph->edges[i].function < function);
    size_t end = TBD_COUNT_BEFORE(i, graph->edge_count, graph->edges[i].function <= function);

    *out = graph->edges + first;
    return end - first;
}

size_t tbd_graph_edges_from(const struct tbd_call_graph *graph, uint32_t site,
                            const struct tbd_graph_edge **out)
{
    size_t first = TBD_COUNT_BEFORE(i, graph->edge_count, graph->edges_by_site[i].site < site);
    size_t end = TBD_COUNT_BEFORE(i, graph->edge_count, graph->edges_by_site[i].site <= site);

    *out = graph->edges_by_site + first;
    return end - first;
}
