// SPDX-License-Identifier: MIT
/* process_tree.h - the traces beside a trace, as a tree of processes
 *
 * The headers of the traces in one folder give process ids and start times, no more.  A process id
 * may have been used again, so the time decides: a trace's parent is the latest trace of the
 * parent's process that began before it. */
#ifndef TBD_QUERY_PROCESS_TREE_H
#define TBD_QUERY_PROCESS_TREE_H

#include "format/trace/trace.h"

#define TBD_NO_PARENT SIZE_MAX

struct tbd_process_row {
    char *path; /* owned */
    void *more; /* owned: what `describe` made */
    uint32_t pid, parent_pid;
    uint64_t started; /* CLOCK_REALTIME in ns */
    uint64_t blocks;
    size_t parent; /* a row before this one, or TBD_NO_PARENT */
    bool is_forked, is_asked;
    uint64_t changed; /* the last change of the trace, as `started` */
    bool is_member;   /* of the tree that the asked trace is in */
    /* It is in another tree: the same parent, which is not recorded, began both at about the same time. */
    bool is_beside;
    bool ended_by_exec;
};

/* In order of their start. */
struct tbd_process_tree {
    struct tbd_process_row *rows; /* owned */
    size_t count, capacity;
};

/* The tree of the traces in the folder where the trace `asked` is.  Traces of others than this user
 * and the owner of that trace are left out.  `describe`, if given, makes a row's `more` with malloc
 * (NULL: no memory).  Free the tree in any case. */
TBD_MUST_CHECK enum tbd_status
tbd_process_tree_read(const struct tbd_trace_info *asked,
                      void *(*describe)(const struct tbd_trace_info *info),
                      struct tbd_process_tree *out);
void tbd_process_tree_free(struct tbd_process_tree *tree);

/* "fork", "exec" or "start": how the row's program began. */
const char *tbd_process_began(const struct tbd_process_tree *tree, size_t index);

#endif
