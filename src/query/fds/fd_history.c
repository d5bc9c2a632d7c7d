// SPDX-License-Identifier: MIT
/* fd_history.c - fds of N: what became of one descriptor, in order */
#include "query/fds/fds.h"

#include "query/commands/rows.h"
#include "query/output/output.h"

#include <stdlib.h>

struct telling {
    struct tbd_fds *fds;
    uint32_t fd;
    const struct tbd_fd_history *history;
    struct tbd_rows rows;
};

/* Changes of its binding and calls that failed on it, in order: goes to the next one; false: there is none. */
static bool next_of(const struct telling *t, size_t *binding, size_t *act, bool *is_bad)
{
    const struct tbd_fd_process *own = t->fds->own;

    while (*act < own->act_count && (!own->acts[*act].is_bad || own->acts[*act].bad != t->fd))
        ++*act;
    if (*act == own->act_count && *binding == t->history->count)
        return false;
    *is_bad =
        *binding == t->history->count ||
        (*act < own->act_count && own->acts[*act].order < t->history->bindings[*binding].order);
    return true;
}

static void want_all(struct telling *t)
{
    size_t binding = 0, act = 0;
    bool is_bad;

    while (next_of(t, &binding, &act, &is_bad)) {
        struct tbd_fd_source source = { t->fds->own_index, 0 };

        if (is_bad)
            source.order = t->fds->own->acts[act++].order;
        else if (t->history->bindings[binding].order == 0)
            source = tbd_fds_source(t->fds, t->history, binding++);
        else
            source.order = t->history->bindings[binding++].order;
        tbd_fds_want(t->fds, source.process, source.order);
    }
}

/* Other descriptors that lead to the same after a call. */
static json_t *copies_of(const struct telling *t, uint32_t end, uint64_t order)
{
    const struct tbd_fd_process *own = t->fds->own;
    json_t *copies = json_array();

    for (size_t fd = 0; fd < own->history_capacity && end != TBD_FD_NO_END; fd++) {
        const struct tbd_fd_binding *found = tbd_fd_binding_at(own, fd, order);

        if (fd != t->fd && found != NULL && found->end == end)
            json_array_append_new(copies, json_integer((json_int_t)fd));
    }
    return copies;
}

/* What a binding changes; NULL: nothing. */
static const char *change_of(const struct telling *t, size_t index)
{
    const struct tbd_fd_binding *now = &t->history->bindings[index];
    const struct tbd_fd_binding *before = index == 0 ? NULL : now - 1;
    const struct tbd_fd_end *end = &t->fds->all->ends[now->end];

    if (before != NULL && before->end == now->end)
        return before->closes_on_exec == now->closes_on_exec ? NULL
               : now->closes_on_exec                         ? "marked close-on-exec"
                                                             : "kept on exec";
    if (now->end == TBD_FD_NO_END)
        return now->order == 0 ? "closed by exec" : "closed";
    if (end->origin == TBD_FD_OUTSIDE || end->made == 0)
        return now->order == 0 ? "open before" : "not known";
    if (now->order == 0)
        return "inherited";
    return end->process == t->fds->own_index && end->made == now->order ? "opened" : "copied";
}

static void add_row(struct telling *t, const char *change, uint32_t end,
                    struct tbd_fd_source source)
{
    json_t *row = json_object();
    char kind[TBD_FD_KIND_BYTES] = "";

    json_object_set_new(row, "fd", json_integer(t->fd));
    json_object_set_new(row, "change", json_string(change));
    if (end != TBD_FD_NO_END)
        tbd_fds_kind(t->fds, end, kind, sizeof(kind));
    json_object_set_new(row, "kind", tbd_output_text(kind));
    if (source.process != t->fds->own_index)
        json_object_set_new(row, "process",
                            json_integer(t->fds->all->processes[source.process].pid));
    json_object_set_new(row, "copies",
                        copies_of(t, end, source.process == t->fds->own_index ? source.order : 0));
    tbd_fds_put_call(t->fds, source, &(struct tbd_fd_keys){ "call", "position", "by" }, row);
    tbd_rows_add(&t->rows, row);
}

static void add_binding(struct telling *t, size_t index)
{
    const struct tbd_fd_binding *binding = &t->history->bindings[index];
    struct tbd_fd_source source = { t->fds->own_index, binding->order };
    const char *change = change_of(t, index);

    if (change == NULL)
        return;
    if (binding->order == 0)
        source = tbd_fds_source(t->fds, t->history, index);
    add_row(t, change, binding->end, source);
}

static void add_all(struct telling *t)
{
    size_t binding = 0, act = 0;
    bool is_bad;

    while (next_of(t, &binding, &act, &is_bad)) {
        const struct tbd_fd_act *failed = &t->fds->own->acts[act];

        if (!is_bad) {
            add_binding(t, binding++);
            continue;
        }
        act++;
        add_row(t, "failed: EBADF", TBD_FD_NO_END,
                (struct tbd_fd_source){ t->fds->own_index, failed->order });
    }
}

enum tbd_exit tbd_fds_print_history(struct tbd_fds *fds, uint64_t fd)
{
    static const char *const columns[] = { "position", "change",  "kind", "copies",
                                           "call",     "process", "by",   NULL };
    static const struct tbd_fd_history none;
    struct telling t = { .fds = fds, .fd = (uint32_t)fd, .history = &none };
    enum tbd_exit result;

    if (fd < fds->own->history_capacity)
        t.history = &fds->own->histories[fd];
    want_all(&t);
    result = tbd_fds_find(fds);
    if (result > TBD_EXIT_NOT_FOUND)
        return result;
    tbd_rows_start(&t.rows, fds->run, columns);
    add_all(&t);
    return tbd_rows_end(&t.rows);
}
