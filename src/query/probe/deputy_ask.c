// SPDX-License-Identifier: MIT
/* deputy_ask.c - see deputy.h */
#include "query/probe/deputy.h"

#include "query/probe/probe_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the packet ---- */

struct run_packet {
    struct tbd_probe_run head;
    char texts[TBD_PROBE_PACKET_BYTES - sizeof(struct tbd_probe_run)];
    size_t used;
    bool is_too_long;
};

static void put_text(struct run_packet *packet, const char *name, const char *value)
{
    size_t capacity = sizeof(packet->texts) - packet->used;
    int length = snprintf(packet->texts + packet->used, capacity, "%s%s", name, value);

    packet->is_too_long |= length < 0 || (size_t)length >= capacity;
    if (packet->is_too_long)
        return;
    packet->used += (size_t)length + 1;
    packet->head.head.count++;
}

static void put_variable(struct run_packet *packet, const char *name, const char *prefix)
{
    const char *value = getenv(name);

    if (value)
        put_text(packet, prefix, value);
}

static bool write_packet(struct run_packet *packet, pid_t pid, const char *how, const char *options)
{
    char number[16];

    *packet = (struct run_packet){ .used = 0 };
    packet->head.head.kind = TBD_PROBE_RUN;
    snprintf(number, sizeof(number), "%u", tbd_client_inner_pid(pid));
    put_text(packet, "", "deputy");
    put_text(packet, "", how);
    put_text(packet, "", number);
    put_text(packet, "", options);
    packet->head.arguments = packet->head.head.count;
    put_variable(packet, "TBD_DIR", "TBD_DIR=");
    put_variable(packet, "LD_LIBRARY_PATH", "LD_LIBRARY_PATH=");
    return !packet->is_too_long;
}

/* ---- descriptors ---- */

/* One of ours, or nothing in its place. */
static int open_standard(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    return copy >= 0 ? copy : open("/dev/null", O_RDWR | O_CLOEXEC);
}

static bool open_all(int *out, int status)
{
    bool done = true;

    for (int i = 0; i < TBD_PROBE_RUN_STATUS; i++)
        out[i] = open_standard(i);
    out[TBD_PROBE_RUN_STATUS] = status;
    out[TBD_PROBE_RUN_PROGRAM] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    out[TBD_PROBE_RUN_FOLDER] = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < TBD_PROBE_RUN_FDS; i++)
        done &= out[i] >= 0;
    return done;
}

static void close_all(const int *fds)
{
    for (int i = 0; i < TBD_PROBE_RUN_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* ---- asking ---- */

/* It writes its status when it has done what it was asked to. */
static bool await_status(int pipe, pid_t pid, int *out_status, struct tbd_query_error *error)
{
    uint8_t status = 0;
    ssize_t got;

    do
        got = read(pipe, &status, 1);
    while (got < 0 && errno == EINTR);
    *out_status = status;
    return got == 1 || tbd_query_wrong(error, TBD_SYSTEM, 0, 0,
                                       "process %d: what was to take it over has ended", (int)pid);
}

static bool send_request(struct tbd_probe_client *client, const struct run_packet *packet,
                         int status, struct tbd_query_error *error)
{
    int fds[TBD_PROBE_RUN_FDS];
    bool done = open_all(fds, status);

    if (done)
        done = tbd_client_send_run(client, &packet->head, sizeof(packet->head) + packet->used, fds,
                                   error);
    else
        tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "no descriptors: %s", strerror(errno));
    close_all(fds);
    return done;
}

bool tbd_deputy_ask(pid_t pid, const char *how, const char *options, int *out_status,
                    struct tbd_query_error *error)
{
    static struct run_packet packet;
    struct tbd_probe_client client;
    int status[2];
    bool done;

    if (!write_packet(&packet, pid, how, options))
        return tbd_query_wrong(error, TBD_USAGE, 0, 0, "the options are too long");
    if (!tbd_client_connect(&client, pid, error))
        return false;
    if (pipe2(status, O_CLOEXEC) != 0) {
        tbd_client_close(&client);
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "no pipe: %s", strerror(errno));
    }
    done = send_request(&client, &packet, status[1], error);
    tbd_client_close(&client); /* the keeper serves one connection at a time */
    done = done && await_status(status[0], pid, out_status, error);
    close(status[0]);
    return done;
}
