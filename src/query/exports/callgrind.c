// SPDX-License-Identifier: MIT
/* callgrind.c - a profile for callgrind_annotate and kcachegrind: block entries by function, and calls
 *
 * A function's own cost is that of its calls without the calls in them; a call's cost is inclusive.  Of a function
 * that is already open the inner calls' costs are counted again, as callgrind does without cycles. */
#include "query/exports/timeline.h"

#include "base/array.h"
#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct call_edge {
    uint32_t caller, callee;
    uint64_t calls, cost;
};

struct profiling {
    uint64_t *self;          /* owned; by name */
    struct call_edge *edges; /* owned; one for each call, until they are joined */
    size_t edge_count, edge_capacity;
    uint32_t *open; /* owned: names of open slices */
    size_t depth, open_capacity;
    uint64_t total;
    bool no_memory;
};

static void profile_open(void *context, const struct tbd_timeline_slice *slice)
{
    struct profiling *p = context;

    if (!tbd_array_grow(&p->open, p->depth, &p->open_capacity, sizeof(*p->open)))
        p->no_memory = true;
    else
        p->open[p->depth++] = slice->name;
}

static int compare_edges(const void *left, const void *right)
{
    const struct call_edge *a = left, *b = right;

    if (a->caller != b->caller)
        return a->caller < b->caller ? -1 : 1;
    return a->callee < b->callee ? -1 : a->callee > b->callee;
}

static void join_edges(struct profiling *p)
{
    size_t used = 0;

    if (p->edge_count == 0)
        return;
    qsort(p->edges, p->edge_count, sizeof(*p->edges), compare_edges);
    for (size_t i = 1; i < p->edge_count; i++) {
        if (compare_edges(&p->edges[used], &p->edges[i]) == 0) {
            p->edges[used].calls += p->edges[i].calls;
            p->edges[used].cost += p->edges[i].cost;
        } else {
            p->edges[++used] = p->edges[i];
        }
    }
    p->edge_count = used + 1;
}

static void profile_close(void *context, const struct tbd_timeline_slice *slice, uint64_t self)
{
    struct profiling *p = context;

    if (p->no_memory)
        return;
    p->self[slice->name] += self;
    p->total += self;
    p->depth--;
    if (p->depth == 0)
        return;
    if (!tbd_array_grow(&p->edges, p->edge_count, &p->edge_capacity, sizeof(*p->edges))) {
        p->no_memory = true;
        return;
    }
    p->edges[p->edge_count++] = (struct call_edge){ .caller = p->open[p->depth - 1],
                                                    .callee = slice->name,
                                                    .calls = 1,
                                                    .cost = slice->end - slice->start };
}

/* ---- writing ---- */

static void print_place(const struct tbd_timeline_name *name, const char *file,
                        const char *function, FILE *out)
{
    char *text = tbd_shown_copy(name->text);

    fprintf(out, "%s=%s\n", file, name->file[0] == '\0' ? "???" : tbd_shown(name->file));
    fprintf(out, "%s=%s\n", function, text == NULL ? "?" : text);
    free(text);
}

static void print_function(const struct profiling *p, const struct tbd_timeline *timeline,
                           uint32_t number, size_t *io_edge, FILE *out)
{
    const struct tbd_timeline_name *name = &timeline->names[number];

    fputc('\n', out);
    print_place(name, "fl", "fn", out);
    fprintf(out, "%" PRIu32 " %" PRIu64 "\n", name->line, p->self[number]);
    for (; *io_edge < p->edge_count && p->edges[*io_edge].caller == number; ++*io_edge) {
        const struct call_edge *edge = &p->edges[*io_edge];
        const struct tbd_timeline_name *callee = &timeline->names[edge->callee];

        print_place(callee, "cfi", "cfn", out);
        fprintf(out, "calls=%" PRIu64 " %" PRIu32 "\n", edge->calls, callee->line);
        fprintf(out, "%" PRIu32 " %" PRIu64 "\n", name->line, edge->cost);
    }
}

static void print_profile(const struct tbd_export *export, const struct profiling *p)
{
    const struct tbd_trace_info *info = export->run->session->info;
    size_t edge = 0;

    fprintf(export->out,
            "# callgrind format\nversion: 1\ncreator: tbdq\npid: %" PRIu32 "\ncmd: %s\n", info->pid,
            tbd_shown(info->program));
    fprintf(export->out, "positions: line\nevents: Blocks\nsummary: %" PRIu64 "\n", p->total);
    for (uint32_t i = 0; i < export->timeline->name_count; i++)
        print_function(p, export->timeline, i, &edge, export->out);
    fprintf(export->out, "\ntotals: %" PRIu64 "\n", p->total);
}

bool tbd_export_callgrind(const struct tbd_export *export)
{
    struct profiling p = { .self = calloc(export->timeline->name_count + 1, sizeof(*p.self)) };
    struct tbd_timeline_visitor visitor = { .open = profile_open,
                                            .close = profile_close,
                                            .context = &p };
    bool is_good = p.self != NULL && tbd_timeline_walk(export->timeline, &visitor) && !p.no_memory;

    if (is_good) {
        join_edges(&p);
        print_profile(export, &p);
    }
    free(p.self);
    free(p.edges);
    free(p.open);
    return is_good;
}
