// SPDX-License-Identifier: MIT
/* descriptor_calls.c - what each system call does to descriptors, ends, channels and files (descriptors.h) */
#include "query/channels/descriptors_private.h"

#include "base/array.h"
#include "base/linux.h"
#include "format/window/window_make.h"
#include "hooks/table/syscalls.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- channels and descriptors ---- */

static uint32_t add_channel(struct tbd_log_reading *in, const char *kind, bool is_messages)
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

/* A descriptor that was open before the log began gets an end when it is first seen.  Then it is bound
 * from the start, which keeps DESCRIPTORS-1: it has no bindings. */
static struct tbd_fd_binding look_up(struct tbd_log_reading *in, uint64_t fd, uint64_t order)
{
    const struct tbd_fd_binding *found = tbd_fd_binding_at(in->process, fd, order);
    struct tbd_fd_binding binding = { .end = TBD_FD_NO_END };

    if (found != NULL)
        return *found;
    if (!in->process->is_open_before || fd >= TBD_FD_MAX ||
        (fd < in->process->history_capacity && in->process->histories[fd].count != 0))
        return binding;
    binding.end = tbd_fd_add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_OUTSIDE });
    tbd_fd_bind(in, in->process, fd, binding);
    return binding;
}

/* ---- what calls do ---- */

/* Bytes that the kernel wrote at `address`; false: the log does not have them. */
static bool written_at(const struct tbd_fd_call *call, uint64_t address, void *out, size_t bytes)
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

static void do_pipe(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    uint64_t flags = call->number == SYS_pipe2 ? call->args[1] : 0;
    uint32_t channel = add_channel(in, "a pipe", (flags & O_DIRECT) != 0);
    int fds[2];

    if (!written_at(call, call->args[0], fds, sizeof(fds)))
        return;
    tbd_fd_bind_new(
        in, (uint32_t)fds[0],
        tbd_fd_add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_CHANNEL, .in = channel }),
        closes_on_exec(flags));
    tbd_fd_bind_new(
        in, (uint32_t)fds[1],
        tbd_fd_add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_CHANNEL, .out = channel }),
        closes_on_exec(flags));
}

static void do_socketpair(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    bool is_messages = (call->args[1] & 0xf) != SOCK_STREAM;
    uint32_t one = add_channel(in, "a socket pair", is_messages);
    uint32_t other = add_channel(in, "a socket pair", is_messages);
    int fds[2];

    if (!written_at(call, call->args[3], fds, sizeof(fds)))
        return;
    tbd_fd_bind_new(
        in, (uint32_t)fds[0],
        tbd_fd_add_end(in, (struct tbd_fd_end){ TBD_FD_CHANNEL, .in = one, .out = other }),
        closes_on_exec(call->args[1]));
    tbd_fd_bind_new(
        in, (uint32_t)fds[1],
        tbd_fd_add_end(in, (struct tbd_fd_end){ TBD_FD_CHANNEL, .in = other, .out = one }),
        closes_on_exec(call->args[1]));
}

static void do_dup(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    struct tbd_fd_binding from = look_up(in, (uint32_t)call->args[0], in->order);
    bool closes = call->number == SYS_dup3 && closes_on_exec(call->args[2]);

    if (call->number == SYS_dup2 && (uint32_t)call->args[0] == (uint32_t)call->args[1])
        return;
    tbd_fd_bind_new(in, (uint64_t)call->result, from.end, closes);
}

static void do_fcntl(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    struct tbd_fd_binding from = look_up(in, (uint32_t)call->args[0], in->order);
    uint32_t command = (uint32_t)call->args[1];

    if (command == F_SETFL && from.end != TBD_FD_NO_END)
        in->all->ends[from.end].appends = (call->args[2] & O_APPEND) != 0;
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        tbd_fd_bind_new(in, (uint64_t)call->result, from.end, command == F_DUPFD_CLOEXEC);
    else if (command == F_SETFD)
        tbd_fd_bind_new(in, (uint32_t)call->args[0], from.end, (call->args[2] & FD_CLOEXEC) != 0);
    else if (command == F_SETFL && (call->args[2] & O_DIRECT) != 0 &&
             in->all->ends[from.end].out != 0)
        in->all->channels[in->all->ends[from.end].out].spoiled = "it became a pipe of packets";
}

static void do_ioctl(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    struct tbd_fd_binding from = look_up(in, (uint32_t)call->args[0], in->order);

    if (call->args[1] == FIOCLEX || call->args[1] == FIONCLEX)
        tbd_fd_bind_new(in, (uint32_t)call->args[0], from.end, call->args[1] == FIOCLEX);
}

/* Linux closes the descriptor also when it says that something else failed. */
static void do_close(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    if (call->result != -EBADF)
        tbd_fd_bind_new(in, (uint32_t)call->args[0], TBD_FD_NO_END, false);
}

static void do_close_range(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    uint32_t first = (uint32_t)call->args[0], last = (uint32_t)call->args[1];
    bool only_marks = (call->args[2] & CLOSE_RANGE_CLOEXEC) != 0;

    for (uint64_t fd = first; fd <= last && fd < in->process->history_capacity; fd++) {
        const struct tbd_fd_binding *found = tbd_fd_binding_at(in->process, fd, in->order);

        if (found != NULL && found->end != TBD_FD_NO_END)
            tbd_fd_bind_new(in, fd, only_marks ? found->end : TBD_FD_NO_END, only_marks);
    }
}

/* O_CLOEXEC and O_APPEND of the calls that make a descriptor; those of openat2 are in memory, and not known. */
static uint64_t open_flags(const struct tbd_fd_call *call)
{
    switch (call->number) {
    case SYS_epoll_create1:
    case SYS_inotify_init1:
    case SYS_userfaultfd: return call->args[0];
    case SYS_open:
    case SYS_socket:
    case SYS_eventfd2:
    case SYS_timerfd_create:
    case SYS_mq_open: return call->args[1];
    case SYS_openat: return call->args[2];
    case SYS_accept4:
    case SYS_signalfd4: return call->args[3];
    case SYS_memfd_create: return (call->args[1] & MFD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
    case SYS_pidfd_open:
    case SYS_io_uring_setup: return O_CLOEXEC; /* always */
    default: return 0;
    }
}

/* The channel, or the first of the connection's two, that the call's descriptor leads to. */
static uint32_t named_channel(struct tbd_log_reading *in, const struct tbd_fd_call *call,
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
static struct tbd_fd_end end_of_connection(struct tbd_log_reading *in,
                                           const struct tbd_fd_call *call, bool accepts)
{
    bool is_unix =
        call->opened->what.local_bytes >= sizeof(sa_family_t) && call->opened->local[0] == AF_UNIX;
    uint32_t first = named_channel(in, call, accepts ? TBD_IDENTITY_ACCEPTS : TBD_IDENTITY_CONNECTS,
                                   is_unix ? "a Unix socket" : "a TCP connection");

    return (struct tbd_fd_end){ .origin = TBD_FD_CHANNEL,
                                .in = accepts ? first : first + 1,
                                .out = accepts ? first + 1 : first,
                                .name = tbd_fd_socket_name(in, call->opened) };
}

/* A connection that is still being made (EINPROGRESS) has its names already. */
static void do_connect(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    struct tbd_fd_binding binding = look_up(in, (uint32_t)call->args[0], in->order);

    struct tbd_fd_end *end, made;

    if (call->opened == NULL || binding.end == TBD_FD_NO_END ||
        in->all->ends[binding.end].origin == TBD_FD_CHANNEL)
        return;
    made = end_of_connection(in, call, false);
    end = &in->all->ends[binding.end];
    made.process = end->process;
    made.made = end->made;
    made.number = end->number;
    *end = made;
}

void tbd_fd_take_inherited(struct tbd_log_reading *in, const struct tbd_opened *opened)
{
    struct tbd_fd_call call = { .opened = opened };
    uint32_t fd = opened->what.descriptor, channel;
    struct tbd_fd_binding binding = { .order = 0 };

    if (!S_ISFIFO(opened->what.mode) || tbd_fd_binding_at(in->process, fd, in->order) != NULL)
        return;
    channel = named_channel(in, &call, TBD_IDENTITY_ONE, "a pipe");
    binding.end = tbd_fd_add_end(
        in, (struct tbd_fd_end){ .origin = TBD_FD_CHANNEL, .in = channel, .out = channel });
    if (in->failed)
        return;
    in->all->ends[binding.end].made = 0;
    in->all->has_inherited = true;
    tbd_fd_bind(in, in->process, fd, binding);
}

static struct tbd_fd_end end_of_file(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    struct tbd_descriptors *all = in->all;
    uint32_t *number =
        tbd_identities_find(&all->identities, call->opened, TBD_IDENTITY_ONE, in->process->pid);

    if (number == NULL ||
        !tbd_array_grow(&all->files, all->file_count, &all->file_capacity, sizeof(*all->files))) {
        in->failed = true;
        return (struct tbd_fd_end){ .origin = TBD_FD_ELSEWHERE };
    }
    if (*number == 0) {
        all->files[all->file_count] = (struct tbd_fd_file){ .spoiled = NULL };
        *number = (uint32_t)all->file_count++;
    }
    return (struct tbd_fd_end){ .origin = TBD_FD_FILE,
                                .file = *number,
                                .appends = (open_flags(call) & O_APPEND) != 0 };
}

/* What a new descriptor leads to: a file, a FIFO, a connection, or something else. */
static struct tbd_fd_end new_end(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    uint32_t channel;

    if (call->opened == NULL)
        return (struct tbd_fd_end){ .origin = TBD_FD_ELSEWHERE };
    if (call->number == SYS_accept || call->number == SYS_accept4)
        return end_of_connection(in, call, true);
    if (S_ISREG(call->opened->what.mode))
        return end_of_file(in, call);
    if (!S_ISFIFO(call->opened->what.mode))
        return (struct tbd_fd_end){ .origin = TBD_FD_ELSEWHERE };
    channel = named_channel(in, call, TBD_IDENTITY_ONE, "a FIFO");
    return (struct tbd_fd_end){ .origin = TBD_FD_CHANNEL, .in = channel, .out = channel };
}

/* A thread is a child at first, too: its START message follows. */
static void do_fork(struct tbd_log_reading *in, const struct tbd_fd_call *call)
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
static void do_wait(struct tbd_log_reading *in, const struct tbd_fd_call *call)
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
    uint8_t offset; /* the argument with the place in a file; 0: none */
} transfers[TBD_SYS_COUNT] = {
    [SYS_read] = { false, 0, TBD_FD_PLAIN, 0 },     [SYS_readv] = { false, 0, TBD_FD_IOVEC, 0 },
    [SYS_pread64] = { false, 0, TBD_FD_PLAIN, 3 },  [SYS_preadv] = { false, 0, TBD_FD_IOVEC, 3 },
    [SYS_preadv2] = { false, 0, TBD_FD_IOVEC, 3 },  [SYS_recvfrom] = { false, 3, TBD_FD_PLAIN, 0 },
    [SYS_recvmsg] = { false, 2, TBD_FD_MSGHDR, 0 }, [SYS_write] = { true, 0, TBD_FD_PLAIN, 0 },
    [SYS_writev] = { true, 0, TBD_FD_IOVEC, 0 },    [SYS_pwrite64] = { true, 0, TBD_FD_PLAIN, 3 },
    [SYS_pwritev] = { true, 0, TBD_FD_IOVEC, 3 },   [SYS_pwritev2] = { true, 0, TBD_FD_IOVEC, 3 },
    [SYS_sendto] = { true, 3, TBD_FD_PLAIN, 0 },    [SYS_sendmsg] = { true, 2, TBD_FD_MSGHDR, 0 },
};

static struct tbd_fd_transfer transfer_of(const struct tbd_log_reading *in,
                                          const struct tbd_fd_call *call, uint32_t end)
{
    const struct fd_transfer_rule *rule = &transfers[call->number];

    return (struct tbd_fd_transfer){ .process = in->index,
                                     .thread = in->thread,
                                     .end = end,
                                     .is_write = rule->is_write,
                                     .layout = rule->layout,
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

static void add_file_call(struct tbd_log_reading *in, const struct tbd_fd_call *call, uint32_t end,
                          enum tbd_fd_file_act act, uint64_t offset)
{
    struct tbd_descriptors *all = in->all;

    if (all->ends[end].file == 0)
        return;
    if (!tbd_array_grow(&all->file_calls, all->file_call_count, &all->file_call_capacity,
                        sizeof(*all->file_calls))) {
        in->failed = true;
        return;
    }
    all->file_calls[all->file_call_count++] =
        (struct tbd_fd_file_call){ .transfer = transfer_of(in, call, end),
                                   .file = all->ends[end].file,
                                   .act = act,
                                   .appends = all->ends[end].appends,
                                   .offset = offset };
}

/* A call that moved no bytes has changed nothing in a file; in a channel of messages it has. */
static void add_transfer(struct tbd_log_reading *in, const struct tbd_fd_call *call, uint64_t flags)
{
    const struct fd_transfer_rule *rule = &transfers[call->number];
    struct tbd_descriptors *all = in->all;
    uint32_t number = look_up(in, (uint32_t)call->args[0], in->began_order).end;
    const struct tbd_fd_end *end = &all->ends[number];
    uint32_t channel = rule->is_write ? end->out : end->in;

    if (number == TBD_FD_NO_END || end->origin == TBD_FD_ELSEWHERE || call->result < 0)
        return;
    if (end->file != 0) {
        if (call->result != 0)
            add_file_call(in, call, number, rule->is_write ? TBD_FD_FILE_WRITTEN : TBD_FD_FILE_READ,
                          rule->offset == 0 ? TBD_FD_HERE : call->args[rule->offset]);
        return;
    }
    if (channel != 0 && (flags & (MSG_OOB | MSG_ERRQUEUE)) != 0)
        all->channels[channel].spoiled = "out-of-band data went through it";
    if (!tbd_array_grow(&all->transfers, all->transfer_count, &all->transfer_capacity,
                        sizeof(*all->transfers))) {
        in->failed = true;
        return;
    }
    all->transfers[all->transfer_count] = transfer_of(in, call, number);
    all->transfers[all->transfer_count].channel = channel;
    all->transfers[all->transfer_count++].peeks = !rule->is_write && (flags & MSG_PEEK) != 0;
}

static void do_open(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    uint32_t end = tbd_fd_add_end(in, new_end(in, call));

    tbd_fd_bind_new(in, (uint64_t)call->result, end, closes_on_exec(open_flags(call)));
    if (call->opened != NULL)
        add_file_call(in, call, end, TBD_FD_FILE_OPENED, call->opened->what.size);
}

static void do_seek(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    add_file_call(in, call, look_up(in, (uint32_t)call->args[0], in->began_order).end,
                  TBD_FD_FILE_SOUGHT, (uint64_t)call->result);
}

static void do_cut(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    add_file_call(in, call, look_up(in, (uint32_t)call->args[0], in->began_order).end,
                  TBD_FD_FILE_CUT, call->args[1]);
}

static void spoil_file(struct tbd_log_reading *in, uint64_t fd, const char *why)
{
    uint32_t file = in->all->ends[look_up(in, (uint32_t)fd, in->began_order).end].file;

    if (file != 0)
        in->all->files[file].spoiled = why;
}

/* Holes may be punched. */
static void do_allocate(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    if (call->args[1] != 0)
        spoil_file(in, call->args[0], "fallocate changed it");
}

static void do_map(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    bool is_shared = (call->args[3] & MAP_TYPE) != MAP_PRIVATE;

    if (is_shared && (call->args[3] & MAP_ANONYMOUS) == 0 && (call->args[2] & PROT_WRITE) != 0)
        spoil_file(in, call->args[4], "it was mapped, shared and writable");
}

/* Descriptors in a message: their numbers are in the control data that the kernel wrote. */
static void take_passed(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    uint64_t flags = call->args[call->number == SYS_recvmmsg ? 3 : 2];
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
            tbd_fd_bind_new(in, (uint32_t)fd,
                            tbd_fd_add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_PASSED }),
                            (flags & MSG_CMSG_CLOEXEC) != 0);
        }
    }
}

static void do_transfer(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    const struct fd_transfer_rule *rule = &transfers[call->number];

    add_transfer(in, call, rule->flags == 0 ? 0 : call->args[rule->flags]);
    if (call->number == SYS_recvmsg && call->result >= 0)
        take_passed(in, call);
}

static void spoil(struct tbd_log_reading *in, uint64_t fd, const char *why)
{
    const struct tbd_fd_end *end = &in->all->ends[look_up(in, (uint32_t)fd, in->began_order).end];

    if (end->in != 0)
        in->all->channels[end->in].spoiled = why;
    if (end->out != 0)
        in->all->channels[end->out].spoiled = why;
}

static void do_splice(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    static const char why[] = "splice, tee or sendfile moved bytes through it";

    if (call->result <= 0)
        return;
    spoil(in, call->args[0], why);
    if (call->number != SYS_vmsplice)
        spoil(in, call->args[call->number == SYS_splice ? 2 : 1], why);
    if (call->number != SYS_tee && call->number != SYS_vmsplice)
        spoil_file(in, call->args[call->number == SYS_splice ? 2 : 0], why);
}

static void do_copy(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    if (call->result > 0)
        spoil_file(in, call->args[2], "copy_file_range wrote to it");
}

static void do_many_messages(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    if (call->result > 0)
        spoil(in, call->args[0], "recvmmsg or sendmmsg moved messages through it");
    if (call->result > 0 && call->number == SYS_recvmmsg)
        take_passed(in, call);
}

static void do_async(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    in->all->has_async = true;
    if (call->number == SYS_io_uring_setup)
        do_open(in, call);
}

/* It may only give the descriptor other signals. */
static void do_signalfd(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    if ((int32_t)call->args[0] == -1)
        do_open(in, call);
}

/* Another process's descriptor is like one that came in a message. */
static void do_getfd(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    in->all->has_passing = true;
    tbd_fd_bind_new(in, (uint64_t)call->result,
                    tbd_fd_add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_PASSED }), true);
}

/* Calls that open, move or close descriptors, or move bytes through them.  Those marked with `fails`
 * matter also if they failed. */
static const struct {
    void (*act)(struct tbd_log_reading *in, const struct tbd_fd_call *call);
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
    [SYS_signalfd] = { do_signalfd, false },
    [SYS_signalfd4] = { do_signalfd, false },
    [SYS_timerfd_create] = { do_open, false },
    [SYS_inotify_init] = { do_open, false },
    [SYS_inotify_init1] = { do_open, false },
    [SYS_memfd_create] = { do_open, false },
    [SYS_memfd_secret] = { do_open, false },
    [SYS_userfaultfd] = { do_open, false },
    [SYS_perf_event_open] = { do_open, false },
    [SYS_fanotify_init] = { do_open, false },
    [SYS_mq_open] = { do_open, false },
    [SYS_pidfd_open] = { do_open, false },
    [SYS_pidfd_getfd] = { do_getfd, false },
    [SYS_fork] = { do_fork, false },
    [SYS_vfork] = { do_fork, false },
    [SYS_clone] = { do_fork, false },
    [SYS_clone3] = { do_fork, false },
    [SYS_wait4] = { do_wait, false },
    [SYS_lseek] = { do_seek, false },
    [SYS_ftruncate] = { do_cut, false },
    [SYS_fallocate] = { do_allocate, false },
    [SYS_mmap] = { do_map, false },
    [SYS_copy_file_range] = { do_copy, false },
    [SYS_pread64] = { do_transfer, false },
    [SYS_preadv] = { do_transfer, false },
    [SYS_pwrite64] = { do_transfer, false },
    [SYS_pwritev] = { do_transfer, false },
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

bool tbd_fd_call_matters(uint64_t number, int64_t result)
{
    return number < TBD_SYS_COUNT && calls[number].act != NULL &&
           (result >= 0 || calls[number].fails);
}

void tbd_fd_call_take(struct tbd_log_reading *in, const struct tbd_fd_call *call)
{
    calls[call->number].act(in, call);
}
