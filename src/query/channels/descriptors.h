// SPDX-License-Identifier: MIT
/* descriptors.h - what the processes of a tree did with their descriptors, from the logs of their traces
 *
 * Every system call is in the log of its window, whatever the window's level, so nothing is
 * replayed.  Each descriptor leads to an *end* (what the kernel calls an open file description), which
 * dup, fork and execve share; an end of a pipe or socket pair reads from one *channel* and writes to another.
 * The calls that move bytes are the channels' *transfers*.  An end of a *file* has a position; all calls on it that
 * the position, the length or the bytes depend on are kept.
 *
 * Order: a number for each message of a trace's log, from 1.  0 is before all of them. */
#ifndef TBD_QUERY_DESCRIPTORS_H
#define TBD_QUERY_DESCRIPTORS_H

#include "query/channels/identities.h"
#include "query/channels/process_tree.h"

#define TBD_FD_NO_END 0u /* closed, or never open */

enum tbd_fd_origin {
    TBD_FD_ELSEWHERE, /* a terminal, a file of which nothing is known, ...: nothing that can be followed */
    TBD_FD_OUTSIDE, /* was open before the recording began, or in a child that was not recorded */
    TBD_FD_PASSED,  /* came in a message from another process (SCM_RIGHTS) */
    TBD_FD_CHANNEL,
    TBD_FD_FILE,
};

struct tbd_fd_end {
    enum tbd_fd_origin origin;
    uint32_t in, out; /* CHANNEL: channels; 0: none */
    uint32_t file;    /* FILE */
    bool appends;     /* FILE: opened with O_APPEND */
    uint32_t process; /* in which it was made, or first seen */
    /* Order of the call that made it; 0: OUTSIDE, or a pipe that the process was started with. */
    uint64_t made;
    uint64_t number; /* of that call */
    uint32_t name;   /* of a socket: its addresses, in `names`; 0: none */
};

struct tbd_fd_channel {
    const char *kind; /* "a pipe" */
    bool is_messages; /* a read takes what one write sent */
    bool is_named;    /* others may find it by its name, and bytes that nobody reads may be lost */
    bool has_others;  /* a process that is not recorded had one of its ends */
    const char *spoiled; /* bytes went through it that no read or write has moved; NULL: none */
};

/* Where the bytes of a call lie in memory. */
enum tbd_fd_layout {
    TBD_FD_PLAIN,  /* at args[1] */
    TBD_FD_IOVEC,  /* struct iovec[args[2]] at args[1] */
    TBD_FD_MSGHDR, /* struct msghdr at args[1] */
};

/* A call that read bytes from a descriptor or wrote them to it. */
struct tbd_fd_transfer {
    uint32_t process, thread;
    uint32_t end;     /* of its descriptor */
    uint32_t channel; /* 0: the end has none */
    bool is_write, peeks;
    enum tbd_fd_layout layout;
    uint32_t window;
    size_t message; /* index in the window's log */
    uint64_t number, args[3];
    uint64_t bytes;
    uint64_t began_order, order; /* the call was made, it returned */
    uint64_t began, time; /* the block that ends with the call; the last block at its return */
};

struct tbd_fd_file {
    const char *spoiled; /* it was changed in a way that no write shows; NULL: it was not */
};

enum tbd_fd_file_act {
    TBD_FD_FILE_OPENED,
    TBD_FD_FILE_SOUGHT, /* lseek */
    TBD_FD_FILE_CUT,    /* or extended: ftruncate */
    TBD_FD_FILE_READ,
    TBD_FD_FILE_WRITTEN,
};

#define TBD_FD_HERE UINT64_MAX

struct tbd_fd_file_call {
    struct tbd_fd_transfer transfer; /* without a channel */
    uint32_t file;
    enum tbd_fd_file_act act;
    bool appends;
    uint64_t offset; /* that it names, or TBD_FD_HERE; OPENED, CUT: the file's length */
};

struct tbd_fd_binding {
    uint64_t order; /* from there on */
    uint32_t end;   /* TBD_FD_NO_END: closed */
    bool closes_on_exec;
};

/* What a descriptor led to, in order. */
struct tbd_fd_history {
    struct tbd_fd_binding *bindings; /* owned */
    size_t count, capacity;
};

/* A call that changed what descriptors lead to, or that failed because one is not open (EBADF). */
struct tbd_fd_act {
    uint64_t order, number;
    uint64_t time; /* the last block at its return: the time of its event */
    uint32_t thread, window;
    bool is_bad;
    uint32_t bad; /* that descriptor */
};

struct tbd_fd_child {
    uint64_t order; /* of the call that made it */
    uint32_t pid;
    bool is_recorded; /* from its first instruction on */
    uint64_t reaped;  /* order of the call that waited for its end; UINT64_MAX: none did */
};

struct tbd_fd_process {
    const char *path; /* of the trace; borrowed from the tree */
    uint32_t pid;
    uint32_t parent; /* a process before this one, or UINT32_MAX */
    uint64_t made;   /* order of its fork in the parent; UINT64_MAX: not made by a recorded fork */
    bool continues;  /* the parent's process, after execve */
    bool is_open_before; /* descriptors that were never bound may be open */
    uint64_t end_order;
    struct tbd_fd_history *histories; /* owned; by descriptor */
    size_t history_capacity;
    struct tbd_fd_act *acts; /* owned; in order */
    size_t act_count, act_capacity;
    struct tbd_fd_child *children; /* owned */
    size_t child_count, child_capacity;
    char loss[160]; /* why its log is incomplete; empty: it is complete */
};

struct tbd_descriptors {
    struct tbd_process_tree tree;
    struct tbd_fd_process *processes; /* owned */
    uint32_t process_count, asked;
    struct tbd_fd_end *ends; /* owned; [0] is TBD_FD_NO_END */
    size_t end_count, end_capacity;
    struct tbd_fd_channel *channels; /* owned; [0] is none */
    size_t channel_count, channel_capacity;
    char *names; /* owned: texts, each up to a NUL; [0] is "" */
    size_t name_bytes, name_capacity;
    struct tbd_identities identities;  /* of channels; of a connection the first of two */
    struct tbd_fd_transfer *transfers; /* owned; those of a process in its order */
    size_t transfer_count, transfer_capacity;
    struct tbd_fd_file *files; /* owned; [0] is none */
    size_t file_count, file_capacity;
    struct tbd_fd_file_call *file_calls; /* owned; those of a process in its order */
    size_t file_call_count, file_call_capacity;
    bool has_passing; /* descriptors came in messages */
    /* Processes were started with pipes, whose other ends may be in a process beside the tree. */
    bool has_inherited;
    bool has_async; /* io_uring or io_submit moves bytes that no call shows */
};

/* Reads the logs of all traces in the tree of processes that `asked` belongs to.  Free it in any case.
 * TBD_INTERRUPTED on Ctrl-C. */
TBD_MUST_CHECK enum tbd_status tbd_descriptors_read(const struct tbd_trace_info *asked,
                                                    struct tbd_descriptors *out);
void tbd_descriptors_free(struct tbd_descriptors *all);

/* What the descriptor led to when the message `order` of the process had been read; NULL: it was never bound until
 * then. */
const struct tbd_fd_binding *tbd_fd_binding_at(const struct tbd_fd_process *process, uint64_t fd,
                                               uint64_t order);
/* NULL: no call of the process with this order changed a descriptor. */
const struct tbd_fd_act *tbd_fd_act_of(const struct tbd_fd_process *process, uint64_t order);

/* Does everything up to `a_order` in process `a` come before what follows `b_order` in process `b`? */
bool tbd_descriptors_precedes(const struct tbd_descriptors *all, uint32_t a, uint64_t a_order,
                              uint32_t b, uint64_t b_order);

#endif
