// SPDX-License-Identifier: MIT
/* descriptors.c - see descriptors.h
 *
 * Processes are read in the order of their start, so a parent is known before its children.  What a
 * child of vfork did before it executed a program is not in any log: the descriptors of that
 * program are not known, and a channel that such a child had an end of has others at its ends.
 *
 * DESCRIPTORS-1  The bindings of a descriptor ascend in order. */
#include "query/channels/descriptors_private.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/binary_search.h"
#include "format/reading/window_read.h"
#include "format/window/window_make.h"
#include "hooks/table/syscalls.h"
#include "query/session/counted_trace.h"
#include "query/text/user_interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* ---- ends ---- */

uint32_t tbd_fd_add_end(struct tbd_log_reading *in, struct tbd_fd_end end)
{
    struct tbd_descriptors *all = in->all;

    if (!tbd_array_grow(&all->ends, all->end_count, &all->end_capacity, sizeof(*all->ends))) {
        in->failed = true;
        return TBD_FD_NO_END;
    }
    end.process = in->index;
    if (end.origin != TBD_FD_OUTSIDE) {
        end.made = in->order;
        end.number = in->number;
    }
    all->ends[all->end_count] = end;
    return (uint32_t)all->end_count++;
}

/* ---- tables of descriptors ---- */

void tbd_fd_bind(struct tbd_log_reading *in, struct tbd_fd_process *process, uint64_t fd,
                 struct tbd_fd_binding binding)
{
    struct tbd_fd_history *history;

    if (fd >= TBD_FD_MAX)
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

/* ---- calls ---- */

static struct tbd_fd_act *add_act(struct tbd_log_reading *in)
{
    struct tbd_fd_process *process = in->process;
    struct tbd_fd_act *act;

    if (!tbd_array_grow(&process->acts, process->act_count, &process->act_capacity,
                        sizeof(*process->acts))) {
        in->failed = true;
        return NULL;
    }
    act = &process->acts[process->act_count++];
    *act = (struct tbd_fd_act){
        .order = in->order, .number = in->number, .time = in->time, .thread = in->thread
    };
    act->window = in->window == NULL ? UINT32_MAX : in->window->index;
    return act;
}

const struct tbd_fd_act *tbd_fd_act_of(const struct tbd_fd_process *process, uint64_t order)
{
    size_t i = TBD_COUNT_BEFORE(k, process->act_count, process->acts[k].order < order);

    return i < process->act_count && process->acts[i].order == order ? &process->acts[i] : NULL;
}

/* A call may change several descriptors. */
static void note_act(struct tbd_log_reading *in)
{
    const struct tbd_fd_process *process = in->process;

    if (process->act_count == 0 || process->acts[process->act_count - 1].order != in->order)
        (void)add_act(in);
}

void tbd_fd_bind_new(struct tbd_log_reading *in, uint64_t fd, uint32_t end, bool closes_on_exec)
{
    note_act(in);
    tbd_fd_bind(in, in->process, fd,
                (struct tbd_fd_binding){
                    .order = in->order, .end = end, .closes_on_exec = closes_on_exec });
}

const struct tbd_fd_binding *tbd_fd_binding_at(const struct tbd_fd_process *process, uint64_t fd,
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

/* The descriptors that a process has inherited; those that close on exec as `is_exec` says. */
static void inherit(struct tbd_log_reading *in, const struct tbd_fd_process *from, uint64_t order,
                    bool is_exec)
{
    for (size_t fd = 0; fd < from->history_capacity; fd++) {
        const struct tbd_fd_binding *found = tbd_fd_binding_at(from, fd, order);
        struct tbd_fd_binding binding;

        if (found == NULL)
            continue;
        binding = *found;
        if (is_exec && binding.closes_on_exec)
            binding.end = TBD_FD_NO_END;
        binding.order = 0;
        tbd_fd_bind(in, in->process, fd, binding);
    }
    in->process->is_open_before = from->is_open_before;
}

/* ---- messages ---- */

/* Did the call make the descriptor, or its connection?  If not, the program was started with it. */
static bool makes(const struct tbd_msg_syscall *call, uint32_t descriptor)
{
    uint64_t made = call->number == SYS_connect ? call->args[0] : call->result;

    return (tbd_syscall_flags(call->number) & (TBD_SYS_OPENS | TBD_SYS_CONNECTS)) != 0 &&
           (uint32_t)made == descriptor;
}

/* What the window's list says of the call that is being read.  Binds what the program was started with. */
static const struct tbd_opened *
opened_by(struct tbd_log_reading *in, const struct tbd_msg_syscall *message, struct tbd_opened *out)
{
    const struct tbd_opened *found = NULL;
    struct tbd_opened item;
    size_t next = in->opened;

    while (tbd_opened_next(in->window, &next, &item) && item.call <= in->message) {
        in->opened = next;
        if (item.call == in->message && makes(message, item.what.descriptor)) {
            *out = item;
            found = out;
        } else if (item.call == in->message) {
            tbd_fd_take_inherited(in, &item);
        }
    }
    return found;
}

/* A call said EBADF: of its descriptors the one that is not open, as far as is known. */
static void take_bad(struct tbd_log_reading *in, const struct tbd_msg_syscall *message)
{
    struct tbd_fd_act *act;
    bool has_any = false;
    uint32_t bad = 0;

    for (unsigned i = 0; i < 6; i++) {
        uint32_t fd = (uint32_t)message->args[i];
        const struct tbd_fd_binding *found = tbd_fd_binding_at(in->process, fd, in->order);

        if (!tbd_syscall_is_descriptor(message->number, i) || fd == (uint32_t)AT_FDCWD)
            continue;
        if (!has_any)
            bad = fd;
        has_any = true;
        if (found != NULL && found->end == TBD_FD_NO_END) {
            bad = fd;
            break;
        }
    }
    act = has_any ? add_act(in) : NULL;
    if (act == NULL)
        return;
    act->is_bad = true;
    act->bad = bad;
}

static void take_syscall(struct tbd_log_reading *in, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_fd_call call = { .payload = payload, .bytes = bytes };
    struct tbd_msg_syscall message;
    struct tbd_opened opened;

    memcpy(&message, payload, sizeof(message));
    in->number = message.number;
    call.opened = opened_by(in, &message, &opened);
    if ((message.flags & (TBD_SYSCALL_CONTINUED | TBD_SYSCALL_REFUSED)) != 0)
        return;
    if ((int64_t)message.result == -EBADF)
        take_bad(in, &message);
    if (!tbd_fd_call_matters(message.number, (int64_t)message.result))
        return;
    call.number = message.number;
    call.result = (int64_t)message.result;
    memcpy(call.args, message.args, sizeof(call.args));
    if (!in->is_resumed) {
        in->began = in->time;
        in->began_order = in->order;
    }
    tbd_fd_call_take(in, &call);
}

static uint64_t *left_order(struct tbd_log_reading *in, uint32_t thread)
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

static void take_switch(struct tbd_log_reading *in, const struct tbd_msg_thread *message)
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

static void take_thread(struct tbd_log_reading *in, const struct tbd_message *message)
{
    struct tbd_msg_thread thread = tbd_thread_message(message);
    struct tbd_fd_process *process = in->process;

    if (thread.event == TBD_THREAD_SWITCH)
        take_switch(in, &thread);
    if (thread.event == TBD_THREAD_START && process->child_count != 0 &&
        process->children[process->child_count - 1].pid == thread.thread)
        process->child_count--;
}

static void take_message(struct tbd_log_reading *in, const struct tbd_log_entry *entry)
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
static void forget_bindings(struct tbd_log_reading *in)
{
    lose(in->process, "one of its windows cannot be read");
    in->window = NULL;
    in->process->is_open_before = true;
    in->is_resumed = false;
    in->order++;
    for (size_t fd = 0; fd < in->process->history_capacity; fd++) {
        if (in->process->histories[fd].count != 0)
            tbd_fd_bind_new(
                in, fd, tbd_fd_add_end(in, (struct tbd_fd_end){ .origin = TBD_FD_OUTSIDE }), false);
    }
}

static void read_window(struct tbd_log_reading *in, const struct tbd_window *window)
{
    in->window = window;
    in->opened = 0;
    in->thread = window->regs.thread;
    for (in->message = 0; in->message < window->log_count && !in->failed; in->message++)
        take_message(in, &window->log[in->message]);
}

static enum tbd_status read_windows(struct tbd_log_reading *in)
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
static void find_origin(struct tbd_log_reading *in, const struct tbd_process_row *row)
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
    struct tbd_log_reading in = { .all = all, .process = &all->processes[index], .index = index };
    struct tbd_error why;
    enum tbd_status status;

    find_origin(&in, row);
    status = tbd_counted_trace_open(row->path, &in.trace, &why);
    if (status == TBD_NOMEM || in.failed)
        return TBD_NOMEM;
    if (status != TBD_OK) {
        lose(in.process,
             status == TBD_BUSY ? "it is still being recorded" : "its trace cannot be read");
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
        const struct tbd_fd_binding *binding = tbd_fd_binding_at(process, fd, order);

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

/* Place 0 of ends, channels and files stands for none. */
static bool add_none(struct tbd_descriptors *all)
{
    if (!tbd_array_reserve(&all->names, 1, &all->name_capacity, 1) ||
        !tbd_array_grow(&all->ends, 0, &all->end_capacity, sizeof(*all->ends)) ||
        !tbd_array_grow(&all->files, 0, &all->file_capacity, sizeof(*all->files)) ||
        !tbd_array_grow(&all->channels, 0, &all->channel_capacity, sizeof(*all->channels)))
        return false;
    all->names[all->name_bytes++] = '\0';
    all->ends[all->end_count++] = (struct tbd_fd_end){ .origin = TBD_FD_ELSEWHERE };
    all->channels[all->channel_count++] = (struct tbd_fd_channel){ .kind = "" };
    all->files[all->file_count++] = (struct tbd_fd_file){ .spoiled = NULL };
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
    for (uint32_t i = 0; status == TBD_OK && out->has_inherited && i < out->process_count; i++) {
        if (out->tree.rows[i].is_beside)
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
        free(process->acts);
        free(process->children);
    }
    free(all->processes);
    free(all->ends);
    free(all->channels);
    free(all->transfers);
    free(all->files);
    free(all->file_calls);
    free(all->names);
    tbd_identities_free(&all->identities);
    tbd_process_tree_free(&all->tree);
    *all = (struct tbd_descriptors){ .asked = UINT32_MAX };
}
