// SPDX-License-Identifier: MIT
/* call_stacks.c - the search for stacks with a value
 *
 * From the value backward: each call that may have led to a function is undone. What that costs is counted in bits (the
 * logarithm of the number of such calls, summed), and the search is repeated with more bits until it finds
 * something: rare ways are not tried before likely ones.  It ends at the value 0, where nothing had been called, or
 * at one of the values that were reached from the program's start, or from stacks that recordings had.
 *
 * Where recordings had some, ends of these are tried first (call_splices.c). */
#include "query/contexts/call_search_private.h"

#include "base/string.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

#define REACHED_SOON (1u << 16) /* of them before the first, likely ways back */
#define LIKELY_BITS  10
#define TRIED_MAX    (32u << 20)
#define BITS_MAX     34
#define SIGNAL_SITE  0xffffff00u /* + signo, in a path; 0: a call by code in no file */
#define ANYWHERE     TBD_NO_FUNCTION
#define NO_FILE      (TBD_NO_FUNCTION - 1) /* generated code, as a function */
#define TEXT_FRAMES  3u
#define STEP_BITS    1.0

/* ---- answers ---- */

static struct tbd_call_frame frame_of(const struct tbd_stack_search *s, uint32_t path)
{
    const struct tbd_graph_site *site = &s->graph->sites[path < SIGNAL_SITE ? path : 0];
    const struct tbd_graph_file *file;
    const struct tbd_graph_function *function;
    const struct tbd_elf_symbol *symbol;

    if (path >= SIGNAL_SITE) /* signal 0: no file */
        return (struct tbd_call_frame){ .signo = path - SIGNAL_SITE };
    function = &s->graph->functions[site->function];
    file = &s->graph->files[function->file];
    symbol = tbd_elf_symbol_at(file->elf, site->after - 1);
    return (struct tbd_call_frame){
        .module = tbd_base_name(file->path),
        .function = symbol ? tbd_elf_symbol_name(file->elf, symbol) : "",
        .offset = site->after - (symbol ? symbol->start : function->start),
        .address = site->after,
        .file = file->elf,
        .is_indirect = site->target == TBD_NO_FUNCTION && !site->asks,
    };
}

/* Has one of the innermost functions the text? */
static bool has_text(const struct tbd_stack_search *s, uint32_t depth,
                     const struct tbd_start_stack *start)
{
    if (!s->has_text)
        return true;
    for (uint32_t i = 0; i < TEXT_FRAMES; i++) {
        uint32_t path = i < depth ? s->path[i] : start && start->depth ? start->site : SIGNAL_SITE;

        if (path < SIGNAL_SITE && s->has_text[s->graph->sites[path].function])
            return true;
        if (i >= depth && start)
            start = start->depth ? &s->starts->reached[start->parent] : NULL;
    }
    return false;
}

/* Is the stack among the answers? A second way by jumps leads to the same calls. */
static bool is_known(const struct tbd_stack_search *s, const struct tbd_call_stack *stack)
{
    for (size_t i = 0; i < s->answer->count; i++) {
        const struct tbd_call_stack *other = &s->answer->stacks[i];
        size_t n = 0;

        while (n < stack->count && other->count == stack->count &&
               other->frames[n].file == stack->frames[n].file &&
               other->frames[n].address == stack->frames[n].address &&
               other->frames[n].signo == stack->frames[n].signo)
            n++;
        if (n == stack->count && other->count == n)
            return true;
    }
    return false;
}

/* Does it begin where the program does, and not a thread? */
static bool is_from_entry(const struct tbd_stack_search *s, const struct tbd_start_stack *start)
{
    while (start && start->depth)
        start = &s->starts->reached[start->parent];
    return start && start->function != TBD_NO_FUNCTION && start->function == s->graph->entry;
}

static void found(struct tbd_stack_search *s, uint32_t depth, const struct tbd_start_stack *start)
{
    struct tbd_call_answer *answer = s->answer;
    uint32_t count = depth + (start ? start->depth : 0);
    struct tbd_call_stack stack = { .count = count, .from_start = is_from_entry(s, start) };

    if (answer->count == TBD_CALL_GRAPH_STACKS || !has_text(s, depth, start))
        return;
    stack.frames = calloc(count + 1, sizeof(*stack.frames));
    if (!stack.frames) {
        s->no_memory = s->is_over = true;
        return;
    }
    for (uint32_t i = 0; i < depth; i++)
        stack.frames[i] = frame_of(s, s->path[i]);
    for (uint32_t i = depth; i < count; i++, start = &s->starts->reached[start->parent])
        stack.frames[i] = frame_of(s, start->site);
    if (is_known(s, &stack)) {
        free(stack.frames);
        return;
    }
    answer->stacks[answer->count++] = stack;
}

bool tbd_stacks_meet(struct tbd_stack_search *s, uint64_t left, const struct tbd_graph_site *site,
                     uint32_t depth)
{
    const struct tbd_start_stack *start =
        left || (site && site->function == s->graph->entry) ? tbd_stacks_reached(s, left) : NULL;

    if (left && !start)
        return false;
    found(s, depth, start);
    return true;
}

bool tbd_stacks_is_late(const struct tbd_stack_search *s)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec > s->end.tv_sec ||
           (now.tv_sec == s->end.tv_sec && now.tv_nsec > s->end.tv_nsec);
}

/* ---- from the end ---- */

static void go_back(struct tbd_stack_search *s, uint64_t value, uint32_t function, uint32_t depth,
                    double bits);

static uint64_t number_of(const struct tbd_stack_search *s, uint32_t path)
{
    if (path < SIGNAL_SITE)
        return s->graph->sites[path].number;
    if (path == SIGNAL_SITE)
        return tbd_calling_number(tbd_calling_module(TBD_CALLING_NO_FILE), 0);
    return tbd_calling_number(tbd_calling_module(TBD_CALLING_SIGNAL), path - SIGNAL_SITE);
}

static void undo(struct tbd_stack_search *s, uint64_t value, uint32_t path, uint32_t depth,
                 double bits)
{
    const struct tbd_graph_site *site = path < SIGNAL_SITE ? &s->graph->sites[path] : NULL;

    if (s->is_over)
        return;
    if (++s->answer->tried % 65536 == 0)
        s->is_over = s->answer->tried >= s->tried_most || tbd_stacks_is_late(s);
    s->path[depth] = path;
    value = tbd_calling_leave(s->scheme, value, number_of(s, path));
    if (!tbd_stacks_meet(s, value, site, depth + 1) && depth + 1 < TBD_CALL_GRAPH_FRAMES)
        go_back(s, value,
                site                  ? site->function
                : path == SIGNAL_SITE ? NO_FILE
                                      : ANYWHERE,
                depth + 1, bits);
}

/* A handler may have interrupted any function. */
static void go_back_anywhere(struct tbd_stack_search *s, uint64_t value, uint32_t depth,
                             double bits)
{
    bits -= log2((double)s->graph->site_count + 1);
    for (uint32_t i = 0; bits >= 0 && i < s->graph->site_count && !s->is_over; i++)
        if (s->graph->sites[i].number)
            undo(s, value, i, depth, bits);
}

static void go_back_indirectly(struct tbd_stack_search *s, uint64_t value, uint32_t depth,
                               double bits)
{
    bits -= log2((double)s->graph->indirect_count + SIGRTMAX + 1);
    if (bits < 0)
        return;
    for (size_t i = 0; i < s->graph->indirect_count && !s->is_over; i++)
        undo(s, value, s->graph->indirect[i], depth, bits);
    for (uint32_t signo = 0; signo <= 64 && !s->is_over; signo++)
        undo(s, value, SIGNAL_SITE + signo, depth, bits);
}

/* As recordings had them. */
static void go_back_learned(struct tbd_stack_search *s, uint64_t value, const uint32_t *functions,
                            uint32_t count, uint32_t depth, double bits)
{
    const struct tbd_graph_edge *edges;
    size_t all = 0;

    for (uint32_t i = 0; i < count; i++)
        all += tbd_graph_edges_to(s->graph, functions[i], &edges);
    bits -= all ? log2((double)all) : 0;
    for (uint32_t i = 0; i < count && bits >= 0; i++) {
        size_t here = tbd_graph_edges_to(s->graph, functions[i], &edges);

        for (size_t n = 0; n < here && !s->is_over; n++)
            undo(s, value, edges[n].site, depth, bits);
    }
}

static void go_back(struct tbd_stack_search *s, uint64_t value, uint32_t function, uint32_t depth,
                    double bits)
{
    const struct tbd_call_graph *graph = s->graph;
    uint32_t functions[TBD_JUMPS_MAX], count, calls = 0;
    bool is_taken = false;
    double left;

    if (function == ANYWHERE) {
        go_back_anywhere(s, value, depth, bits);
        return;
    }
    if (function == NO_FILE) { /* by a pointer, also out of itself */
        go_back_indirectly(s, value, depth, bits);
        return;
    }
    count = tbd_stacks_jumps(s, function, true, functions);
    for (uint32_t i = 0; i < count; i++) {
        calls += graph->functions[functions[i]].caller_count;
        is_taken |= graph->functions[functions[i]].is_taken;
    }
    bits -= s->step_bits;
    left = bits - log2(calls ? (double)calls : 1);
    for (uint32_t i = 0; i < count && left >= 0; i++) {
        const struct tbd_graph_function *f = &graph->functions[functions[i]];

        for (uint32_t n = 0; n < f->caller_count && !s->is_over; n++)
            if (graph->sites[graph->by_target[f->callers + n]].number)
                undo(s, value, graph->by_target[f->callers + n], depth, left);
    }
    go_back_learned(s, value, functions, count, depth, bits);
    if (is_taken)
        go_back_indirectly(s, value, depth, bits);
}

/* The innermost call: of tbd_context(), if the program calls that by name. */
static void go_back_from_end(struct tbd_stack_search *s, double bits)
{
    const struct tbd_call_graph *graph = s->graph;

    for (uint32_t i = 0; i < graph->site_count && !s->is_over; i++)
        if (graph->sites[i].number && (!s->asks || graph->sites[i].asks))
            undo(s, s->value, i, 0, bits);
    if (!s->is_over)
        undo(s, s->value, SIGNAL_SITE, 0, bits);
}

/* ---- evidence ---- */

static void mark_references(const struct tbd_call_graph *graph, uint32_t file, uint64_t from,
                            uint64_t to, uint8_t *marks)
{
    for (size_t i = 0; i < graph->reference_count; i++) {
        const struct tbd_graph_reference *r = &graph->references[i];

        if (graph->functions[r->function].file == file && r->address >= from && r->address <= to)
            marks[r->function] = 1;
    }
}

/* Each function that refers to a string with the text. */
static bool mark_text(const struct tbd_call_graph *graph, const char *text, uint8_t *marks)
{
    size_t length = strlen(text);

    for (uint32_t i = 0; i < graph->file_count; i++) {
        struct tbd_elf_file *elf = graph->files[i].elf;

        for (size_t n = 0; n < elf->segment_count; n++) {
            uint64_t bytes = elf->segments[n].p_filesz;
            char *data = malloc(bytes + 1), *at = data;

            if (!data)
                return false;
            bytes = tbd_elf_read(elf, elf->segments[n].p_vaddr, data, bytes);
            while ((at = memmem(at, bytes - (size_t)(at - data), text, length))) {
                const char *first = at;

                while (first > data && first[-1])
                    first--;
                mark_references(graph, i, elf->segments[n].p_vaddr + (uint64_t)(first - data),
                                elf->segments[n].p_vaddr + (uint64_t)(at - data), marks);
                at++;
            }
            free(data);
        }
    }
    return true;
}

/* ---- the question ---- */

/* Those from the program's start first, then the shorter ones. */
static int compare_stacks(const void *a, const void *b)
{
    const struct tbd_call_stack *one = a, *other = b;

    if (one->from_start != other->from_start)
        return one->from_start ? -1 : 1;
    return one->count < other->count ? -1 : one->count > other->count;
}

static bool run_search(struct tbd_stack_search *s)
{
    if (!tbd_stacks_begin(s))
        return false;
    for (size_t i = 0; i < s->graph->site_count; i++)
        s->asks |= s->graph->sites[i].asks && s->graph->sites[i].number;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &s->end);
    s->end.tv_sec += s->seconds;
    s->step_bits = s->asks ? 0 : STEP_BITS;
    if (s->graph->known_count != 0) {
        tbd_stacks_reach_more(s, TBD_REACHED_MAX);
        tbd_stacks_splice(s);
    }
    s->tried_most = s->answer->tried + TRIED_MAX;
    for (int bits = s->asks ? 4 : 0; bits <= BITS_MAX && !s->is_over && s->answer->count == 0;
         bits += 2) {
        /* where each call may be the innermost, each way back is dear */
        tbd_stacks_reach_more(s, s->asks && bits <= LIKELY_BITS ? REACHED_SOON : TBD_REACHED_MAX);
        go_back_from_end(s, bits);
    }
    s->answer->is_complete = !s->is_over;
    if (s->answer->count)
        qsort(s->answer->stacks, s->answer->count, sizeof(s->answer->stacks[0]), compare_stacks);
    return !s->no_memory;
}

enum tbd_status tbd_call_graph_find(struct tbd_call_graph *graph,
                                    const struct tbd_call_question *question, uint64_t value,
                                    struct tbd_call_answer *out)
{
    const char *log = question->log;
    struct tbd_stack_search *s = calloc(1, sizeof(*s));
    uint8_t *marks = log ? calloc(graph->function_count + 1, 1) : NULL;
    bool ok = s && (!log || (marks && mark_text(graph, log, marks)));

    *out = (struct tbd_call_answer){ .count = 0 };
    if (ok) {
        *s = (struct tbd_stack_search){ .graph = graph,
                                        .scheme = question->scheme,
                                        .seconds = question->seconds,
                                        .value = value,
                                        .has_text = marks,
                                        .starts = &graph->starts,
                                        .answer = out };
        ok = run_search(s);
    }
    free(s);
    free(marks);
    if (ok)
        return TBD_OK;
    tbd_call_answer_free(out);
    return TBD_NOMEM;
}

void tbd_call_answer_free(struct tbd_call_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++)
        free(answer->stacks[i].frames);
    answer->count = 0;
}
