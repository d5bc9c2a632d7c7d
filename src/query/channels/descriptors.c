// SPDX-License-Identifier: MIT
/* descriptors.c - see descriptors.h
 *
 * Processes are read in the order of their start, so a parent is known before its children.  What a
 * child of vfork did before it executed a program is not in any log: the descriptors of that
 * program are not known, and a channel that such a child had an end of has others at its ends.
 *
 * DESCRIPTORS-1  The bindings of a descriptor ascend in order. */
#include "query/channels/descriptors.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/linux.h"
#include "format/reading/window_read.h"
#include "format/window/window_make.h"
#include "hooks/table/syscalls.h"
#include "query/text/user_interrupt.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FD_MAX (1u << 20)

/* The log of one process being read. */
struct log_reading {
    struct tbd_descriptors *all;
    struct tbd_fd_process *process;
    uint32_t index; /* of the process */
    struct tbd_trace *trace;
    const struct tbd_window *window;
    size_t message;
    size_t opened; /* the next item of the window's list */
    uint64_t order, time;
    uint32_t thread;
    struct {
        uint32_t thread;
        uint64_t order;
    } * left; /* owned: when threads lost control */
    size_t left_count, left_capacity;
    bool is_resumed; /* the next call's thread waited in it since ... */
    uint64_t began, began_order;
    bool failed; /* no memory */
};

struct fd_call {
    uint64_t number, args[6];
    int64_t result;
    const uint8_t *payload;
    uint32_t bytes;
    const struct tbd_opened *opened; /* what its descriptor leads to; NULL: not known */
};

/* ---- ends and channels ---- */

static uint32_t add_end(struct log_reading *in, struct tbd_fd_end end)
{
    struct tbd_descriptors *all = in->all;

    if (!tbd_array_grow(&all->ends, all->end_count, &all->end_capacity, sizeof(*all->ends))) {
        in->failed = true;
        return TBD_FD_NO_END;
    }
    all->ends[all->end_count] = end;
    return (uint32_t)all->end_count++;
}

static uint32_t add_channel(struct log_reading *in, const char *kind, bool is_messages)
{
    struct tbd_descriptors *all = in->all;

    if (!tbd_array_grow(&all->channels, all->channel_count, &all->channel_capacity,
                        sizeof(*all->channels))) {
        in->failed = true;
        return 0;
    }
    all->channels[all->channel_count] =
        (struct tbd_fd_channel){ .kind = kind, .is_messages = is_messages };
    return (uint32_t)all->channel_count++;
}

/* ---- tables of descriptors ---- */

static void bind_fd(struct log_reading *in, struct tbd_fd_process *process, uint64_t fd,
                    struct tbd_fd_binding binding)
{
    struct tbd_fd_history *history;

    if (fd >= FD_MAX)
        return;
    if (!tbd_array_reach(&process->histories, (size_t)fd, &process->history_capacity,
                         sizeof(*process->histories))) {
        in->failed = true;
        return;
    }
    history = &process->histories[fd];
    if (!tbd_array_grow(&history->bindings, history->count, &history->capacity,
                        sizeof(*history->bindings))) {
        in->failed = true;
        return;
    }
    TBD_INVARIANT("DESCRIPTORS-1",
                  history->count == 0 ||
                      history->bindings[history->count - 1].order <= binding.order);
    history->bindings[history->count++] = binding;
}

static void bind_new(struct log_reading *in, uint64_t fd, uint32_t end, bool closes_on_exec)
{
    bind_fd(in, in->process, fd,
            (struct tbd_fd_binding){
                .order = in->order, .end = end, .closes_on_exec = closes_on_exec });
}

/* What the descriptor led to when the message `order` came; NULL: it was never bound until then. */
static const struct tbd_fd_binding *binding_at(const struct tbd_fd_process *process, uint64_t fd,
                                               uint64_t order)
{
    const struct tbd_fd_history *history;

    if (fd >= process->history_capacity)
        return NULL;
    history = &process->histories[fd];
    for (size_t i = history->count; i-- > 0;) {
        if (history->bindings[i].order <= order)
            return &history->bindings[i];
    }
    return NULL;
}

/* A descriptor that was open before the log began gets an end when it is first seen.  Then it is bound
 * from the start, which keeps DESCRIPTORS-1: it has no bindings. */
static struct tbd_fd_binding look_up(struct log_reading *in, uint64_t fd, uint64_t order)
{
    const struct tbd_fd_binding *found = binding_at(in->process, fd, order);
    struct tbd_fd_binding binding = { .end = TBD_FD_NO_END };

    if (found != NULL)
        return *found;
    if (!in->process->is_open_before || fd >= FD_MAX ||
        (fd < in->process->history_capacity && in->process->histories[fd].count != 0))
        return binding;
    binding.end = add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_OUTSIDE });
    bind_fd(in, in->process, fd, binding);
    return binding;
}

/* The descriptors that a process has inherited; those that close on exec as `is_exec` says. */
static void inherit(struct log_reading *in, const struct tbd_fd_process *from, uint64_t order,
                    bool is_exec)
{
    for (size_t fd = 0; fd < from->history_capacity; fd++) {
        const struct tbd_fd_binding *found = binding_at(from, fd, order);
        struct tbd_fd_binding binding;

        if (found == NULL)
            continue;
        binding = *found;
        if (is_exec && binding.closes_on_exec)
            binding.end = TBD_FD_NO_END;
        binding.order = 0;
        bind_fd(in, in->process, fd, binding);
    }
    in->process->is_open_before = from->is_open_before;
}

/* ---- what calls do ---- */

/* Bytes that the kernel wrote at `address`; false: the log does not have them. */
static bool written_at(const struct fd_call *call, uint64_t address, void *out, size_t bytes)
{
    struct tbd_write_cursor writes;
    struct tbd_write_view view;

    tbd_writes_first(TBD_MSG_SYSCALL, call->payload, call->bytes, &writes);
    while (tbd_writes_next(&writes, &view)) {
        if (address >= view.address && view.bytes >= bytes &&
            address - view.address <= view.bytes - bytes) {
            memcpy(out, view.new_bytes + (address - view.address), bytes);
            return true;
        }
    }
    return false;
}

/* What the flags of open(2), pipe2(2), socket(2), ... have in common. */
static bool closes_on_exec(uint64_t flags)
{
    _Static_assert(SOCK_CLOEXEC == O_CLOEXEC, "sockets and files have the same flag");
    return (flags & O_CLOEXEC) != 0;
}

static void do_pipe(struct log_reading *in, const struct fd_call *call)
{
    uint64_t flags = call->number == SYS_pipe2 ? call->args[1] : 0;
    uint32_t channel = add_channel(in, "a pipe", (flags & O_DIRECT) != 0);
    int fds[2];

    if (!written_at(call, call->args[0], fds, sizeof(fds)))
        return;
    bind_new(in, (uint32_t)fds[0],
             add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_CHANNEL, .in = channel }),
             closes_on_exec(flags));
    bind_new(in, (uint32_t)fds[1],
             add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_CHANNEL, .out = channel }),
             closes_on_exec(flags));
}

static void do_socketpair(struct log_reading *in, const struct fd_call *call)
{
    bool is_messages = (call->args[1] & 0xf) != SOCK_STREAM;
    uint32_t one = add_channel(in, "a socket pair", is_messages);
    uint32_t other = add_channel(in, "a socket pair", is_messages);
    int fds[2];

    if (!written_at(call, call->args[3], fds, sizeof(fds)))
        return;
    bind_new(in, (uint32_t)fds[0],
             add_end(in, (struct tbd_fd_end){ TBD_FD_CHANNEL, .in = one, .out = other }),
             closes_on_exec(call->args[1]));
    bind_new(in, (uint32_t)fds[1],
             add_end(in, (struct tbd_fd_end){ TBD_FD_CHANNEL, .in = other, .out = one }),
             closes_on_exec(call->args[1]));
}

static void do_dup(struct log_reading *in, const struct fd_call *call)
{
    struct tbd_fd_binding from = look_up(in, (uint32_t)call->args[0], in->order);
    bool closes = call->number == SYS_dup3 && closes_on_exec(call->args[2]);

    if (call->number == SYS_dup2 && (uint32_t)call->args[0] == (uint32_t)call->args[1])
        return;
    bind_new(in, (uint64_t)call->result, from.end, closes);
}

static void do_fcntl(struct log_reading *in, const struct fd_call *call)
{
    struct tbd_fd_binding from = look_up(in, (uint32_t)call->args[0], in->order);
    uint32_t command = (uint32_t)call->args[1];

    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        bind_new(in, (uint64_t)call->result, from.end, command == F_DUPFD_CLOEXEC);
    else if (command == F_SETFD)
        bind_new(in, (uint32_t)call->args[0], from.end, (call->args[2] & FD_CLOEXEC) != 0);
    else if (command == F_SETFL && (call->args[2] & O_DIRECT) != 0 &&
             in->all->ends[from.end].out != 0)
        in->all->channels[in->all->ends[from.end].out].spoiled = "it became a pipe of packets";
}

static void do_ioctl(struct log_reading *in, const struct fd_call *call)
{
    struct tbd_fd_binding from = look_up(in, (uint32_t)call->args[0], in->order);

    if (call->args[1] == FIOCLEX || call->args[1] == FIONCLEX)
        bind_new(in, (uint32_t)call->args[0], from.end, call->args[1] == FIOCLEX);
}

/* Linux closes the descriptor also when it says that something else failed. */
static void do_close(struct log_reading *in, const struct fd_call *call)
{
    if (call->result != -EBADF)
        bind_new(in, (uint32_t)call->args[0], TBD_FD_NO_END, false);
}

static void do_close_range(struct log_reading *in, const struct fd_call *call)
{
    uint32_t first = (uint32_t)call->args[0], last = (uint32_t)call->args[1];
    bool only_marks = (call->args[2] & CLOSE_RANGE_CLOEXEC) != 0;

    for (uint64_t fd = first; fd <= last && fd < in->process->history_capacity; fd++) {
        const struct tbd_fd_binding *found = binding_at(in->process, fd, in->order);

        if (found != NULL && found->end != TBD_FD_NO_END)
            bind_new(in, fd, only_marks ? found->end : TBD_FD_NO_END, only_marks);
    }
}

/* The channel, or the first of the connection's two, that the call's descriptor leads to. */
static uint32_t named_channel(struct log_reading *in, const struct fd_call *call,
                              enum tbd_identity_side side, const char *kind)
{
    bool is_messages = call->opened->what.socket_type == SOCK_SEQPACKET;
    uint32_t *number =
        tbd_identities_find(&in->all->identities, call->opened, side, in->process->pid);

    if (number == NULL) {
        in->failed = true;
        return 0;
    }
    for (int ways = side == TBD_IDENTITY_ONE ? 1 : 2; *number == 0 && ways != 0; ways--) {
        uint32_t channel = add_channel(in, kind, is_messages);

        in->all->channels[channel].is_named = true;
        if (ways == 1)
            *number = channel - (side == TBD_IDENTITY_ONE ? 0 : 1);
    }
    return *number;
}

/* What is written goes to the first channel where the connection was made, to the second where it was accepted. */
static struct tbd_fd_end end_of_connection(struct log_reading *in, const struct fd_call *call,
                                           bool accepts)
{
    bool is_unix =
        call->opened->what.local_bytes >= sizeof(sa_family_t) && call->opened->local[0] == AF_UNIX;
    uint32_t first = named_channel(in, call, accepts ? TBD_IDENTITY_ACCEPTS : TBD_IDENTITY_CONNECTS,
                                   is_unix ? "a Unix socket" : "a TCP connection");

    return (struct tbd_fd_end){ .origin = TBD_FD_CHANNEL,
                                .in = accepts ? first : first + 1,
                                .out = accepts ? first + 1 : first };
}

/* A connection that is still being made (EINPROGRESS) has its names already. */
static void do_connect(struct log_reading *in, const struct fd_call *call)
{
    struct tbd_fd_binding binding = look_up(in, (uint32_t)call->args[0], in->order);

    if (call->opened != NULL && binding.end != TBD_FD_NO_END &&
        in->all->ends[binding.end].origin != TBD_FD_CHANNEL)
        in->all->ends[binding.end] = end_of_connection(in, call, false);
}

/* What a new descriptor leads to: a FIFO, a connection, or no channel. */
static struct tbd_fd_end new_end(struct log_reading *in, const struct fd_call *call)
{
    uint32_t channel;

    if (call->opened == NULL)
        return (struct tbd_fd_end){ .origin = TBD_FD_ELSEWHERE };
    if (call->number == SYS_accept || call->number == SYS_accept4)
        return end_of_connection(in, call, true);
    if (!S_ISFIFO(call->opened->what.mode))
        return (struct tbd_fd_end){ .origin = TBD_FD_ELSEWHERE };
    channel = named_channel(in, call, TBD_IDENTITY_ONE, "a FIFO");
    return (struct tbd_fd_end){ .origin = TBD_FD_CHANNEL, .in = channel, .out = channel };
}

static void do_open(struct log_reading *in, const struct fd_call *call)
{
    uint64_t flags = call->number == SYS_open      ? call->args[1]
                     : call->number == SYS_openat  ? call->args[2]
                     : call->number == SYS_accept4 ? call->args[3]
                     : call->number == SYS_socket  ? call->args[1]
                                                   : 0;

    bind_new(in, (uint64_t)call->result, add_end(in, new_end(in, call)), closes_on_exec(flags));
}

/* A thread is a child at first, too: its START message follows. */
static void do_fork(struct log_reading *in, const struct fd_call *call)
{
    struct tbd_fd_process *process = in->process;

    if (call->result <= 0)
        return;
    if (!tbd_array_grow(&process->children, process->child_count, &process->child_capacity,
                        sizeof(*process->children))) {
        in->failed = true;
        return;
    }
    process->children[process->child_count++] = (struct tbd_fd_child){
        .order = in->order, .pid = (uint32_t)call->result, .reaped = UINT64_MAX
    };
}

/* The end of a child that was waited for. */
static void do_wait(struct log_reading *in, const struct fd_call *call)
{
    struct tbd_fd_process *process = in->process;

    if (call->result <= 0 || (call->args[2] & (WUNTRACED | WCONTINUED)) != 0)
        return;
    for (size_t i = process->child_count; i-- > 0;) {
        if (process->children[i].pid == (uint32_t)call->result) {
            if (process->children[i].reaped == UINT64_MAX)
                process->children[i].reaped = in->order;
            return;
        }
    }
}

/* Calls that move bytes through the descriptor that is their first argument. */
static const struct fd_transfer_rule {
    bool is_write;
    uint8_t flags; /* the argument with MSG_*; 0: none */
    enum tbd_fd_layout layout;
} transfers[TBD_SYS_COUNT] = {
    [SYS_read] = { false, 0, TBD_FD_PLAIN },     [SYS_readv] = { false, 0, TBD_FD_IOVEC },
    [SYS_preadv2] = { false, 0, TBD_FD_IOVEC },  [SYS_recvfrom] = { false, 3, TBD_FD_PLAIN },
    [SYS_recvmsg] = { false, 2, TBD_FD_MSGHDR }, [SYS_write] = { true, 0, TBD_FD_PLAIN },
    [SYS_writev] = { true, 0, TBD_FD_IOVEC },    [SYS_pwritev2] = { true, 0, TBD_FD_IOVEC },
    [SYS_sendto] = { true, 3, TBD_FD_PLAIN },    [SYS_sendmsg] = { true, 2, TBD_FD_MSGHDR },
};

static void add_transfer(struct log_reading *in, const struct fd_call *call, bool is_write,
                         enum tbd_fd_layout layout, uint64_t flags)
{
    struct tbd_descriptors *all = in->all;
    struct tbd_fd_binding binding = look_up(in, (uint32_t)call->args[0], in->began_order);
    const struct tbd_fd_end *end = &all->ends[binding.end];
    uint32_t channel = is_write ? end->out : end->in;

    if (binding.end == TBD_FD_NO_END || end->origin == TBD_FD_ELSEWHERE || call->result < 0)
        return;
    if (channel != 0 && (flags & (MSG_OOB | MSG_ERRQUEUE)) != 0)
        all->channels[channel].spoiled = "out-of-band data went through it";
    if (!tbd_array_grow(&all->transfers, all->transfer_count, &all->transfer_capacity,
                        sizeof(*all->transfers))) {
        in->failed = true;
        return;
    }
    all->transfers[all->transfer_count++] =
        (struct tbd_fd_transfer){ .process = in->index,
                                  .thread = in->thread,
                                  .end = binding.end,
                                  .channel = channel,
                                  .is_write = is_write,
                                  .peeks = !is_write && (flags & MSG_PEEK) != 0,
                                  .layout = layout,
                                  .window = in->window->index,
                                  .message = in->message,
                                  .number = call->number,
                                  .args = { call->args[0], call->args[1], call->args[2] },
                                  .bytes = (uint64_t)call->result,
                                  .began_order = in->began_order,
                                  .order = in->order,
                                  .began = in->began,
                                  .time = in->time };
}

/* A descriptor in a message: its number is in the control data that the kernel wrote. */
static void take_passed(struct log_reading *in, const struct fd_call *call)
{
    struct tbd_write_cursor writes;
    struct tbd_write_view view;

    tbd_writes_first(TBD_MSG_SYSCALL, call->payload, call->bytes, &writes);
    while (tbd_writes_next(&writes, &view)) {
        struct cmsghdr head;
        size_t count;

        if (view.bytes < sizeof(head))
            continue;
        memcpy(&head, view.new_bytes, sizeof(head));
        if (head.cmsg_level != SOL_SOCKET || head.cmsg_type != SCM_RIGHTS ||
            head.cmsg_len < sizeof(head) || head.cmsg_len > view.bytes)
            continue;
        in->all->has_passing = true;
        count = (head.cmsg_len - sizeof(head)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, view.new_bytes + sizeof(head) + i * sizeof(fd), sizeof(fd));
            bind_new(in, (uint32_t)fd, add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_PASSED }),
                     false);
        }
    }
}

static void do_transfer(struct log_reading *in, const struct fd_call *call)
{
    const struct fd_transfer_rule *rule = &transfers[call->number];

    add_transfer(in, call, rule->is_write, rule->layout,
                 rule->flags == 0 ? 0 : call->args[rule->flags]);
    if (call->number == SYS_recvmsg && call->result >= 0)
        take_passed(in, call);
}

static void spoil(struct log_reading *in, uint64_t fd, const char *why)
{
    const struct tbd_fd_end *end = &in->all->ends[look_up(in, (uint32_t)fd, in->began_order).end];

    if (end->in != 0)
        in->all->channels[end->in].spoiled = why;
    if (end->out != 0)
        in->all->channels[end->out].spoiled = why;
}

static void do_splice(struct log_reading *in, const struct fd_call *call)
{
    static const char why[] = "splice, tee or sendfile moved bytes through it";

    if (call->result <= 0)
        return;
    spoil(in, call->args[0], why);
    if (call->number != SYS_vmsplice)
        spoil(in, call->args[call->number == SYS_splice ? 2 : 1], why);
}

static void do_many_messages(struct log_reading *in, const struct fd_call *call)
{
    if (call->result > 0)
        spoil(in, call->args[0], "recvmmsg or sendmmsg moved messages through it");
    if (call->result > 0 && call->number == SYS_recvmmsg)
        take_passed(in, call);
}

static void do_async(struct log_reading *in, const struct fd_call *call)
{
    if (call->result >= 0)
        in->all->has_async = true;
}

/* Another process's descriptor is like one that came in a message. */
static void do_getfd(struct log_reading *in, const struct fd_call *call)
{
    in->all->has_passing = true;
    bind_new(in, (uint64_t)call->result,
             add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_PASSED }), true);
}

/* Calls that open, move or close descriptors, or move bytes through them.  Those marked with `fails`
 * matter also if they failed. */
static const struct {
    void (*act)(struct log_reading *in, const struct fd_call *call);
    bool fails;
} calls[TBD_SYS_COUNT] = {
    [SYS_pipe] = { do_pipe, false },
    [SYS_pipe2] = { do_pipe, false },
    [SYS_socketpair] = { do_socketpair, false },
    [SYS_dup] = { do_dup, false },
    [SYS_dup2] = { do_dup, false },
    [SYS_dup3] = { do_dup, false },
    [SYS_fcntl] = { do_fcntl, false },
    [SYS_ioctl] = { do_ioctl, false },
    [SYS_close] = { do_close, true },
    [SYS_close_range] = { do_close_range, false },
    [SYS_open] = { do_open, false },
    [SYS_openat] = { do_open, false },
    [SYS_openat2] = { do_open, false },
    [SYS_creat] = { do_open, false },
    [SYS_open_by_handle_at] = { do_open, false },
    [SYS_socket] = { do_open, false },
    [SYS_connect] = { do_connect, true },
    [SYS_accept] = { do_open, false },
    [SYS_accept4] = { do_open, false },
    [SYS_epoll_create] = { do_open, false },
    [SYS_epoll_create1] = { do_open, false },
    [SYS_eventfd] = { do_open, false },
    [SYS_eventfd2] = { do_open, false },
    [SYS_signalfd] = { do_open, false },
    [SYS_signalfd4] = { do_open, false },
    [SYS_timerfd_create] = { do_open, false },
    [SYS_inotify_init] = { do_open, false },
    [SYS_inotify_init1] = { do_open, false },
    [SYS_memfd_create] = { do_open, false },
    [SYS_pidfd_open] = { do_open, false },
    [SYS_pidfd_getfd] = { do_getfd, false },
    [SYS_fork] = { do_fork, false },
    [SYS_vfork] = { do_fork, false },
    [SYS_clone] = { do_fork, false },
    [SYS_clone3] = { do_fork, false },
    [SYS_wait4] = { do_wait, false },
    [SYS_read] = { do_transfer, false },
    [SYS_readv] = { do_transfer, false },
    [SYS_preadv2] = { do_transfer, false },
    [SYS_recvfrom] = { do_transfer, false },
    [SYS_recvmsg] = { do_transfer, false },
    [SYS_recvmmsg] = { do_many_messages, false },
    [SYS_write] = { do_transfer, false },
    [SYS_writev] = { do_transfer, false },
    [SYS_pwritev2] = { do_transfer, false },
    [SYS_sendto] = { do_transfer, false },
    [SYS_sendmsg] = { do_transfer, false },
    [SYS_sendmmsg] = { do_many_messages, false },
    [SYS_splice] = { do_splice, false },
    [SYS_tee] = { do_splice, false },
    [SYS_vmsplice] = { do_splice, false },
    [SYS_sendfile] = { do_splice, false },
    [SYS_io_uring_setup] = { do_async, false },
    [SYS_io_setup] = { do_async, false },
};

/* ---- messages ---- */

/* What the window's list says of the call that is being read. */
static const struct tbd_opened *opened_by(struct log_reading *in, struct tbd_opened *out)
{
    size_t next = in->opened;

    while (tbd_opened_next(in->window, &next, out) && out->call <= in->message) {
        in->opened = next;
        if (out->call == in->message)
            return out;
    }
    return NULL;
}

static void take_syscall(struct log_reading *in, const uint8_t *payload, uint32_t bytes)
{
    struct fd_call call = { .payload = payload, .bytes = bytes };
    struct tbd_msg_syscall message;
    struct tbd_opened opened;

    memcpy(&message, payload, sizeof(message));
    if ((message.flags & (TBD_SYSCALL_CONTINUED | TBD_SYSCALL_REFUSED)) != 0 ||
        message.number >= TBD_SYS_COUNT || calls[message.number].act == NULL)
        return;
    call.number = message.number;
    call.result = (int64_t)message.result;
    call.opened = opened_by(in, &opened);
    memcpy(call.args, message.args, sizeof(call.args));
    if (call.result < 0 && !calls[call.number].fails)
        return;
    if (!in->is_resumed) {
        in->began = in->time;
        in->began_order = in->order;
    }
    calls[call.number].act(in, &call);
}

static uint64_t *left_order(struct log_reading *in, uint32_t thread)
{
    for (size_t i = 0; i < in->left_count; i++) {
        if (in->left[i].thread == thread)
            return &in->left[i].order;
    }
    if (!tbd_array_grow(&in->left, in->left_count, &in->left_capacity, sizeof(*in->left))) {
        in->failed = true;
        return NULL;
    }
    in->left[in->left_count].thread = thread;
    in->left[in->left_count].order = 0;
    return &in->left[in->left_count++].order;
}

static void take_switch(struct log_reading *in, const struct tbd_msg_thread *message)
{
    uint64_t *from = left_order(in, message->from), *to;

    if (from != NULL)
        *from = in->order;
    to = left_order(in, message->thread);
    in->thread = message->thread;
    in->is_resumed = message->block_time != TBD_NO_BLOCK_TIME;
    in->began = message->block_time;
    in->began_order = to == NULL ? 0 : *to;
}

static void take_thread(struct log_reading *in, const struct tbd_message *message)
{
    struct tbd_msg_thread thread = tbd_thread_message(message);
    struct tbd_fd_process *process = in->process;

    if (thread.event == TBD_THREAD_SWITCH)
        take_switch(in, &thread);
    if (thread.event == TBD_THREAD_START && process->child_count != 0 &&
        process->children[process->child_count - 1].pid == thread.thread)
        process->child_count--;
}

static void take_message(struct log_reading *in, const struct tbd_log_entry *entry)
{
    const uint8_t *payload = (const uint8_t *)entry->message + sizeof(*entry->message);
    uint32_t kind = tbd_message_kind(entry->message);

    in->order++;
    in->time = in->window->first_time + (entry->time == 0 ? 0 : entry->time - 1);
    if (kind == TBD_MSG_THREAD) {
        take_thread(in, entry->message);
        return;
    }
    if (kind == TBD_MSG_SYSCALL)
        take_syscall(in, payload, tbd_message_payload_bytes(entry->message));
    in->is_resumed = false; /* an INTERRUPTED says that the call is made again */
}

/* ---- processes ---- */

static void lose(struct tbd_fd_process *process, const char *what)
{
    if (process->loss[0] == '\0')
        snprintf(process->loss, sizeof(process->loss), "%s", what);
}

/* After windows that cannot be read nobody knows what a descriptor leads to. */
static void forget_bindings(struct log_reading *in)
{
    lose(in->process, "one of its windows cannot be read");
    in->process->is_open_before = true;
    in->is_resumed = false;
    in->order++;
    for (size_t fd = 0; fd < in->process->history_capacity; fd++) {
        if (in->process->histories[fd].count != 0)
            bind_new(in, fd, add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_OUTSIDE }), false);
    }
}

static void read_window(struct log_reading *in, const struct tbd_window *window)
{
    in->window = window;
    in->opened = 0;
    in->thread = window->regs.thread;
    for (in->message = 0; in->message < window->log_count && !in->failed; in->message++)
        take_message(in, &window->log[in->message]);
}

static enum tbd_status read_windows(struct log_reading *in)
{
    uint32_t count = tbd_trace_window_count(in->trace);

    if (count != 0 && tbd_trace_window(in->trace, 0)->first_time != 0)
        lose(in->process, "its oldest windows were dropped");
    for (uint32_t i = 0; i < count && !in->failed; i++) {
        struct tbd_window *window;
        enum tbd_status status = tbd_window_load_summaries(in->trace, i, &window, NULL);

        if (status == TBD_NOMEM || tbd_is_interrupted()) {
            if (status == TBD_OK)
                tbd_window_free(window);
            return status == TBD_NOMEM ? status : TBD_INTERRUPTED;
        }
        if (status != TBD_OK) {
            forget_bindings(in);
            continue;
        }
        read_window(in, window);
        tbd_window_free(window);
    }
    return in->failed ? TBD_NOMEM : TBD_OK;
}

/* The fork that made the process, or the end of the program that executed it. */
static void find_origin(struct log_reading *in, const struct tbd_process_row *row)
{
    struct tbd_fd_process *process = in->process, *parent;

    process->made = UINT64_MAX;
    process->is_open_before = true;
    if (process->parent == UINT32_MAX)
        return;
    parent = &in->all->processes[process->parent];
    if (!row->is_forked) {
        if (parent->pid != process->pid)
            return;
        process->continues = true;
        process->made = parent->end_order;
        inherit(in, parent, parent->end_order, true);
        return;
    }
    for (size_t i = 0; i < parent->child_count; i++) {
        struct tbd_fd_child *child = &parent->children[i];

        if (child->pid == process->pid && !child->is_recorded) {
            child->is_recorded = true;
            process->made = child->order;
            inherit(in, parent, child->order, false);
            return;
        }
    }
}

static enum tbd_status read_process(struct tbd_descriptors *all, uint32_t index,
                                    const struct tbd_process_row *row)
{
    struct log_reading in = { .all = all, .process = &all->processes[index], .index = index };
    struct tbd_error why;
    enum tbd_status status;

    find_origin(&in, row);
    status = tbd_trace_open(row->path, &in.trace, &why);
    if (status == TBD_NOMEM || in.failed)
        return TBD_NOMEM;
    if (status != TBD_OK) {
        lose(in.process, "its trace cannot be read");
        return TBD_OK;
    }
    status = read_windows(&in);
    in.process->end_order = in.order;
    if (!tbd_trace_info(in.trace)->finished)
        lose(in.process, "it is still being recorded");
    else if (tbd_trace_info(in.trace)->end.how == TBD_ENDED_DETACHED)
        lose(in.process, "it went on without being recorded");
    else if (tbd_trace_info(in.trace)->has_lost_end)
        lose(in.process, "what came after its last window is lost");
    tbd_trace_close(in.trace);
    free(in.left);
    return status;
}

/* ---- processes that are not recorded ---- */

static void admit_other(struct tbd_descriptors *all, const struct tbd_fd_binding *binding)
{
    const struct tbd_fd_end *end = &all->ends[binding->end];

    all->channels[end->in].has_others = true;
    all->channels[end->out].has_others = true;
}

static void admit_others(struct tbd_descriptors *all, const struct tbd_fd_process *process,
                         uint64_t order)
{
    for (size_t fd = 0; fd < process->history_capacity; fd++) {
        const struct tbd_fd_binding *binding = binding_at(process, fd, order);

        if (binding != NULL)
            admit_other(all, binding);
    }
}

/* A process of which not everything is known may have used whatever it ever had. */
static void admit_lossy(struct tbd_descriptors *all, const struct tbd_fd_process *process)
{
    for (size_t fd = 0; fd < process->history_capacity; fd++) {
        for (size_t i = 0; i < process->histories[fd].count; i++)
            admit_other(all, &process->histories[fd].bindings[i]);
    }
}

/* Did a trace go on where this one ended with execve? */
static bool is_continued(const struct tbd_descriptors *all, uint32_t index)
{
    for (uint32_t i = index + 1; i < all->process_count; i++) {
        if (all->processes[i].parent == index && all->processes[i].continues)
            return true;
    }
    return false;
}

static void find_others(struct tbd_descriptors *all)
{
    for (uint32_t i = 0; i < all->process_count; i++) {
        const struct tbd_fd_process *process = &all->processes[i];

        for (size_t k = 0; k < process->child_count; k++) {
            if (!process->children[k].is_recorded)
                admit_others(all, process, process->children[k].order);
        }
        if (process->loss[0] != '\0')
            admit_lossy(all, process);
        if (all->tree.rows[i].ended_by_exec && !is_continued(all, i))
            admit_others(all, process, process->end_order);
    }
}

/* ---- what comes before what ---- */

struct reached {
    const struct tbd_descriptors *all;
    uint64_t *since; /* by process: everything after this order is reached; UINT64_MAX: nothing */
    bool grows;
};

static void reach(struct reached *r, uint32_t process, uint64_t order)
{
    if (order >= r->since[process])
        return;
    r->since[process] = order;
    r->grows = true;
}

/* The process before the programs that it has executed since. */
static const struct tbd_fd_process *first_program(const struct tbd_descriptors *all,
                                                  const struct tbd_fd_process *process)
{
    while (process->continues)
        process = &all->processes[process->parent];
    return process;
}

/* From a process on: to its children, to the program that it executes, and, after its end, to the
 * process that waited for it. */
static void reach_from(struct reached *r, uint32_t index)
{
    const struct tbd_descriptors *all = r->all;
    const struct tbd_fd_process *process = first_program(all, &all->processes[index]);
    const struct tbd_fd_process *parent;

    for (uint32_t i = index + 1; i < all->process_count; i++) {
        const struct tbd_fd_process *other = &all->processes[i];

        if (other->parent == index && other->made != UINT64_MAX && r->since[index] <= other->made)
            reach(r, i, 0);
    }
    if (process->parent == UINT32_MAX)
        return;
    parent = &all->processes[process->parent];
    for (size_t i = 0; i < parent->child_count; i++) {
        const struct tbd_fd_child *child = &parent->children[i];

        if (child->order == process->made && child->reaped != UINT64_MAX)
            reach(r, process->parent, child->reaped);
    }
}

bool tbd_descriptors_precedes(const struct tbd_descriptors *all, uint32_t a, uint64_t a_order,
                              uint32_t b, uint64_t b_order)
{
    struct reached r = { .all = all, .grows = true };
    bool result;

    if (a == b)
        return a_order < b_order;
    r.since = malloc(all->process_count * sizeof(*r.since));
    if (r.since == NULL)
        return false;
    for (uint32_t i = 0; i < all->process_count; i++)
        r.since[i] = i == a ? a_order : UINT64_MAX;
    while (r.grows) {
        r.grows = false;
        for (uint32_t i = 0; i < all->process_count; i++) {
            if (r.since[i] != UINT64_MAX)
                reach_from(&r, i);
        }
    }
    result = r.since[b] < b_order;
    free(r.since);
    return result;
}

/* ---- all ---- */

/* Place 0 of ends and channels stands for none. */
static bool add_none(struct tbd_descriptors *all)
{
    if (!tbd_array_grow(&all->ends, 0, &all->end_capacity, sizeof(*all->ends)) ||
        !tbd_array_grow(&all->channels, 0, &all->channel_capacity, sizeof(*all->channels)))
        return false;
    all->ends[all->end_count++] = (struct tbd_fd_end){ .origin = TBD_FD_ELSEWHERE };
    all->channels[all->channel_count++] = (struct tbd_fd_channel){ .kind = "" };
    return true;
}

static enum tbd_status start_processes(struct tbd_descriptors *all)
{
    all->processes = calloc(all->tree.count + 1, sizeof(*all->processes));
    if (all->processes == NULL || !add_none(all))
        return TBD_NOMEM;
    for (size_t i = 0; i < all->tree.count; i++) {
        const struct tbd_process_row *row = &all->tree.rows[i];

        all->processes[i] = (struct tbd_fd_process){
            .path = row->path,
            .pid = row->pid,
            .parent = row->parent == TBD_NO_PARENT ? UINT32_MAX : (uint32_t)row->parent,
        };
        if (row->is_asked)
            all->asked = (uint32_t)i;
    }
    all->process_count = (uint32_t)all->tree.count;
    return all->asked == UINT32_MAX ? TBD_NOTFOUND : TBD_OK;
}

enum tbd_status tbd_descriptors_read(const struct tbd_trace_info *asked,
                                     struct tbd_descriptors *out)
{
    enum tbd_status status;

    *out = (struct tbd_descriptors){ .asked = UINT32_MAX };
    status = tbd_process_tree_read(asked, NULL, &out->tree);
    if (status == TBD_OK)
        status = start_processes(out);
    for (uint32_t i = 0; status == TBD_OK && i < out->process_count; i++) {
        if (out->tree.rows[i].is_member)
            status = read_process(out, i, &out->tree.rows[i]);
    }
    if (status == TBD_OK)
        find_others(out);
    return status;
}

void tbd_descriptors_free(struct tbd_descriptors *all)
{
    for (uint32_t i = 0; i < all->process_count; i++) {
        struct tbd_fd_process *process = &all->processes[i];

        for (size_t fd = 0; fd < process->history_capacity; fd++)
            free(process->histories[fd].bindings);
        free(process->histories);
        free(process->children);
    }
    free(all->processes);
    free(all->ends);
    free(all->channels);
    free(all->transfers);
    tbd_identities_free(&all->identities);
    tbd_process_tree_free(&all->tree);
    *all = (struct tbd_descriptors){ .asked = UINT32_MAX };
}
