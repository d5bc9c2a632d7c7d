// SPDX-License-Identifier: MIT
/* deputy.c - see deputy.h
 *
 * Requests after the first one come over the keeper's address, with the descriptors of who asks; each is carried out in this process, which the
 * program has named.  Only its own user, or root, is listened to. */
#include "query/probe/deputy.h"

#include "query/attach/attach.h"
#include "query/probe/probe_client.h"
#include "query/probe/probe_follow.h"
#include "query/probe/take_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BACKLOG 8
#define LOOK_MS 5000

enum { STATUS_FD = TBD_PROBE_RUN_STATUS, EXIT_USAGE = 2, EXIT_SYSTEM = 4 };

struct deputy {
    pid_t pid;
    int pidfd, listener;
    struct tbd_follower follower; /* tells of an execve */
    bool is_over;
};

static int fail(const char *how, const struct tbd_query_error *error)
{
    fprintf(stderr, "tbd %s: %s\n", how, error->message);
    if (error->hint[0])
        fprintf(stderr, "tbd %s: hint: %s\n", how, error->hint);
    return EXIT_SYSTEM;
}

/* ---- what it is asked for ---- */

static bool listen_for_keeper(struct deputy *deputy)
{
    struct tbd_query_error ignored = { 0 };
    struct sockaddr_un address;
    socklen_t length = 0;

    deputy->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (deputy->listener >= 0 &&
        tbd_client_address(deputy->pid, false, &address, &length, &ignored) &&
        bind(deputy->listener, (struct sockaddr *)&address, length) == 0 &&
        listen(deputy->listener, BACKLOG) == 0)
        return true;
    if (deputy->listener >= 0)
        close(deputy->listener);
    deputy->listener = -1;
    return false;
}

/* The keeper that comes has the address, and is named by the program. */
static int bring_keeper(struct deputy *deputy)
{
    struct tbd_query_error error = { 0 };

    close(deputy->listener);
    deputy->is_over = tbd_attach_arm(deputy->pid, &error);
    if (deputy->is_over)
        return 0;
    deputy->is_over = !listen_for_keeper(deputy);
    return fail("probe", &error);
}

/* Nobody listens meanwhile: a deputy that answers would be taken for a keeper that has to go. */
static int take_again(struct deputy *deputy, const char *how, const char *options)
{
    int status;

    close(deputy->listener);
    status = tbd_take_process(deputy->pid, how, options);
    deputy->is_over = !listen_for_keeper(deputy);
    return status;
}

static void tell_status(int status)
{
    const uint8_t byte = (uint8_t)status;

    if (write(STATUS_FD, &byte, 1) < 0)
        return; /* who asked has gone */
}

/* No descriptor of who asked is kept. */
static void leave_terminal(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd <= STATUS_FD; fd++)
        dup2(nothing, fd);
    if (nothing > STATUS_FD)
        close(nothing);
    if (chdir("/") != 0)
        _exit(EXIT_SYSTEM);
}

/* ---- requests ---- */

struct deputy_request {
    union {
        struct tbd_probe_run run;
        char bytes[TBD_PROBE_PACKET_BYTES];
    } packet;
    size_t bytes;
    int fds[TBD_PROBE_RUN_FDS];
    bool has_fds;
    const char *texts[TBD_PROBE_RUN_TEXTS];
};

static void close_fds(struct deputy_request *request)
{
    for (int i = 0; request->has_fds && i < TBD_PROBE_RUN_FDS; i++)
        close(request->fds[i]);
    request->has_fds = false;
}

static bool receive(int connection, struct deputy_request *out)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(out->fds))];
    } control;
    struct iovec part = { out->packet.bytes, sizeof(out->packet.bytes) - 1 };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof(control.bytes) };
    struct pollfd wanted = { .fd = connection, .events = POLLIN };
    const struct cmsghdr *first;
    ssize_t got;

    out->has_fds = false;
    if (poll(&wanted, 1, LOOK_MS) <= 0)
        return false;
    got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    out->bytes = got > 0 ? (size_t)got : 0;
    out->packet.bytes[out->bytes] = '\0';
    first = CMSG_FIRSTHDR(&message);
    if (got < 0 || !first || first->cmsg_level != SOL_SOCKET || first->cmsg_type != SCM_RIGHTS)
        return got > 0;
    if (first->cmsg_len != CMSG_LEN(sizeof(out->fds))) /* some, but not those */
        _exit(EXIT_SYSTEM);
    memcpy(out->fds, CMSG_DATA(first), sizeof(out->fds));
    out->has_fds = true;
    return true;
}

static bool read_texts(struct deputy_request *request)
{
    const struct tbd_probe_run *run = &request->packet.run;
    const char *at = request->packet.bytes + sizeof(*run);
    const char *end = request->packet.bytes + request->bytes;

    if (request->bytes < sizeof(*run) || run->head.count > TBD_PROBE_RUN_TEXTS ||
        run->arguments != 4 || run->head.count < run->arguments || !request->has_fds)
        return false;
    for (uint32_t i = 0; i < run->head.count && at < end; i++, at += strlen(at) + 1)
        request->texts[i] = at;
    return at == end;
}

/* As if this process had been started by who asks. */
static bool take_place(const struct deputy_request *request)
{
    static const char name[] = "TBD_DIR";

    for (int fd = 0; fd <= STATUS_FD; fd++)
        if (dup2(request->fds[fd], fd) < 0)
            return false;
    unsetenv(name);
    for (uint32_t i = request->packet.run.arguments; i < request->packet.run.head.count; i++)
        if (strncmp(request->texts[i], "TBD_DIR=", sizeof(name)) == 0)
            setenv(name, request->texts[i] + sizeof(name), 1);
    return fchdir(request->fds[TBD_PROBE_RUN_FOLDER]) == 0;
}

static void reply(int connection, enum tbd_probe_refusal refusal)
{
    const struct tbd_probe_reply answer = { .refusal = refusal };

    if (send(connection, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
        return; /* it has gone */
}

static void carry_out(struct deputy *deputy, const struct deputy_request *request)
{
    const char *how = request->texts[1];
    int status =
        strcmp(how, "arm") == 0 ? bring_keeper(deputy) : take_again(deputy, how, request->texts[3]);

    tell_status(status);
    leave_terminal();
}

static void run_request(struct deputy *deputy, int connection, struct deputy_request *request)
{
    bool done =
        read_texts(request) && strcmp(request->texts[0], "deputy") == 0 && take_place(request);

    close_fds(request);
    reply(connection, done ? TBD_PROBE_OK : TBD_PROBE_BAD_PACKET);
    if (done)
        carry_out(deputy, request);
}

static void serve(struct deputy *deputy, int connection)
{
    static struct deputy_request request;

    if (!receive(connection, &request) || request.bytes < sizeof(struct tbd_probe_head))
        return;
    if (request.packet.run.head.kind == TBD_PROBE_RUN) {
        run_request(deputy, connection, &request);
        return;
    }
    close_fds(&request);
    deputy->is_over = request.packet.run.head.kind == TBD_PROBE_LEAVE;
    reply(connection, deputy->is_over ? TBD_PROBE_OK : TBD_PROBE_AWAY);
}

/* ---- waiting ---- */

static bool is_allowed(int connection)
{
    struct ucred peer = { .uid = (uid_t)-1 };
    socklen_t bytes = sizeof(peer);

    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void wait_beside(struct deputy *deputy)
{
    while (!deputy->is_over) {
        struct pollfd wanted[2] = { { .fd = deputy->listener, .events = POLLIN },
                                    { .fd = deputy->pidfd, .events = POLLIN } };
        int ready = poll(wanted, 2, LOOK_MS), connection;

        if ((ready > 0 && wanted[1].revents) || tbd_follow_executes(&deputy->follower))
            return;
        if (ready <= 0)
            continue;
        connection = accept4(deputy->listener, NULL, NULL, SOCK_CLOEXEC);
        if (connection >= 0 && is_allowed(connection))
            serve(deputy, connection);
        if (connection >= 0)
            close(connection);
    }
}

/* ---- the first request ---- */

/* A keeper that did not go is named again. */
static void stay_or_go(struct deputy *deputy, pid_t keeper)
{
    struct tbd_query_error ignored = { 0 };

    if (listen_for_keeper(deputy))
        wait_beside(deputy);
    else
        tbd_attach_name_tracer(deputy->pid, keeper, &ignored);
}

int tbd_deputy_run(int argc, char **argv)
{
    struct deputy deputy = { .listener = -1 };
    struct tbd_query_error error = { 0 };
    pid_t keeper = getppid();
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, "tbd-deputy");
    if (argc != 4 || !tbd_client_read_pid(argv[2], &deputy.pid))
        return EXIT_USAGE;
    deputy.pidfd = (int)syscall(SYS_pidfd_open, deputy.pid, 0);
    tbd_follow_begin(&deputy.follower, deputy.pid);
    if (deputy.pidfd < 0 || !tbd_attach_name_tracer(deputy.pid, getpid(), &error)) {
        tell_status(fail(argv[1], &error));
        return EXIT_SYSTEM;
    }
    tell_status(tbd_take_process(deputy.pid, argv[1], argv[3]));
    leave_terminal();
    stay_or_go(&deputy, keeper);
    return 0;
}
