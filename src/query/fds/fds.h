// SPDX-License-Identifier: MIT
/* fds.h - the descriptors that a program had, from the logs of its calls
 *
 * query/channels knows what each descriptor of a process led to, and by which calls.  Here these calls get what
 * only the events have: their text and the calls around them.  Those that an answer shows are wanted
 * first, then found, with one search of the windows that have them. */
#ifndef TBD_QUERY_FDS_H
#define TBD_QUERY_FDS_H

#include "query/channels/channels.h"
#include "query/channels/descriptors.h"
#include "query/commands/commands.h"

#include <jansson.h>

struct tbd_fd_shown {
    const struct tbd_fd_act *act; /* borrowed from the process */
    uint32_t process;
    bool is_found; /* what follows is known */
    struct tbd_position position;
    char *call;  /* owned: "openat(AT_FDCWD, "list", O_RDONLY) = 3" */
    char *stack; /* owned: "openat < open64 < main list.c:12" */
};

struct tbd_fds {
    struct tbd_command_run *run;
    struct tbd_channels *channels; /* owned */
    const struct tbd_descriptors *all;
    const struct tbd_fd_process *own;
    uint32_t own_index;
    struct tbd_fd_shown *shown; /* owned; after tbd_fds_find() by process and order */
    size_t count, capacity;
    bool no_memory;
};

/* ---- fd_calls.c ---- */

/* Reads the logs.  Close it in any case. */
enum tbd_exit tbd_fds_open(struct tbd_command_run *run, struct tbd_fds *out);
void tbd_fds_close(struct tbd_fds *fds);
/* The answer shows this call; no matter if there is none. */
void tbd_fds_want(struct tbd_fds *fds, uint32_t process, uint64_t order);
enum tbd_exit tbd_fds_find(struct tbd_fds *fds);
/* NULL: it was not wanted, or not found. */
const struct tbd_fd_shown *tbd_fds_shown(const struct tbd_fds *fds, uint32_t process,
                                         uint64_t order);

/* ---- fd_facts.c ---- */

/* Where a descriptor has what it leads to from. */
struct tbd_fd_source {
    uint32_t process;
    uint64_t order; /* 0: it was open before all recordings */
};

/* Tells it of the binding `index` of a descriptor's history. */
struct tbd_fd_source tbd_fds_source(const struct tbd_fds *fds, const struct tbd_fd_history *history,
                                    size_t index);
/* "file", "pipe, reads", "TCP connection 127.0.0.1:40000 -> 127.0.0.1:80": what it is. */
void tbd_fds_kind(const struct tbd_fds *fds, uint32_t end, char *out, size_t bytes);
#define TBD_FD_KIND_BYTES 400u
/* The order of the last call before a position. */
uint64_t tbd_fds_order(const struct tbd_fds *fds, struct tbd_position position);
/* Puts the call's text, position and stack under these keys; null if it is not known.  A key may be NULL. */
struct tbd_fd_keys {
    const char *call, *position, *stack;
};
void tbd_fds_put_call(const struct tbd_fds *fds, struct tbd_fd_source source,
                      const struct tbd_fd_keys *keys, json_t *row);

/* ---- the answers ---- */

/* fd_open.c: those that are open, by the calls that opened them. */
enum tbd_exit tbd_fds_print_open(struct tbd_fds *fds, uint64_t order);
/* fd_history.c: what became of one. */
enum tbd_exit tbd_fds_print_history(struct tbd_fds *fds, uint64_t fd);
/* fd_errors.c: uses of what was closed, or never open. */
enum tbd_exit tbd_fds_print_errors(struct tbd_fds *fds);

#endif
