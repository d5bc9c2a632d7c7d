// SPDX-License-Identifier: MIT
/* fd_errors.c - fds errors: calls that failed because their descriptor was not open, over the whole run
 *
 * A close that fails is a mistake only if the descriptor had been open: programs close what they may have
 * inherited.  A close that meets a descriptor that was opened again meanwhile does not fail, and cannot be told from a
 * right one. */
#include "query/fds/fd_groups.h"
#include "query/fds/fds.h"

#include "query/output/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

/* What the descriptor of a failed call was before. */
struct fd_past {
    const struct tbd_fd_history *history; /* NULL: it was never open */
    size_t opened, closed;                /* bindings */
    bool is_open;
};

static struct fd_past past_of(const struct tbd_fds *fds, const struct tbd_fd_act *act)
{
    struct fd_past past = { .history = NULL };
    const struct tbd_fd_history *history;
    size_t i;

    if (act->bad >= fds->own->history_capacity)
        return past;
    history = &fds->own->histories[act->bad];
    for (i = history->count; i > 0 && history->bindings[i - 1].order >= act->order;)
        i--;
    if (i == 0)
        return past;
    past.closed = i - 1;
    past.is_open = history->bindings[i - 1].end != TBD_FD_NO_END;
    past.opened = past.is_open || i == 1 ? i - 1 : i - 2;
    if (past.is_open || i > 1)
        past.history = history;
    return past;
}

/* NULL: it is none. */
static const char *error_of(const struct tbd_fd_act *act, const struct fd_past *past)
{
    if (past->history != NULL && past->is_open)
        return "not open for that";
    if (past->history != NULL)
        return act->number == SYS_close ? "double close" : "use after close";
    return act->number == SYS_close ? NULL : "never open";
}

static struct tbd_fd_source source_of(const struct tbd_fds *fds, uint64_t order)
{
    return (struct tbd_fd_source){ fds->own_index, order };
}

/* Calls of mistakes, and of what came before. */
static size_t want_all(struct tbd_fds *fds)
{
    size_t passed_over = 0;

    for (size_t i = 0; i < fds->own->act_count; i++) {
        const struct tbd_fd_act *act = &fds->own->acts[i];
        struct fd_past past;

        if (!act->is_bad)
            continue;
        past = past_of(fds, act);
        if (error_of(act, &past) == NULL) {
            passed_over++;
            continue;
        }
        tbd_fds_want(fds, fds->own_index, act->order);
        if (past.history != NULL) {
            struct tbd_fd_source opened = tbd_fds_source(fds, past.history, past.opened);

            tbd_fds_want(fds, opened.process, opened.order);
            tbd_fds_want(fds, fds->own_index, past.history->bindings[past.closed].order);
        }
    }
    return passed_over;
}

static void fill_row(const struct tbd_fds *fds, const struct tbd_fd_act *act,
                     const struct fd_past *past, json_t *row)
{
    struct tbd_fd_keys own = { "call", "position", "by" };
    struct tbd_fd_keys closed = { NULL, "closed_at", "closed" };
    struct tbd_fd_keys opened = { "opening", "opened_at", "opened" };

    json_object_set_new(row, "error", json_string(error_of(act, past)));
    json_object_set_new(row, "thread", json_integer(act->thread));
    tbd_fds_put_call(fds, source_of(fds, act->order), &own, row);
    if (past->history == NULL)
        return;
    if (!past->is_open)
        tbd_fds_put_call(fds, source_of(fds, past->history->bindings[past->closed].order), &closed,
                         row);
    tbd_fds_put_call(fds, tbd_fds_source(fds, past->history, past->opened), &opened, row);
}

static void add_error(struct tbd_fds *fds, struct tbd_fd_groups *groups,
                      const struct tbd_fd_act *act)
{
    const struct tbd_fd_shown *shown = tbd_fds_shown(fds, fds->own_index, act->order);
    struct fd_past past = past_of(fds, act);
    const char *error = error_of(act, &past);
    char *key = NULL;
    json_t *row;
    bool is_new;

    if (error == NULL)
        return;
    if (asprintf(&key, "%s|%s", error, shown == NULL ? "" : shown->stack) < 0)
        key = NULL;
    row = key == NULL ? NULL : tbd_fd_groups_add(groups, key, act->bad, &is_new);
    free(key);
    if (row == NULL)
        fds->no_memory = true;
    else if (is_new)
        fill_row(fds, act, &past, row);
}

enum tbd_exit tbd_fds_print_errors(struct tbd_fds *fds)
{
    static const char *const columns[] = { "error", "count",  "fds",    "position", "call",
                                           "by",    "closed", "opened", NULL };
    struct tbd_fd_groups groups = tbd_fd_groups_new();
    size_t passed_over = want_all(fds);
    enum tbd_exit result = tbd_fds_find(fds);

    for (size_t i = 0; i < fds->own->act_count && result <= TBD_EXIT_NOT_FOUND; i++) {
        if (fds->own->acts[i].is_bad)
            add_error(fds, &groups, &fds->own->acts[i]);
    }
    if (fds->no_memory)
        result = tbd_command_no_memory();
    if (result <= TBD_EXIT_NOT_FOUND)
        result = tbd_fd_groups_print(&groups, fds->run, columns);
    if (passed_over != 0 && !fds->run->session->json && !fds->run->session->csv)
        fprintf(fds->run->out, "(passed over: %zu closes of descriptors that were never open)\n",
                passed_over);
    tbd_fd_groups_free(&groups);
    return result;
}
