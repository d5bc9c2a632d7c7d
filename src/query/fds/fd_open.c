// SPDX-License-Identifier: MIT
/* fd_open.c - fds: the descriptors that are open at a moment, by the calls that opened them */
#include "query/fds/fd_groups.h"
#include "query/fds/fds.h"

#include "query/output/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The binding in force at `order`; false: the descriptor is not open then. */
static bool find_open(const struct tbd_fd_history *history, uint64_t order, size_t *out)
{
    for (size_t i = history->count; i-- > 0;) {
        if (history->bindings[i].order > order)
            continue;
        *out = i;
        return history->bindings[i].end != TBD_FD_NO_END;
    }
    return false;
}

static void want_all(struct tbd_fds *fds, uint64_t order)
{
    size_t index;

    for (size_t fd = 0; fd < fds->own->history_capacity; fd++) {
        const struct tbd_fd_history *history = &fds->own->histories[fd];
        struct tbd_fd_source source;

        if (!find_open(history, order, &index))
            continue;
        source = tbd_fds_source(fds, history, index);
        tbd_fds_want(fds, source.process, source.order);
    }
}

/* NULL: it was opened by this process. */
static json_t *other_process(const struct tbd_fds *fds, struct tbd_fd_source source)
{
    if (source.process == fds->own_index)
        return NULL;
    return json_integer(fds->all->processes[source.process].pid);
}

static void add_open(struct tbd_fds *fds, struct tbd_fd_groups *groups, uint32_t fd, size_t index)
{
    const struct tbd_fd_history *history = &fds->own->histories[fd];
    const struct tbd_fd_binding *binding = &history->bindings[index];
    struct tbd_fd_source source = tbd_fds_source(fds, history, index);
    const struct tbd_fd_shown *shown = tbd_fds_shown(fds, source.process, source.order);
    char kind[TBD_FD_KIND_BYTES], *key = NULL;
    json_t *row, *from = other_process(fds, source);
    bool is_new;

    tbd_fds_kind(fds, binding->end, kind, sizeof(kind));
    if (asprintf(&key, "%" PRIu32 "|%d|%s|%s", source.process, binding->closes_on_exec, kind,
                 shown == NULL ? "" : shown->stack) < 0)
        key = NULL;
    row = key == NULL ? NULL : tbd_fd_groups_add(groups, key, fd, &is_new);
    free(key);
    if (row == NULL) {
        fds->no_memory = true;
    } else if (is_new) {
        json_object_set_new(row, "kind", tbd_output_text(kind));
        json_object_set_new(row, "closes_on_exec", json_boolean(binding->closes_on_exec));
        if (from != NULL)
            json_object_set(row, "process", from);
        tbd_fds_put_call(fds, source, &(struct tbd_fd_keys){ "call", "first", "opened" }, row);
        tbd_fds_put_call(fds, source, &(struct tbd_fd_keys){ .position = "last" }, row);
    } else {
        tbd_fds_put_call(fds, source, &(struct tbd_fd_keys){ .position = "last" }, row);
    }
    json_decref(from);
}

static void print_total(const struct tbd_fds *fds, size_t open)
{
    size_t all = 0;

    for (size_t i = 1; i < fds->all->end_count; i++)
        all += fds->all->ends[i].process == fds->own_index && fds->all->ends[i].made != 0;
    if (!fds->run->session->json && !fds->run->session->csv)
        fprintf(fds->run->out,
                "%zu descriptors open; %zu files, sockets, ... opened until the end\n", open, all);
}

enum tbd_exit tbd_fds_print_open(struct tbd_fds *fds, uint64_t order)
{
    static const char *const columns[] = { "count", "fds",  "kind",   "process",
                                           "first", "call", "opened", NULL };
    struct tbd_fd_groups groups = tbd_fd_groups_new();
    enum tbd_exit result;
    size_t index, open = 0;

    want_all(fds, order);
    result = tbd_fds_find(fds);
    for (size_t fd = 0; fd < fds->own->history_capacity && result <= TBD_EXIT_NOT_FOUND; fd++) {
        if (!find_open(&fds->own->histories[fd], order, &index))
            continue;
        add_open(fds, &groups, (uint32_t)fd, index);
        open++;
    }
    if (fds->no_memory)
        result = tbd_command_no_memory();
    if (result <= TBD_EXIT_NOT_FOUND) {
        print_total(fds, open);
        result = tbd_fd_groups_print(&groups, fds->run, columns);
    }
    tbd_fd_groups_free(&groups);
    return result;
}
