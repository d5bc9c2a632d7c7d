// SPDX-License-Identifier: MIT
/* own_calls.c - see own_calls.h */
#include "query/calls/own_calls.h"

#include "base/array.h"

#include <stdlib.h>

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
        (where->uses & ~TBD_USES_NAMES) != 0)
        return false;
    for (uint32_t i = 0; i < where->node_count; i++) {
        if (!is_plain(&where->nodes[i]))
            return false;
    }
    return true;
}

/* ---- pairing ---- */

struct own_pairing {
    struct tbd_call_list *list;
    size_t *open; /* owned; indices of calls without an end, innermost last */
    size_t count, capacity;
    bool is_odd;
};

/* The innermost open call of a thread: its place in `open`; SIZE_MAX if there is none. */
static size_t innermost(const struct own_pairing *p, uint32_t thread)
{
    for (size_t i = p->count; i-- > 0;) {
        if (p->list->all[p->open[i]].enter->thread == thread)
            return i;
    }
    return SIZE_MAX;
}

static void remove_open(struct own_pairing *p, size_t at)
{
    p->count--;
    for (size_t i = at; i < p->count; i++)
        p->open[i] = p->open[i + 1];
}

/* Something is at `sp` now: calls with slots below it, or there too, have ended somehow. */
static void end_below(struct own_pairing *p, const struct tbd_event *event, bool or_there)
{
    size_t at = innermost(p, event->thread);

    while (at != SIZE_MAX) {
        struct tbd_listed_call *call = &p->list->all[p->open[at]];

        if (call->enter->sp > event->sp || (call->enter->sp == event->sp && !or_there))
            return;
        call->exit = event->position;
        call->is_closed = true;
        remove_open(p, at);
        at = innermost(p, event->thread);
    }
}

static void take_return(struct own_pairing *p, const struct tbd_event *exit)
{
    struct tbd_listed_call *call;
    size_t at;

    end_below(p, exit, false);
    at = innermost(p, exit->thread);
    if (at == SIZE_MAX || p->list->all[p->open[at]].enter->sp != exit->sp) {
        p->is_odd = true;
        return;
    }
    call = &p->list->all[p->open[at]];
    call->end = TBD_FRAME_RETURNS;
    call->exit = exit->position;
    call->retval = exit->retval;
    call->is_closed = true;
    remove_open(p, at);
}

static bool take_entry(struct own_pairing *p, struct tbd_event *enter)
{
    struct tbd_call_list *list = p->list;

    end_below(p, enter, true);
    if (!tbd_array_grow(&list->all, list->count, &list->capacity, sizeof(*list->all)) ||
        !tbd_array_grow(&p->open, p->count, &p->capacity, sizeof(*p->open)))
        return false;
    enter->number = 0;
    for (size_t i = 0; i < p->count; i++)
        enter->number += list->all[p->open[i]].enter->thread == enter->thread;
    list->all[list->count] = (struct tbd_listed_call){ .enter = enter };
    p->open[p->count++] = list->count++;
    return true;
}

enum tbd_status tbd_own_calls_pair(struct tbd_call_list *list, bool *out_is_odd)
{
    struct own_pairing p = { .list = list };
    bool has_memory = true;

    list->count = 0;
    for (size_t i = 0; i < list->event_count && has_memory; i++) {
        struct tbd_event *event = &list->events[i];

        if (event->type == TBD_EVENT_FUNC_ENTER)
            has_memory = take_entry(&p, event);
        else
            take_return(&p, event);
    }
    free(p.open);
    *out_is_odd = p.is_odd;
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

    for (size_t i = 0; i < list->count; i++) {
        if ((list->all[i].enter->flags & TBD_EVENT_UNWANTED) == 0)
            list->all[kept++] = list->all[i];
    }
    list->count = kept;
}
