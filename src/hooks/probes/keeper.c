// SPDX-License-Identifier: MIT
/* keeper.c - see keeper.h
 *
 *   waiting --accept--> (credentials) --OPEN, CODE, PLACE--> placed --START--> active
 *      ^                                                                          |
 *      +-- memory given back <-- nobody inside <-- traps gone <-- STOP, connection closed
 *
 * The program's end shows at its pidfd.  An execve does not: the keeper, which then holds the old memory,
 * looks for it from time to time, and at each connection.
 *
 * KEEPER-1  Only the keeper's own user, or root, is listened to. (not checked: is_allowed() asks the kernel)
 * KEEPER-2  Traps are placed only while no thread of the program blocks SIGTRAP: the kernel would end the
 *     program. (not checked: thread_masks.h reads it from /proc) */
#include "hooks/probes/keeper.h"

#include "base/fmt.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/proc.h"
#include "hooks/probes/handlers.h"
#include "hooks/probes/keeper_run.h"
#include "hooks/probes/placing.h"
#include "hooks/probes/probe_session.h"
#include "hooks/probes/probe_uses.h"
#include "hooks/probes/session_memory.h"
#include "hooks/probes/thread_masks.h"
#include "hooks/probes/trap.h"

#define LOOK_MS     5000
#define TRIES       200
#define TRY_MS      5
#define LEAVE_MS    20
#define BACKLOG     8
#define FOLLOWER_MS 20

struct keeper_credentials {
    uint32_t pid, uid, gid;
};

static struct {
    uint32_t program;
    int listener;
    int pidfd;
    uint64_t memory_mark; /* differs after an execve; 0: not known */
    uint32_t has_begun;   /* futex: the program need not wait any more */
    bool leaves;
    char address[TBD_PROBE_ADDRESS_BYTES];
} keeper;

static _Alignas(8) uint8_t packet[TBD_PROBE_PACKET_BYTES];

/* ---- facts about the program ---- */

/* Field `index` of /proc/PID/stat, counted from 1 as in proc(5); the name before may have spaces. */
static uint64_t stat_field(unsigned index)
{
    char path[64], text[2048];
    const char *at = text;
    uint64_t value = 0;
    unsigned field = 2;

    tbd_fmt(path, sizeof(path), "/proc/%u/stat", keeper.program);
    if (tbd_proc_read(path, text, sizeof(text)) <= 0)
        return 0;
    for (const char *end = text; *end; end++)
        if (*end == ')')
            at = end;
    for (; *at && field < index; at++)
        field += *at == ' ';
    tbd_proc_decimal(at, &value);
    return value;
}

#define FIELD_ARG_START 48

static bool executes_another(void)
{
    uint64_t now = stat_field(FIELD_ARG_START);

    return keeper.memory_mark && now && now != keeper.memory_mark;
}

/* ---- the session's end ---- */

static void end_session(void)
{
    struct tbd_probe_session *session = &tbd_probe_session;

    if (!session->shared)
        return;
    __atomic_store_n(&session->active, 0, __ATOMIC_SEQ_CST);
    tbd_placing_clear();
}

static void let_begin(void)
{
    __atomic_store_n(&keeper.has_begun, 1, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&keeper.has_begun);
}

/* The consumer reads no more. */
static void forget_session(void)
{
    struct tbd_probe_session *session = &tbd_probe_session;

    if (!session->shared)
        return;
    __atomic_store_n(&session->shared->closed, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&session->shared->space, 1, __ATOMIC_SEQ_CST);
    tbd_sys_futex_wake(&session->shared->space);
    end_session();
    if (tbd_uses_await_quiet())
        tbd_session_memory_give_back();
}

/* ---- requests ---- */

static bool fits(const struct tbd_probe_head *head, long bytes, uint64_t fixed, uint64_t each)
{
    return head->count <= TBD_PROBE_PER_PACKET && (uint64_t)bytes == fixed + head->count * each;
}

static struct tbd_probe_reply refuse(enum tbd_probe_refusal refusal, uint32_t index)
{
    return (struct tbd_probe_reply){ .refusal = refusal, .index = index };
}

static struct tbd_probe_reply open_session(long bytes, int *out_fd)
{
    const struct tbd_probe_open *request = (const struct tbd_probe_open *)(void *)packet;
    struct tbd_probe_reply reply;
    enum tbd_probe_refusal refusal;

    if (tbd_probe_session.shared)
        return refuse(TBD_PROBE_BUSY, 0);
    if ((uint64_t)bytes != sizeof(*request) ||
        !tbd_probe_check_maps(request->maps, request->head.count))
        return refuse(TBD_PROBE_BAD_PACKET, 0);
    if (request->version != TBD_PROBE_VERSION)
        return refuse(TBD_PROBE_OTHER_VERSION, 0);
    reply = tbd_thread_masks_refuse_still(keeper.program);
    if (reply.refusal != TBD_PROBE_OK)
        return reply;
    refusal = tbd_placing_begin();
    if (refusal == TBD_PROBE_OK)
        refusal = tbd_session_memory_make(request, out_fd);
    if (refusal != TBD_PROBE_OK)
        return refuse(refusal, 0);
    tbd_trap_begin();
    return (struct tbd_probe_reply){ .detail = tbd_probe_session.shared_bytes };
}

static struct tbd_probe_reply take_code(long bytes)
{
    struct tbd_probe_session *session = &tbd_probe_session;
    const struct tbd_probe_head *head = (const struct tbd_probe_head *)(void *)packet;
    uint32_t wrong;

    if (!fits(head, bytes, sizeof(*head), sizeof(*session->code)) ||
        head->count > TBD_PROBE_MAX_CODE - session->code_count)
        return refuse(TBD_PROBE_BAD_PACKET, 0);
    memcpy(session->code + session->code_count, packet + sizeof(*head),
           head->count * sizeof(*session->code));
    wrong = tbd_probe_check_code(session->code + session->code_count, head->count, session->maps,
                                 session->map_count);
    if (wrong != head->count)
        return refuse(TBD_PROBE_BAD_CODE, wrong);
    session->code_count += head->count;
    return refuse(TBD_PROBE_OK, 0);
}

/* How many probes are reached by a jump now. */
static uint32_t put_jumps(void)
{
    if (tbd_probe_session.flags & TBD_PROBE_TRAPS)
        return 0;
    tbd_handlers_begin();
    return tbd_placing_jump();
}

static struct tbd_probe_reply place(long bytes)
{
    const struct tbd_probe_head *head = (const struct tbd_probe_head *)(void *)packet;
    const struct tbd_probe_place *places =
        (const struct tbd_probe_place *)(void *)(packet + sizeof(*head));
    enum tbd_probe_refusal refusal;

    if (!fits(head, bytes, sizeof(*head), sizeof(*places)))
        return refuse(TBD_PROBE_BAD_PACKET, 0);
    refusal = tbd_placing_look();
    for (uint32_t i = 0; i < head->count && refusal == TBD_PROBE_OK; i++) {
        refusal = places[i].code < tbd_probe_session.code_count ? tbd_placing_put(&places[i])
                                                                : TBD_PROBE_BAD_CODE;
        if (refusal != TBD_PROBE_OK)
            return refuse(refusal, i);
    }
    if (tbd_probe_session.active)
        put_jumps();
    return refuse(refusal, 0);
}

static struct tbd_probe_reply prepare_guards(long bytes)
{
    const struct tbd_probe_head *head = (const struct tbd_probe_head *)(void *)packet;
    const struct tbd_probe_place *places =
        (const struct tbd_probe_place *)(void *)(packet + sizeof(*head));
    struct tbd_probe_reply reply;

    if (!fits(head, bytes, sizeof(*head), sizeof(*places)))
        return refuse(TBD_PROBE_BAD_PACKET, 0);
    reply = refuse(tbd_placing_look(), 0);
    for (uint32_t i = 0; i < head->count && reply.refusal == TBD_PROBE_OK; i++)
        reply = refuse(tbd_placing_prepare_guard(places[i].address), i);
    return reply;
}

/* Who blocks all signals for a moment, as the C library does in pthread_create(), comes back by calls that are not guarded
 * yet.  From now on it blocks all but SIGTRAP, so that the other guards find a moment at which nobody does. */
static struct tbd_probe_reply guard_first(long bytes)
{
    struct tbd_probe_reply reply = prepare_guards(bytes);

    if (reply.refusal != TBD_PROBE_OK)
        return reply;
    reply = tbd_thread_masks_refuse_still(keeper.program);
    if (reply.refusal == TBD_PROBE_OK)
        tbd_placing_guards();
    else
        tbd_placing_clear();
    return reply;
}

/* A thread that blocks SIGTRAP must not come to a guard: nobody blocks it just before, nor just after.  Otherwise
 * the guards go away again, and the consumer may ask once more. */
static struct tbd_probe_reply guard(long bytes)
{
    struct tbd_probe_reply reply = prepare_guards(bytes);

    if (reply.refusal != TBD_PROBE_OK)
        return reply;
    reply = tbd_thread_masks_refuse_still(keeper.program);
    if (reply.refusal == TBD_PROBE_OK)
        reply = tbd_thread_masks_refuse(keeper.program);
    if (reply.refusal == TBD_PROBE_OK) /* that took its time */
        reply = tbd_thread_masks_refuse_still(keeper.program);
    if (reply.refusal == TBD_PROBE_OK) {
        tbd_placing_guards();
        reply = tbd_thread_masks_refuse(keeper.program);
    }
    if (reply.refusal != TBD_PROBE_OK)
        tbd_placing_clear();
    return reply;
}

static struct tbd_probe_reply take_away(long bytes)
{
    const struct tbd_probe_head *head = (const struct tbd_probe_head *)(void *)packet;
    const struct tbd_probe_place *places =
        (const struct tbd_probe_place *)(void *)(packet + sizeof(*head));

    if (!fits(head, bytes, sizeof(*head), sizeof(*places)))
        return refuse(TBD_PROBE_BAD_PACKET, 0);
    tbd_placing_prepare_take(places, head->count);
    for (uint32_t i = 0; i < head->count; i++)
        tbd_placing_take(places[i].address);
    if (tbd_probe_session.active)
        put_jumps();
    return refuse(TBD_PROBE_OK, 0);
}

static struct tbd_probe_reply start_session(void)
{
    struct tbd_probe_reply reply = { .detail = put_jumps() };

    __atomic_store_n(&tbd_probe_session.active, tbd_probe_session.number, __ATOMIC_SEQ_CST);
    let_begin();
    return reply;
}

static struct tbd_probe_reply stop_session(void)
{
    end_session();
    tbd_uses_await_quiet();
    return refuse(TBD_PROBE_OK, 0);
}

/* A thread that has met a trap just before the session's end still comes to the handler. */
static struct tbd_probe_reply leave(void)
{
    if (tbd_probe_session.shared)
        return refuse(TBD_PROBE_BUSY, 0);
    tbd_sys_pause_ms(LEAVE_MS);
    tbd_thread_masks_await_handlers(keeper.program);
    tbd_trap_end();
    keeper.leaves = true;
    return refuse(TBD_PROBE_OK, 0);
}

static struct tbd_probe_reply run_program(long bytes, const struct tbd_keeper_fds *fds)
{
    if (tbd_probe_session.shared)
        return refuse(TBD_PROBE_BUSY, 0);
    return refuse(tbd_keeper_run_program(packet, (uint64_t)bytes, fds), 0);
}

static struct tbd_probe_reply answer(long bytes, const struct tbd_keeper_fds *fds, int *out_fd)
{
    const struct tbd_probe_head *head = (const struct tbd_probe_head *)(void *)packet;

    if ((uint64_t)bytes < sizeof(*head))
        return refuse(TBD_PROBE_BAD_PACKET, 0);
    if (head->kind == TBD_PROBE_RUN)
        return run_program(bytes, fds);
    if (head->kind == TBD_PROBE_OPEN)
        return open_session(bytes, out_fd);
    if (head->kind == TBD_PROBE_LEAVE)
        return leave();
    if (!tbd_probe_session.shared)
        return refuse(TBD_PROBE_BAD_PACKET, 0);
    switch ((enum tbd_probe_kind)head->kind) {
    case TBD_PROBE_CODE: return take_code(bytes);
    case TBD_PROBE_PLACE: return place(bytes);
    case TBD_PROBE_GUARD: return guard(bytes);
    case TBD_PROBE_GUARD_FIRST: return guard_first(bytes);
    case TBD_PROBE_TAKE: return take_away(bytes);
    case TBD_PROBE_START: return start_session();
    case TBD_PROBE_STOP: return stop_session();
    case TBD_PROBE_OPEN:
    default: return refuse(TBD_PROBE_BAD_PACKET, 0);
    }
}

/* ---- the socket ---- */

static void send_reply(int connection, const struct tbd_probe_reply *reply, int fd)
{
    const struct iovec bytes = { (void *)(uintptr_t)reply, sizeof(*reply) };
    struct {
        uint64_t length;
        int32_t level, type;
        int32_t fd, padding;
    } control = { 20, SOL_SOCKET, SCM_RIGHTS, fd, 0 };
    const struct tbd_keeper_message message = { .parts = &bytes,
                                                .part_count = 1,
                                                .control = fd >= 0 ? tbd_sys_pointer(&control) : 0,
                                                .control_bytes = fd >= 0 ? sizeof(control) : 0 };

    tbd_sys3(__NR_sendmsg, (uint64_t)(unsigned)connection, tbd_sys_pointer(&message), MSG_NOSIGNAL);
}

static bool is_allowed(int connection)
{
    struct keeper_credentials peer = { .uid = UINT32_MAX };
    uint32_t bytes = sizeof(peer);
    uint32_t own = (uint32_t)tbd_sys3(__NR_geteuid, 0, 0, 0);

    tbd_sys6(__NR_getsockopt, (uint64_t)(unsigned)connection, SOL_SOCKET, SO_PEERCRED,
             tbd_sys_pointer(&peer), tbd_sys_pointer(&bytes), 0);
    return bytes == sizeof(peer) && (peer.uid == own || peer.uid == 0);
}

/* Waits for something at `connection`; the keeper's end if the program has come to its own. */
static void wait_for(int connection)
{
    struct pollfd wanted[2] = { { .fd = connection, .events = POLLIN },
                                { .fd = keeper.pidfd, .events = POLLIN } };

    for (;;) {
        long ready = tbd_sys3(__NR_poll, tbd_sys_pointer(wanted), 2, LOOK_MS);

        if ((ready > 0 && wanted[1].revents) || executes_another())
            tbd_sys_exit_group(0);
        tbd_keeper_reap();
        if (ready > 0)
            return;
    }
}

static void serve(int connection)
{
    long bytes;

    for (;;) {
        struct tbd_probe_reply reply;
        struct tbd_keeper_fds fds;
        int fd = -1;

        wait_for(connection);
        bytes = tbd_keeper_receive(connection, packet, sizeof(packet), &fds);
        if (bytes > 0)
            reply = answer(bytes, &fds, &fd);
        tbd_keeper_close_fds(&fds);
        if (bytes <= 0)
            break;
        send_reply(connection, &reply, fd);
        if (fd >= 0)
            tbd_sys_close(fd);
    }
    if (executes_another()) /* this memory has no program any more */
        tbd_sys_exit_group(0);
    forget_session();
    let_begin();
}

static long listen_at(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    uint64_t length = sizeof(address.sun_family) + 1 + strlen(name);
    long fd = tbd_sys3(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    long wrong;

    if (fd < 0)
        return fd;
    memcpy(address.sun_path + 1, name, strlen(name));
    wrong = tbd_sys3(__NR_bind, (uint64_t)fd, tbd_sys_pointer(&address), length);
    if (wrong == -EADDRINUSE) /* the keeper of the program before this one looks up */
        tbd_sys3(__NR_connect, (uint64_t)fd, tbd_sys_pointer(&address), length);
    if (!wrong)
        wrong = tbd_sys3(__NR_listen, (uint64_t)fd, BACKLOG, 0);
    if (wrong)
        tbd_sys_close((int)fd);
    return wrong ? wrong : fd;
}

/* "pid:[4026531836]" */
static uint64_t pid_namespace(void)
{
    char text[64] = "";
    uint64_t number = 0;

    tbd_sys3(__NR_readlink, tbd_sys_pointer("/proc/self/ns/pid"), tbd_sys_pointer(text),
             sizeof(text) - 1);
    if (tbd_starts_with(text, "pid:["))
        tbd_proc_decimal(text + 5, &number);
    return number;
}

long tbd_keeper_prepare(uint32_t program)
{
    long fd;

    keeper.program = program;
    keeper.leaves = false;
    tbd_placing_new_keeper();
    tbd_handlers_prepare(program);
    keeper.memory_mark = stat_field(FIELD_ARG_START);
    fd = tbd_sys3(__NR_pidfd_open, program, 0, 0);
    if (fd < 0)
        return fd;
    keeper.pidfd = (int)fd;
    tbd_fmt(keeper.address, sizeof(keeper.address), TBD_PROBE_ADDRESS, pid_namespace(), program);
    fd = listen_at(keeper.address);
    for (int i = 0; i < TRIES && fd == -EADDRINUSE; i++) {
        tbd_sys_pause_ms(TRY_MS);
        fd = listen_at(keeper.address);
    }
    keeper.listener = (int)fd;
    return fd < 0 ? fd : 0;
}

void tbd_keeper_await(void)
{
    while (!__atomic_load_n(&keeper.has_begun, __ATOMIC_ACQUIRE))
        tbd_sys_futex_wait(&keeper.has_begun, 0, -1);
}

/* A connection to who follows the process; negative: nobody does, or somebody else than its user. */
static long find_follower(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    uint64_t length;
    long fd, wrong;

    tbd_fmt(address.sun_path + 1, TBD_PROBE_ADDRESS_BYTES, TBD_PROBE_FOLLOW_ADDRESS,
            pid_namespace(), keeper.program);
    length = sizeof(address.sun_family) + 1 + strlen(address.sun_path + 1);
    fd = tbd_sys3(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    wrong = tbd_sys3(__NR_connect, (uint64_t)fd, tbd_sys_pointer(&address), length);
    if (!wrong && is_allowed((int)fd))
        return fd;
    tbd_sys_close((int)fd);
    return -EACCES;
}

void tbd_keeper_await_follower(void)
{
    struct pollfd wanted = { .events = POLLIN };
    long fd = find_follower();

    if (fd < 0)
        return;
    wanted.fd = (int)fd;
    while (!__atomic_load_n(&keeper.has_begun, __ATOMIC_ACQUIRE) &&
           tbd_sys3(__NR_poll, tbd_sys_pointer(&wanted), 1, 0) == 0)
        tbd_sys_futex_wait(&keeper.has_begun, 0, FOLLOWER_MS);
    tbd_sys_close((int)fd);
}

void tbd_keeper_run(void)
{
    tbd_sys3(__NR_prctl, PR_SET_NAME, tbd_sys_pointer("tbd-keeper"), 0);
    for (;;) {
        long connection;

        wait_for(keeper.listener);
        connection =
            tbd_sys4(__NR_accept4, (uint64_t)(unsigned)keeper.listener, 0, 0, SOCK_CLOEXEC);
        if (connection < 0)
            continue;
        if (is_allowed((int)connection))
            serve((int)connection);
        tbd_sys_close((int)connection);
        if (keeper.leaves)
            tbd_sys_exit_group(0);
    }
}
