// SPDX-License-Identifier: MIT
/* own_calls.c - see own_calls.h */
#include "query/calls/own_calls.h"

#include "base/array.h"
#include "format/files/large_buffers.h"

#include <stdlib.h>

#define GATHERED_MAX                                                                               \
    1048576u /* entries, and returns, of one window; if there are more, it is walked again */

/* ---- which questions ---- */

/* Bounds of time, and addresses, keep the search from some entries. */
static bool is_plain(const struct tbd_expr_node *node)
{
    if (node->op == TBD_EXPR_FIELD)
        return node->which != TBD_FIELD_TIME && node->which != TBD_FIELD_PC &&
               node->which != TBD_FIELD_ADDR && node->which != TBD_FIELD_SYSCALL;
    return node->op == TBD_EXPR_NUMBER || node->op == TBD_EXPR_FUNCTION ||
           (node->op >= TBD_EXPR_NOT && node->op <= TBD_EXPR_SIGNED);
}

bool tbd_own_calls_fit(const struct tbd_command_run *run, const struct tbd_question *question)
{
    const struct tbd_trace_info *info = run->session->info;
    const struct tbd_expr *where = question->where;

    if (question->keeps_stack) /* only callers tell it */
        return false;
    if (info->is_forked || info->damage_count != 0) /* frames that nobody saw being made */
        return false;
    if (where == NULL || where->name_count != 1 || where->names[0].kind != TBD_NAME_FUNCTION ||
        (where->uses & ~(TBD_USES_NAMES | TBD_USES_OPERANDS)) != 0)
        return false;
    for (uint32_t i = 0; i < where->node_count; i++) {
        if (!is_plain(&where->nodes[i]))
            return false;
    }
    return true;
}

/* ---- the list ---- */

static bool add_entry(struct tbd_call_list *list, const struct tbd_event *enter)
{
    if (!tbd_large_array_grow(&list->all, list->count, &list->capacity, sizeof(*list->all)))
        return false;
    list->all[list->count++] = (struct tbd_listed_call){ .enter = tbd_call_entry_of(enter) };
    return true;
}

static bool add_return(struct tbd_call_list *list, const struct tbd_event *exit)
{
    if (!tbd_large_array_grow(&list->returns, list->return_count, &list->return_capacity,
                              sizeof(*list->returns)))
        return false;
    list->returns[list->return_count++] =
        (struct tbd_own_return){ exit->position, exit->sp, exit->retval, exit->thread,
                                 exit->flags };
    return true;
}

bool tbd_own_calls_add(struct tbd_call_list *list, const struct tbd_event *event)
{
    list->is_odd |=
        (event->flags & TBD_EVENT_BY_JUMP) != 0 && event->called_at == 0; /* from where? */
    return event->type == TBD_EVENT_FUNC_ENTER ? add_entry(list, event) : add_return(list, event);
}

bool tbd_own_calls_gather(void *context, struct tbd_session *session, void **batch,
                          const struct tbd_event *event, uint64_t count)
{
    struct tbd_call_list *list = *batch;

    (void)context;
    (void)session;
    (void)count; /* one */
    if (list == NULL)
        *batch = list = calloc(1, sizeof(*list));
    return list != NULL && list->count < GATHERED_MAX && list->return_count < GATHERED_MAX &&
           tbd_own_calls_add(list, event);
}

bool tbd_own_calls_merge(struct tbd_call_list *list, struct tbd_call_list *batch)
{
    struct tbd_call_list before = *list;

    if (list->all == NULL && list->returns == NULL) { /* takes its memory */
        *list = *batch;
        *batch = before;
    }
    list->is_odd = before.is_odd || batch->is_odd || list->is_odd;
    return tbd_large_array_append(&list->all, &list->count, &list->capacity, sizeof(*list->all),
                                  batch->all, batch->count) &&
           tbd_large_array_append(&list->returns, &list->return_count, &list->return_capacity,
                                  sizeof(*list->returns), batch->returns, batch->return_count);
}

void tbd_own_calls_drop(void *batch)
{
    tbd_call_list_free(batch);
    free(batch);
}

static int compare_calls(const void *left, const void *right)
{
    const struct tbd_listed_call *a = left, *b = right;

    return tbd_position_compare(a->enter.position, b->enter.position);
}

static int compare_returns(const void *left, const void *right)
{
    const struct tbd_own_return *a = left, *b = right;

    return tbd_position_compare(a->position, b->position);
}

static bool is_overwriting(const struct tbd_own_return *exit)
{
    return (exit->flags & TBD_EVENT_OVERWRITES) != 0;
}

static void drop_repeats(struct tbd_call_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (kept == 0 || compare_calls(&list->all[i], &list->all[kept - 1]) != 0)
            list->all[kept++] = list->all[i];
    }
    list->count = kept;
    kept = 0;
    for (size_t i = 0; i < list->return_count; i++) {
        const struct tbd_own_return *exit = &list->returns[i];

        if (kept == 0 || compare_returns(exit, &list->returns[kept - 1]) != 0 ||
            is_overwriting(exit) != is_overwriting(&list->returns[kept - 1]))
            list->returns[kept++] = *exit;
    }
    list->return_count = kept;
}

void tbd_own_calls_forget_returns(struct tbd_call_list *list, uint64_t from, uint64_t to)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->return_count; i++) {
        const struct tbd_own_return *exit = &list->returns[i];
        uint64_t time = exit->position.time;

        if (time < from || time >= to || (time == from && is_overwriting(exit)))
            list->returns[kept++] = *exit;
    }
    list->return_count = kept;
}

void tbd_own_calls_sort(struct tbd_call_list *list)
{
    if (list->count != 0)
        qsort(list->all, list->count, sizeof(*list->all), compare_calls);
    if (list->return_count != 0)
        qsort(list->returns, list->return_count, sizeof(*list->returns), compare_returns);
    drop_repeats(list);
}

/* ---- pairing ---- */

/* A call without an end. */
struct open_call {
    size_t call; /* in list->all */
    uint64_t sp;
    uint32_t thread;
    uint32_t nesting; /* open calls of its thread around it */
    bool has_inner;   /* there were some inside it */
};

struct own_pairing {
    struct tbd_call_list *list;
    struct open_call *open; /* owned; innermost last */
    size_t count, capacity;
};

/* The innermost open call of a thread; NULL if there is none. */
static struct open_call *innermost(const struct own_pairing *p, uint32_t thread)
{
    for (size_t i = p->count; i-- > 0;) {
        if (p->open[i].thread == thread)
            return &p->open[i];
    }
    return NULL;
}

static void close_call(struct own_pairing *p, struct open_call *open, struct tbd_position at)
{
    struct tbd_listed_call *call = &p->list->all[open->call];

    call->exit = at;
    call->is_closed = true;
    p->count--;
    for (struct open_call *next = open; next < p->open + p->count; next++)
        *next = next[1];
}

/* Something is at `sp` now: calls with slots below it, or there too, have ended somehow. */
static void end_below(struct own_pairing *p, const struct open_call *now, struct tbd_position at,
                      bool or_there)
{
    struct open_call *open;

    while ((open = innermost(p, now->thread)) != NULL &&
           (open->sp < now->sp || (open->sp == now->sp && or_there)))
        close_call(p, open, at);
}

static void take_return(struct own_pairing *p, const struct tbd_own_return *exit)
{
    const struct open_call now = { .sp = exit->sp, .thread = exit->thread };
    bool is_call = (exit->flags & TBD_EVENT_OVERWRITES) != 0;
    struct tbd_listed_call *call;
    struct open_call *open;

    end_below(p, &now, exit->position, is_call);
    open = innermost(p, exit->thread);
    if (is_call || open == NULL || open->sp != exit->sp) {
        /* others are called by others, too */
        p->list->is_odd |= (exit->flags & (TBD_EVENT_ELSEWHERE | TBD_EVENT_OF_OTHER)) == 0;
        return;
    }
    /* were those inside it made before it jumped away, or after? */
    p->list->is_odd |= open->has_inner && (exit->flags & TBD_EVENT_ELSEWHERE) != 0;
    call = &p->list->all[open->call];
    call->end = TBD_FRAME_RETURNS;
    call->retval = exit->retval;
    close_call(p, open, exit->position);
}

static bool take_entry(struct own_pairing *p, size_t number)
{
    struct tbd_listed_call *call = &p->list->all[number];
    struct open_call now = { .call = number, .sp = call->enter.sp, .thread = call->enter.thread };
    struct open_call *outer;

    end_below(p, &now, call->enter.position, true);
    outer = innermost(p, now.thread);
    now.nesting = outer == NULL ? 0 : outer->nesting + 1;
    if (outer != NULL)
        outer->has_inner = true;
    call->enter.nesting = now.nesting;
    call->end = TBD_FRAME_STAYS;
    call->is_closed = false;
    if (!tbd_array_grow(&p->open, p->count, &p->capacity, sizeof(*p->open)))
        return false;
    p->open[p->count++] = now;
    return true;
}

/* The returns up to an entry; one at the entry's position is later. */
static void take_returns(struct own_pairing *p, size_t *at, const struct tbd_call_entry *enter)
{
    const struct tbd_call_list *list = p->list;

    while (
        *at < list->return_count &&
        (enter == NULL || tbd_position_compare(list->returns[*at].position, enter->position) < 0))
        take_return(p, &list->returns[(*at)++]);
}

enum tbd_status tbd_own_calls_pair(struct tbd_call_list *list)
{
    struct own_pairing p = { .list = list };
    bool has_memory = true;
    size_t next = 0;

    for (size_t i = 0; i < list->count && has_memory; i++) {
        take_returns(&p, &next, &list->all[i].enter);
        has_memory = take_entry(&p, i);
    }
    take_returns(&p, &next, NULL);
    free(p.open);
    return has_memory ? TBD_OK : TBD_NOMEM;
}

bool tbd_own_calls_are_whole(const struct tbd_call_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->all[i].end != TBD_FRAME_RETURNS)
            return false;
    }
    return true;
}

void tbd_own_calls_keep_wanted(struct tbd_call_list *list)
{
    size_t kept = 0;

    while (kept < list->count && (list->all[kept].enter.flags & TBD_EVENT_UNWANTED) == 0)
        kept++;
    for (size_t i = kept; i < list->count; i++) {
        if ((list->all[i].enter.flags & TBD_EVENT_UNWANTED) == 0)
            list->all[kept++] = list->all[i];
    }
    list->count = kept;
}
