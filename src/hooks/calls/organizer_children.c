// SPDX-License-Identifier: MIT
/* organizer_children.c - see organizer_children.h
 *
 * The engine first asks the kernel which child has something to report (WNOWAIT), then makes the
 * program's call for that child. */
#include "hooks/calls/organizer_children.h"

#include "base/fmt.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/proc.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/threads.h"

enum {
    INFO_PID_AT = offsetof(siginfo_t, si_pid),
    INFO_BYTES = SI_MAX_SIZE,
};
#define WAIT_COMMON ((uint32_t)(WNOHANG | WCONTINUED | __WNOTHREAD | __WALL | __WCLONE))
#define COMM_BYTES  16
#define SIGCHLD_BIT (1ull << (SIGCHLD - 1))

bool tbd_organizer_children_come(void)
{
    uint32_t comes = 0;

    if (tbd_recording.pid == 1)
        return true;
    tbd_sys3(__NR_prctl, PR_GET_CHILD_SUBREAPER, tbd_sys_pointer(&comes), 0);
    return comes;
}

static const char *organizer; /* its path */

void tbd_organizer_children_init(const char *path)
{
    organizer = path[0] ? path : "tbd-organizer";
}

static const char *organizer_name(void)
{
    const char *name = organizer;

    for (const char *at = name; *at; at++)
        if (*at == '/')
            name = at + 1;
    return name;
}

enum who { GONE, ORGANIZER, OTHER };

/* Tells by the name that the kernel keeps for the process until it is reaped. */
static enum who who_is(uint32_t pid)
{
    const char *name = organizer_name();
    char path[32], comm[COMM_BYTES + 1];
    size_t length = strlen(name);
    long got;

    tbd_fmt(path, sizeof(path), "/proc/%u/comm", pid);
    got = tbd_proc_read(path, comm, sizeof(comm));
    length = length < COMM_BYTES - 1 ? length : COMM_BYTES - 1;
    if (got <= 0)
        return GONE;
    return got == (long)length + 1 && comm[length] == '\n' && memcmp(comm, name, length) == 0
               ? ORGANIZER
               : OTHER;
}

static bool is_organizer(uint32_t pid)
{
    return who_is(pid) == ORGANIZER;
}

static void reap(uint32_t pid)
{
    tbd_sys4(__NR_wait4, pid, 0, WNOHANG, 0);
}

static uint32_t pid_in(const uint8_t *info)
{
    uint32_t pid;

    memcpy(&pid, info + INFO_PID_AT, sizeof(pid));
    return pid;
}

/* ---- whose children there are ---- */

/* Returns the next number in the text; 0: none. */
static uint32_t next_pid(const char **text)
{
    uint32_t pid = 0;

    while (**text == ' ')
        ++*text;
    for (; **text >= '0' && **text <= '9'; ++*text)
        pid = pid * 10 + (uint32_t)(**text - '0');
    return pid;
}

#define LIST_BYTES 4096

/* False: the list cannot be read, or not all of it. */
static bool read_list(uint32_t thread, char *text)
{
    char path[64];
    long got;

    tbd_fmt(path, sizeof(path), "/proc/self/task/%u/children", thread);
    got = tbd_proc_read(path, text, LIST_BYTES);
    return got >= 0 && got < LIST_BYTES - 1;
}

/* A list that is read while children come and go can lack some (proc_pid_children(5)): two readings
 * must be the same. */
static bool has_others(uint32_t thread)
{
    char text[LIST_BYTES], again[LIST_BYTES];
    const char *at = text;
    uint32_t pid;

    if (!read_list(thread, text) || !read_list(thread, again) || strcmp(text, again) != 0)
        return true;
    while ((pid = next_pid(&at)) != 0)
        if (!is_organizer(pid))
            return true;
    return false;
}

static bool has_children(void)
{
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++)
        if (tbd_saved_context_at(i)->tid && has_others(tbd_saved_context_at(i)->tid))
            return true;
    return false;
}

/* ---- waiting ---- */

/* The program has the kernel reap its children: nobody is told of their ends, and a wait ends when
 * the last child has. */
static bool are_unwaited(void)
{
    const struct tbd_action *action = &tbd_actions[SIGCHLD];

    return action->handler == (uint64_t)(uintptr_t)SIG_IGN || (action->flags & SA_NOCLDWAIT);
}

static void pause_a_moment(struct tbd_call *call)
{
    static const uint64_t moment[2] = { 0, 2000000 };
    const struct tbd_sys_call sleep = { __NR_nanosleep,
                                        { tbd_sys_pointer(moment), 0, 0, 0, 0, 0 } };

    tbd_call_pause_as(call, &sleep);
}

/* Makes the call that looks, without reaping, at what the program's call would find. */
static bool make_look(const struct tbd_sys_call *sys, uint8_t *info, struct tbd_sys_call *out)
{
    bool is_waitid = sys->number == __NR_waitid;
    uint64_t options = sys->args[is_waitid ? 3 : 2];

    if (is_waitid ? (uint32_t)sys->args[0] != P_ALL : (int32_t)sys->args[0] != -1)
        return false;
    if (is_waitid)
        options = (options & (WAIT_COMMON | WUNTRACED | WEXITED)) | WNOWAIT;
    else
        options = (options & (WAIT_COMMON | WUNTRACED)) | WEXITED | WNOWAIT;
    *out = (struct tbd_sys_call){ __NR_waitid, { P_ALL, 0, tbd_sys_pointer(info), options, 0, 0 } };
    return true;
}

/* Changes the call to wait for this child: an organizer can have ended meanwhile. */
static void wait_for(struct tbd_sys_call *sys, uint32_t pid)
{
    bool is_waitid = sys->number == __NR_waitid;

    sys->args[0] = is_waitid ? P_PID : pid;
    if (is_waitid)
        sys->args[1] = pid;
}

/* Before a call that waits for any child: reaps organizers, and waits until another child has
 * something to report; call->sys names that child from then on.  False: a signal came, and
 * call->result has the call's result. */
static bool look_first(struct tbd_call *call)
{
    uint8_t info[INFO_BYTES];
    struct tbd_sys_call look;
    bool has_wnohang;

    if (!make_look(&call->sys, info, &look))
        return true;
    has_wnohang = look.args[3] & WNOHANG;
    if (are_unwaited())
        look.args[3] |= WNOHANG;
    for (;;) {
        if (!has_children()) {
            call->result = -ECHILD;
            return false;
        }
        memset(info, 0, sizeof(info));
        tbd_call_pause_as(call, &look);
        if (!call->result && !pid_in(info) && !has_wnohang)
            pause_a_moment(call);
        if (call->result == TBD_CALL_INTERRUPTED || call->result == -EINTR)
            return false;
        if (call->result < 0 || (!pid_in(info) && has_wnohang))
            return true;
        /* GONE: the signal handler has reaped it already */
        if (pid_in(info) && who_is(pid_in(info)) == OTHER) {
            wait_for(&call->sys, pid_in(info));
            return true;
        }
        if (pid_in(info))
            reap(pid_in(info));
    }
}

static void wait_for_child(struct tbd_call *call)
{
    struct tbd_sys_call sys = call->sys;

    if (!tbd_organizer_children_come()) {
        tbd_call_plain(call);
        return;
    }
    if (look_first(call))
        tbd_call_described(call);
    call->sys = sys;
    tbd_call_finish(call);
}

void tbd_call_wait4(struct tbd_call *call)
{
    wait_for_child(call);
}

void tbd_call_waitid(struct tbd_call *call)
{
    wait_for_child(call);
}

/* Pending signals of the same kind are merged into one: this one may also stand for another
 * child's. */
bool tbd_organizer_children_sent_sigsafe(uint8_t *info)
{
    static uint32_t told; /* the child of the last signal that was let through */
    uint8_t other[INFO_BYTES] = { 0 };
    uint64_t waiting = 0;

    if (!tbd_organizer_children_come())
        return false;
    if (!is_organizer(pid_in(info))) {
        told = pid_in(info);
        return false;
    }
    reap(pid_in(info));
    tbd_sys3(__NR_rt_sigpending, tbd_sys_pointer(&waiting), sizeof(waiting), 0);
    if (waiting & SIGCHLD_BIT)
        return true;
    tbd_sys6(__NR_waitid, P_ALL, 0, tbd_sys_pointer(other),
             WEXITED | WUNTRACED | WCONTINUED | WNOHANG | WNOWAIT, 0, 0);
    if (!pid_in(other) || pid_in(other) == told || is_organizer(pid_in(other)))
        return true;
    told = pid_in(other);
    memcpy(info, other, sizeof(other));
    return false;
}
