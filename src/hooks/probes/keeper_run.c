// SPDX-License-Identifier: MIT
/* keeper_run.c - see keeper_run.h
 *
 * The child has the keeper's memory, which is the program's, until it executes the file, and a stack of its own; the keeper waits
 * meanwhile.  Descriptors are copied out of the way before they get their numbers. */
#include "hooks/probes/keeper_run.h"

#include "base/string.h"
#include "base/sys.h"

enum { CHILD_BYTES = 16384, OUT_OF_THE_WAY = 64, GIVEN = TBD_PROBE_RUN_STATUS + 1 };

int64_t tbd_spawn_clone(uint64_t flags, uint64_t stack, void (*run)(void *), void *context);

/* ---- packets with descriptors ---- */

struct rights {
    uint64_t length;
    int32_t level, type;
    int32_t fds[TBD_PROBE_RUN_FDS];
};

/* Those for which there is no space the kernel closes. */
long tbd_keeper_receive(int connection, void *packet, uint64_t bytes, struct tbd_keeper_fds *out)
{
    const struct iovec part = { packet, bytes };
    _Alignas(8) struct rights control = { 0 };
    struct tbd_keeper_message message = { .parts = &part,
                                          .part_count = 1,
                                          .control = tbd_sys_pointer(&control),
                                          .control_bytes = sizeof(control) };
    const uint64_t before = offsetof(struct rights, fds);
    long got = tbd_sys3(__NR_recvmsg, (uint64_t)(unsigned)connection, tbd_sys_pointer(&message),
                        MSG_CMSG_CLOEXEC);

    out->count = 0;
    if (got < 0 || message.control_bytes <= before || control.level != SOL_SOCKET ||
        control.type != SCM_RIGHTS)
        return got;
    while (out->count < TBD_PROBE_RUN_FDS &&
           before + (out->count + 1) * sizeof(control.fds[0]) <= control.length) {
        out->all[out->count] = control.fds[out->count];
        out->count++;
    }
    return got;
}

void tbd_keeper_close_fds(struct tbd_keeper_fds *fds)
{
    while (fds->count)
        tbd_sys_close(fds->all[--fds->count]);
}

/* ---- the child ---- */

struct keeper_child {
    const struct tbd_keeper_fds *fds;
    const char *arguments[TBD_PROBE_RUN_TEXTS + 1];
    const char *environment[TBD_PROBE_RUN_TEXTS + 1];
    long wrong; /* -errno of what failed in it */
};

static long copy_fds(const struct tbd_keeper_fds *fds, int *out)
{
    for (uint32_t i = 0; i < fds->count; i++) {
        long copy =
            tbd_sys3(__NR_fcntl, (uint64_t)(unsigned)fds->all[i], F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);

        if (copy < 0)
            return copy;
        out[i] = (int)copy;
    }
    return 0;
}

static long execute(const struct keeper_child *child)
{
    int fds[TBD_PROBE_RUN_FDS] = { 0 };
    long wrong = copy_fds(child->fds, fds);

    for (unsigned i = 0; !wrong && i < GIVEN; i++) {
        long number = tbd_sys3(__NR_dup3, (uint64_t)(unsigned)fds[i], i, 0);

        wrong = number < 0 ? number : 0;
    }
    if (!wrong)
        wrong = tbd_sys3(__NR_fchdir, (uint64_t)(unsigned)fds[TBD_PROBE_RUN_FOLDER], 0, 0);
    if (wrong)
        return wrong;
    return tbd_sys6(__NR_execveat, (uint64_t)(unsigned)fds[TBD_PROBE_RUN_PROGRAM],
                    tbd_sys_pointer(""), tbd_sys_pointer(child->arguments),
                    tbd_sys_pointer(child->environment), AT_EMPTY_PATH, 0);
}

static void run_child(void *context)
{
    struct keeper_child *child = context;

    child->wrong = execute(child);
    tbd_sys_exit_group(0);
}

/* ---- the request ---- */

/* False: they are not as many as it says. */
static bool read_texts(const struct tbd_probe_run *request, uint64_t bytes,
                       struct keeper_child *out)
{
    const char *at = (const char *)(request + 1), *end = (const char *)request + bytes;

    for (uint32_t i = 0; i < request->head.count; i++) {
        if (i < request->arguments)
            out->arguments[i] = at;
        else
            out->environment[i - request->arguments] = at;
        while (at < end && *at)
            at++;
        if (at == end)
            return false;
        at++;
    }
    return at == end;
}

enum tbd_probe_refusal tbd_keeper_run_program(const void *packet, uint64_t bytes,
                                              const struct tbd_keeper_fds *fds)
{
    static _Alignas(16) uint8_t stack[CHILD_BYTES];
    const struct tbd_probe_run *request = packet;
    struct keeper_child child = { .fds = fds };
    int64_t pid;

    if (bytes < sizeof(*request) || fds->count != TBD_PROBE_RUN_FDS ||
        request->head.count > TBD_PROBE_RUN_TEXTS || !request->arguments ||
        request->arguments > request->head.count || !read_texts(request, bytes, &child))
        return TBD_PROBE_BAD_PACKET;
    pid = tbd_spawn_clone(CLONE_VM | CLONE_VFORK | CLONE_UNTRACED,
                          tbd_sys_pointer(stack + sizeof(stack)), run_child, &child);
    return pid < 0 || child.wrong ? TBD_PROBE_NOT_RUN : TBD_PROBE_OK;
}

void tbd_keeper_reap(void)
{
    while (tbd_sys4(__NR_wait4, UINT64_MAX, 0, WNOHANG | __WALL, 0) > 0)
        ;
}
