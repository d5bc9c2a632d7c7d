// SPDX-License-Identifier: MIT
/* probe_client.c - see probe_client.h */
#include "query/probe/probe_client.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const refusals[TBD_PROBE_REFUSALS] = {
    [TBD_PROBE_OK] = "",
    [TBD_PROBE_BAD_PACKET] = "the engine does not understand this tbd",
    [TBD_PROBE_OTHER_VERSION] = "the program runs with another version of tbd",
    [TBD_PROBE_BUSY] = "somebody else probes this program",
    [TBD_PROBE_NO_MEMORY] = "the program has no memory for it",
    [TBD_PROBE_BAD_CODE] = "the engine refuses the script's code",
    [TBD_PROBE_NOT_CODE] = "there is no code at this address",
    [TBD_PROBE_NO_INSTRUCTION] = "no instruction begins at this address",
    [TBD_PROBE_RAISES] = "the instruction there raises a signal itself",
    [TBD_PROBE_UNSUPPORTED] = "the instruction there cannot be probed",
    [TBD_PROBE_OURS] = "this is code of tbd itself",
    [TBD_PROBE_UNWRITABLE] = "the kernel does not let us write to the program's code",
    [TBD_PROBE_SIGNAL_BLOCKED] = "a thread blocks SIGTRAP",
    [TBD_PROBE_TRACED] = "a debugger is attached to the program",
    [TBD_PROBE_SHADOW_STACK] = "the program uses a shadow stack",
    [TBD_PROBE_STARVED] = "a thread does not get a processor",
    [TBD_PROBE_NOT_RUN] = "what waits beside the program cannot run tbd",
    [TBD_PROBE_AWAY] = "the program is recorded, or was",
};

const char *tbd_client_refusal(uint32_t refusal)
{
    return refusal < TBD_PROBE_REFUSALS ? refusals[refusal] : "the engine refuses";
}

/* ---- finding the keeper ---- */

bool tbd_client_read_pid(const char *text, pid_t *out)
{
    char *end;
    long pid = strtol(text, &end, 10);

    *out = (pid_t)pid;
    return *text && !*end && pid > 0 && pid <= INT_MAX;
}

/* The last one of NSpid. */
uint32_t tbd_client_inner_pid(pid_t pid)
{
    char path[64], line[512];
    uint32_t inner = (uint32_t)pid;
    FILE *status;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status))
        if (strncmp(line, "NSpid:", 6) == 0) {
            char *last = strrchr(line, '\t');

            inner = last ? (uint32_t)strtoul(last + 1, NULL, 10) : inner;
        }
    if (status)
        fclose(status);
    return inner;
}

bool tbd_client_address(pid_t pid, bool follows, struct sockaddr_un *out, socklen_t *length,
                        struct tbd_query_error *error)
{
    char path[64], text[64] = "";
    unsigned long namespace_number = 0;
    int used;

    snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    if (readlink(path, text, sizeof(text) - 1) < 0 ||
        sscanf(text, "pid:[%lu]", &namespace_number) != 1) {
        int why = errno;

        tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d: %s", (int)pid,
                        why == ENOENT ? "there is no such process" : strerror(why));
        strcpy(error->hint, why == ENOENT   ? "pgrep -a NAME tells the numbers of processes"
                            : why == EACCES ? "tbd comes into processes of its own user"
                                            : "");
        return false;
    }
    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    used = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1,
                    follows ? TBD_PROBE_FOLLOW_ADDRESS : TBD_PROBE_ADDRESS, namespace_number,
                    tbd_client_inner_pid(pid));
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
    return true;
}

/* Anybody can take the address of a process that is not armed. */
static bool is_keeper_of(int connection, pid_t pid)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    struct stat info;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           stat(path, &info) == 0 && (peer.uid == info.st_uid || peer.uid == 0);
}

bool tbd_client_connect(struct tbd_probe_client *client, pid_t pid, struct tbd_query_error *error)
{
    struct sockaddr_un address;
    socklen_t length = 0;

    *client = (struct tbd_probe_client){ .connection = -1 };
    if (!tbd_client_address(pid, false, &address, &length, error))
        return false;
    client->connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (client->connection < 0 ||
        connect(client->connection, (struct sockaddr *)&address, length) != 0) {
        tbd_query_wrong(error, TBD_NOTFOUND, 0, 0, "process %d is not armed", (int)pid);
        tbd_client_close(client);
        return false;
    }
    if (is_keeper_of(client->connection, pid))
        return true;
    tbd_client_close(client);
    return tbd_query_wrong(error, TBD_SYSTEM, 0, 0,
                           "somebody else answers for process %d: it is not probed", (int)pid);
}

void tbd_client_close(struct tbd_probe_client *client)
{
    if (client->connection >= 0)
        close(client->connection);
    if (client->shared)
        munmap(client->shared, client->bytes);
    *client = (struct tbd_probe_client){ .connection = -1 };
}

/* ---- requests ---- */

static bool receive(struct tbd_probe_client *client, struct tbd_probe_reply *reply, int *out_fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { reply, sizeof(*reply) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof(control.bytes) };
    ssize_t got;

    do
        got = recvmsg(client->connection, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(*reply))
        return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c && out_fd; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
            c->cmsg_len == CMSG_LEN(sizeof(int)))
            memcpy(out_fd, CMSG_DATA(c), sizeof(int));
    return true;
}

static ssize_t send_message(const struct tbd_probe_client *client, const struct msghdr *message)
{
    ssize_t sent;

    do
        sent = sendmsg(client->connection, message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent;
}

/* After `sent` of `bytes`. */
static bool await_reply(struct tbd_probe_client *client, ssize_t sent, size_t bytes,
                        struct tbd_probe_reply *reply, int *out_fd, struct tbd_query_error *error)
{
    client->refusal = TBD_PROBE_OK;
    client->is_closed = sent != (ssize_t)bytes || !receive(client, reply, out_fd);
    if (client->is_closed)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "the program has ended");
    client->refusal = reply->refusal;
    if (reply->refusal == TBD_PROBE_OK)
        return true;
    if (reply->refusal == TBD_PROBE_SIGNAL_BLOCKED) {
        tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "thread %" PRIu64 " blocks SIGTRAP",
                        reply->detail);
        strcpy(error->hint, "a probe in its code would end the program; try again");
        return false;
    }
    if (reply->refusal == TBD_PROBE_STARVED) {
        tbd_query_wrong(error, TBD_SYSTEM, 0, 0,
                        "thread %" PRIu64 " wants to run, and does not get a processor",
                        reply->detail);
        strcpy(error->hint,
               "if it blocks SIGTRAP a probe would end the program; try again when less else runs");
        return false;
    }
    return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "%s", tbd_client_refusal(reply->refusal));
}

static bool ask(struct tbd_probe_client *client, const void *packet, size_t bytes,
                struct tbd_probe_reply *reply, int *out_fd, struct tbd_query_error *error)
{
    struct iovec part = { (void *)(uintptr_t)packet, bytes };
    const struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    return await_reply(client, send_message(client, &message), bytes, reply, out_fd, error);
}

bool tbd_client_send_run(struct tbd_probe_client *client, const struct tbd_probe_run *request,
                         size_t bytes, const int *fds, struct tbd_query_error *error)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(TBD_PROBE_RUN_FDS * sizeof(int))];
    } control = { .header = { .cmsg_len = CMSG_LEN(TBD_PROBE_RUN_FDS * sizeof(int)),
                              .cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS } };
    struct iovec part = { (void *)(uintptr_t)request, bytes };
    const struct msghdr message = { .msg_iov = &part,
                                    .msg_iovlen = 1,
                                    .msg_control = control.bytes,
                                    .msg_controllen = sizeof(control.bytes) };
    struct tbd_probe_reply reply;

    memcpy(CMSG_DATA(&control.header), fds, TBD_PROBE_RUN_FDS * sizeof(int));
    return await_reply(client, send_message(client, &message), bytes, &reply, NULL, error);
}

static bool map_shared(struct tbd_probe_client *client, int fd, uint64_t bytes,
                       struct tbd_query_error *error)
{
    struct stat info;
    void *at = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &info) == 0 && (uint64_t)info.st_size == bytes &&
        bytes >= sizeof(*client->shared))
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "no memory is shared with the program");
    client->shared = at;
    client->bytes = bytes;
    return client->shared->magic == TBD_PROBE_MAGIC ||
           tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "the shared memory is none of tbd's");
}

bool tbd_client_open(struct tbd_probe_client *client, const struct tbd_probe_map *maps,
                     uint32_t map_count, uint32_t flags, struct tbd_query_error *error)
{
    struct tbd_probe_open request = { .head = { TBD_PROBE_OPEN, map_count },
                                      .version = TBD_PROBE_VERSION,
                                      .flags = flags };
    struct tbd_probe_reply reply;
    int fd = -1;

    memcpy(request.maps, maps, map_count * sizeof(maps[0]));
    if (!ask(client, &request, sizeof(request), &reply, &fd, error))
        return false;
    if (reply.detail != tbd_probe_shared_bytes(maps, map_count)) {
        if (fd >= 0)
            close(fd);
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "the shared memory has another size");
    }
    return map_shared(client, fd, reply.detail, error);
}

/* Items of `each` bytes in packets; *out_wrong: the one that was refused. */
static bool send_items(struct tbd_probe_client *client, enum tbd_probe_kind kind, const void *items,
                       size_t count, size_t each, size_t *out_wrong, struct tbd_query_error *error)
{
    static uint8_t packet[TBD_PROBE_PACKET_BYTES];

    for (size_t done = 0; done < count;) {
        size_t now = count - done < TBD_PROBE_PER_PACKET ? count - done : TBD_PROBE_PER_PACKET;
        struct tbd_probe_head head = { (uint32_t)kind, (uint32_t)now };
        struct tbd_probe_reply reply = { 0 };

        memcpy(packet, &head, sizeof(head));
        memcpy(packet + sizeof(head), (const uint8_t *)items + done * each, now * each);
        if (!ask(client, packet, sizeof(head) + now * each, &reply, NULL, error)) {
            *out_wrong = done + reply.index;
            return false;
        }
        done += now;
    }
    return true;
}

/* A packet's code ends with END, and no skip leaves it: clauses stay whole. */
bool tbd_client_send_code(struct tbd_probe_client *client, const struct tbd_probe_insn *code,
                          uint32_t count, struct tbd_query_error *error)
{
    size_t wrong;
    uint32_t done = 0;

    while (done < count) {
        uint32_t end = count - done > TBD_PROBE_PER_PACKET ? done + TBD_PROBE_PER_PACKET : count;

        while (end > done && code[end - 1].op != TBD_PROBE_END)
            end--;
        if (end == done)
            return tbd_query_wrong(error, TBD_USAGE, 0, 0, "a clause of the script is too long");
        if (!send_items(client, TBD_PROBE_CODE, code + done, end - done, sizeof(code[0]), &wrong,
                        error))
            return false;
        done = end;
    }
    return true;
}

bool tbd_client_place(struct tbd_probe_client *client, const struct tbd_probe_place *places,
                      size_t count, size_t *out_wrong, struct tbd_query_error *error)
{
    return send_items(client, TBD_PROBE_PLACE, places, count, sizeof(places[0]), out_wrong, error);
}

bool tbd_client_take(struct tbd_probe_client *client, const struct tbd_probe_place *places,
                     size_t count, size_t *out_wrong, struct tbd_query_error *error)
{
    return send_items(client, TBD_PROBE_TAKE, places, count, sizeof(places[0]), out_wrong, error);
}

#define GUARD_TRIES   20
#define STARVED_TRIES 2 /* each takes a minute or more */

/* At most TBD_PROBE_PER_PACKET: all at one moment. */
static bool send_guards(struct tbd_probe_client *client, enum tbd_probe_kind kind,
                        const struct tbd_probe_places *places, struct tbd_query_error *error)
{
    size_t count = places->count < TBD_PROBE_PER_PACKET ? places->count : TBD_PROBE_PER_PACKET;
    size_t wrong;

    *error = (struct tbd_query_error){ 0 };
    return send_items(client, kind, places->all, count, sizeof(places->all[0]), &wrong, error);
}

bool tbd_client_guard(struct tbd_probe_client *client, const struct tbd_guard_places *places,
                      struct tbd_query_error *error)
{
    int starved = 0;

    for (int i = 0; i < GUARD_TRIES && starved < STARVED_TRIES; i++) {
        if (send_guards(client, TBD_PROBE_GUARD_FIRST, &places->blocks, error) &&
            send_guards(client, TBD_PROBE_GUARD, &places->others, error))
            return true;
        starved += client->refusal == TBD_PROBE_STARVED;
    }
    return false;
}

bool tbd_client_order(struct tbd_probe_client *client, enum tbd_probe_kind kind,
                      uint64_t *out_detail, struct tbd_query_error *error)
{
    struct tbd_probe_head head = { (uint32_t)kind, 0 };
    struct tbd_probe_reply reply = { 0 };
    bool done = ask(client, &head, sizeof(head), &reply, NULL, error);

    if (out_detail)
        *out_detail = reply.detail;
    return done;
}
