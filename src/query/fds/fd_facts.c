// SPDX-License-Identifier: MIT
/* fd_facts.c - what a descriptor is, and which call it has it from */
#include "query/fds/fds.h"

#include "base/binary_search.h"
#include "hooks/table/syscalls.h"
#include "query/commands/rows.h"
#include "query/output/output.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

struct tbd_fd_source tbd_fds_source(const struct tbd_fds *fds, const struct tbd_fd_history *history,
                                    size_t index)
{
    const struct tbd_fd_binding *bindings = history->bindings;
    const struct tbd_fd_end *end = &fds->all->ends[bindings[index].end];

    /* marks (FD_CLOEXEC) change no more than those */
    while (index > 0 && bindings[index - 1].end == bindings[index].end)
        index--;
    if (bindings[index].order != 0 && end->origin != TBD_FD_OUTSIDE)
        return (struct tbd_fd_source){ fds->own_index, bindings[index].order };
    return (struct tbd_fd_source){ end->process, end->made };
}

/* ---- what it is ---- */

static const struct {
    uint32_t number;
    const char *kind;
} makers[] = {
    { SYS_open, "device or directory" },
    { SYS_openat, "device or directory" },
    { SYS_openat2, "device or directory" },
    { SYS_open_by_handle_at, "device or directory" },
    { SYS_creat, "device" },
    { SYS_socket, "socket" },
    { SYS_accept, "socket" },
    { SYS_accept4, "socket" },
    { SYS_epoll_create, "epoll" },
    { SYS_epoll_create1, "epoll" },
    { SYS_eventfd, "eventfd" },
    { SYS_eventfd2, "eventfd" },
    { SYS_signalfd, "signalfd" },
    { SYS_signalfd4, "signalfd" },
    { SYS_timerfd_create, "timerfd" },
    { SYS_inotify_init, "inotify" },
    { SYS_inotify_init1, "inotify" },
    { SYS_memfd_create, "memfd" },
    { SYS_memfd_secret, "memfd" },
    { SYS_pidfd_open, "pidfd" },
    { SYS_io_uring_setup, "io_uring" },
};

static const char *kind_of_call(uint64_t number)
{
    const char *name = tbd_syscall_name(number);

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        if (makers[i].number == number)
            return makers[i].kind;
    }
    return name == NULL ? "not known" : name;
}

/* "pipe" of "a pipe" */
static const char *without_article(const char *kind)
{
    return strncmp(kind, "a ", 2) == 0 ? kind + 2 : kind;
}

static void channel_kind(const struct tbd_descriptors *all, const struct tbd_fd_end *end, char *out,
                         size_t bytes)
{
    const char *kind = all->channels[end->in != 0 ? end->in : end->out].kind;
    const char *way = end->in == 0     ? ", writes"
                      : end->out == 0  ? ", reads"
                      : end->made == 0 ? ", open before the recording"
                                       : "";

    snprintf(out, bytes, "%s%s%s%s", without_article(kind), way, end->name == 0 ? "" : " ",
             all->names + end->name);
}

void tbd_fds_kind(const struct tbd_fds *fds, uint32_t number, char *out, size_t bytes)
{
    const struct tbd_fd_end *end = &fds->all->ends[number];
    const char *kind = NULL;

    switch (end->origin) {
    case TBD_FD_CHANNEL: channel_kind(fds->all, end, out, bytes); return;
    case TBD_FD_OUTSIDE: kind = "open before the recording"; break;
    case TBD_FD_PASSED:
        kind = end->number == SYS_pidfd_getfd ? "from another process" : "came in a message";
        break;
    case TBD_FD_FILE: kind = "file"; break;
    case TBD_FD_ELSEWHERE: kind = kind_of_call(end->number); break;
    }
    snprintf(out, bytes, "%s", kind == NULL ? "" : kind);
}

/* ---- positions ---- */

uint64_t tbd_fds_order(const struct tbd_fds *fds, struct tbd_position position)
{
    const struct tbd_fd_act *acts = fds->own->acts;
    size_t i = TBD_COUNT_BEFORE(k, fds->own->act_count, acts[k].time < position.time);

    return i == 0 ? 0 : acts[i - 1].order;
}

static void put(json_t *row, const char *key, json_t *value)
{
    if (key == NULL)
        json_decref(value);
    else
        json_object_set_new(row, key, value);
}

void tbd_fds_put_call(const struct tbd_fds *fds, struct tbd_fd_source source,
                      const struct tbd_fd_keys *keys, json_t *row)
{
    const struct tbd_fd_shown *shown = tbd_fds_shown(fds, source.process, source.order);

    put(row, keys->call,
        shown == NULL || shown->call == NULL ? json_null() : tbd_output_text(shown->call));
    put(row, keys->position, shown == NULL ? json_null() : tbd_rows_position(shown->position));
    put(row, keys->stack, shown == NULL ? json_null() : tbd_output_text(shown->stack));
}
