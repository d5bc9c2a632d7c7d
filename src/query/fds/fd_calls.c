// SPDX-License-Identifier: MIT
/* fd_calls.c - the calls that an answer shows: found in the windows that have them
 *
 * A log has everything of a call but its text and the calls around it.  An event of a search has these.
 *
 * FD_CALLS-1  Of calls with equal times each has another thread, or another number, so that an event is of one
 *     call. (not checked: a call that waited comes back when its thread does) */
#include "query/fds/fds.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "hooks/table/syscalls.h"
#include "query/condition/expr_keep.h"
#include "query/output/output.h"
#include "query/output/output_stack.h"

#include <stdlib.h>
#include <string.h>

enum tbd_exit tbd_fds_open(struct tbd_command_run *run, struct tbd_fds *out)
{
    enum tbd_status status;

    *out = (struct tbd_fds){ .run = run };
    status = tbd_channels_open(run->session, &out->channels);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    out->all = tbd_channels_descriptors(out->channels);
    out->own_index = tbd_channels_own(out->channels);
    out->own = &out->all->processes[out->own_index];
    return TBD_EXIT_FOUND;
}

void tbd_fds_close(struct tbd_fds *fds)
{
    for (size_t i = 0; i < fds->count; i++) {
        free(fds->shown[i].call);
        free(fds->shown[i].stack);
    }
    free(fds->shown);
    tbd_channels_close(fds->channels);
    *fds = (struct tbd_fds){ 0 };
}

void tbd_fds_want(struct tbd_fds *fds, uint32_t process, uint64_t order)
{
    const struct tbd_fd_act *act = tbd_fd_act_of(&fds->all->processes[process], order);

    if (act == NULL)
        return;
    if (tbd_array_grow(&fds->shown, fds->count, &fds->capacity, sizeof(*fds->shown)))
        fds->shown[fds->count++] = (struct tbd_fd_shown){ .act = act, .process = process };
    else
        fds->no_memory = true;
}

static int compare_shown(const void *left, const void *right)
{
    const struct tbd_fd_shown *a = left, *b = right;

    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return a->act->order < b->act->order ? -1 : a->act->order > b->act->order;
}

static void sort_shown(struct tbd_fds *fds)
{
    size_t used = 0;

    if (fds->count == 0)
        return;
    qsort(fds->shown, fds->count, sizeof(*fds->shown), compare_shown);
    for (size_t i = 1; i < fds->count; i++) {
        if (compare_shown(&fds->shown[used], &fds->shown[i]) != 0)
            fds->shown[++used] = fds->shown[i];
    }
    fds->count = used + 1;
}

const struct tbd_fd_shown *tbd_fds_shown(const struct tbd_fds *fds, uint32_t process,
                                         uint64_t order)
{
    struct tbd_fd_act act = { .order = order };
    struct tbd_fd_shown key = { .act = &act, .process = process };
    size_t i = TBD_COUNT_BEFORE(k, fds->count, compare_shown(&fds->shown[k], &key) < 0);

    return i < fds->count && compare_shown(&fds->shown[i], &key) == 0 && fds->shown[i].is_found
               ? &fds->shown[i]
               : NULL;
}

/* ---- one process ---- */

struct fd_finding {
    struct tbd_fds *fds;
    struct tbd_session *session;
    struct tbd_fd_shown *first; /* count of them */
    size_t count;
};

static struct tbd_fd_shown *shown_of(const struct fd_finding *f, const struct tbd_event *event)
{
    size_t i = TBD_COUNT_BEFORE(k, f->count, f->first[k].act->time < event->position.time);

    for (; i < f->count && f->first[i].act->time == event->position.time; i++) {
        const struct tbd_fd_act *act = f->first[i].act;

        if (!f->first[i].is_found && act->thread == event->thread && act->number == event->number)
            return &f->first[i];
    }
    return NULL;
}

static char *text_of(struct tbd_session *session, const struct tbd_event *event)
{
    json_t *object = tbd_output_event(session, event);
    const char *call = json_string_value(json_object_get(object, "call"));
    char *copy = call == NULL ? NULL : strdup(call);

    json_decref(object);
    return copy;
}

static char *stack_of(const struct fd_finding *f, const struct tbd_event *event)
{
    const struct tbd_kept_value *kept = event->kept;
    const char *name = tbd_syscall_name(event->number);
    struct tbd_output_stack stack = { .name = name == NULL ? "a call" : name };
    uint64_t pcs[TBD_KEPT_TEXT_MAX / sizeof(uint64_t)];
    char text[4096];

    stack.window = tbd_trace_window_of(f->session->trace, event->position.time);
    stack.pcs = pcs;
    if (kept != NULL && kept->state == TBD_KEPT_FRAMES) {
        memcpy(pcs, (const uint8_t *)kept + kept->text, kept->bytes);
        stack.count = kept->bytes / sizeof(*pcs);
    }
    tbd_output_stack_text(f->session, &stack, text, sizeof(text));
    return strdup(text);
}

static bool take_event(void *context, const struct tbd_event *event)
{
    struct fd_finding *f = context;
    struct tbd_fd_shown *shown = shown_of(f, event);

    if (shown == NULL)
        return true;
    shown->is_found = true;
    shown->position = event->position;
    shown->call = text_of(f->session, event);
    shown->stack = stack_of(f, event);
    f->fds->no_memory = shown->stack == NULL;
    return !f->fds->no_memory;
}

static enum tbd_exit find_in(struct fd_finding *f)
{
    struct tbd_command_run run = *f->fds->run;
    struct tbd_question question = tbd_question_all(TBD_EVENT_SYSCALL);
    uint32_t windows = tbd_trace_window_count(f->session->trace);
    uint8_t *only = calloc(windows + 1u, 1);
    enum tbd_exit result;

    if (only == NULL)
        return tbd_command_no_memory();
    for (size_t i = 0; i < f->count; i++) {
        if (f->first[i].act->window < windows)
            only[f->first[i].act->window] = 1;
    }
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE, f->first->act->time);
    question.keeps_frames = question.keeps_stack = true;
    question.only = only;
    run.session = f->session;
    result = tbd_command_each(&run, &question, take_event, f);
    free(only);
    return result;
}

enum tbd_exit tbd_fds_find(struct tbd_fds *fds)
{
    enum tbd_exit result = TBD_EXIT_FOUND;
    size_t end;

    sort_shown(fds);
    for (size_t i = 0; i < fds->count && result <= TBD_EXIT_NOT_FOUND; i = end) {
        struct fd_finding f = { .fds = fds, .first = &fds->shown[i] };

        for (end = i + 1; end < fds->count && fds->shown[end].process == fds->shown[i].process;)
            end++;
        f.count = end - i;
        if (tbd_channels_session(fds->channels, fds->shown[i].process, &f.session) == TBD_OK)
            result = find_in(&f);
    }
    return fds->no_memory ? tbd_command_no_memory() : result;
}
