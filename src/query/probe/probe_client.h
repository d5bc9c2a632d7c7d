// SPDX-License-Identifier: MIT
/* probe_client.h - the consumer's side of a session with an armed program (format/probe/probe.h)
 *
 * One thread. */
#ifndef TBD_QUERY_PROBE_CLIENT_H
#define TBD_QUERY_PROBE_CLIENT_H

#include "format/probe/probe.h"
#include "query/places/guard_places.h"
#include "query/text/query_error.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

struct tbd_probe_client {
    int connection;
    struct tbd_probe_shared *shared; /* mapped */
    uint64_t bytes;
    uint32_t flags;
    uint32_t refusal; /* of the last packet: enum tbd_probe_refusal */
    bool is_closed;   /* nobody has answered it */
};

/* Why, in words. */
const char *tbd_client_refusal(uint32_t refusal);

/* A process' number as a user gives it. */
bool tbd_client_read_pid(const char *text, pid_t *out);
/* The process' number in its own namespace. */
uint32_t tbd_client_inner_pid(pid_t pid);
/* The address of the process' keeper, or of who follows it (format/probe/probe.h). */
bool tbd_client_address(pid_t pid, bool follows, struct sockaddr_un *out, socklen_t *length,
                        struct tbd_query_error *error);
/* Finds the keeper of `pid`, and makes sure that it belongs to the process' user. */
bool tbd_client_connect(struct tbd_probe_client *client, pid_t pid, struct tbd_query_error *error);
bool tbd_client_open(struct tbd_probe_client *client, const struct tbd_probe_map *maps,
                     uint32_t map_count, uint32_t flags, struct tbd_query_error *error);
bool tbd_client_send_code(struct tbd_probe_client *client, const struct tbd_probe_insn *code,
                          uint32_t count, struct tbd_query_error *error);
/* *out_wrong: the place that was refused. */
bool tbd_client_place(struct tbd_probe_client *client, const struct tbd_probe_place *places,
                      size_t count, size_t *out_wrong, struct tbd_query_error *error);
/* Takes their probes away. */
bool tbd_client_take(struct tbd_probe_client *client, const struct tbd_probe_place *places,
                     size_t count, size_t *out_wrong, struct tbd_query_error *error);
/* Guards, first where masks are made that block more; tries again for a while. */
bool tbd_client_guard(struct tbd_probe_client *client, const struct tbd_guard_places *places,
                      struct tbd_query_error *error);
bool tbd_client_order(struct tbd_probe_client *client, enum tbd_probe_kind kind,
                      uint64_t *out_detail, struct tbd_query_error *error);
/* With TBD_PROBE_RUN_FDS descriptors (enum tbd_probe_run_fd). */
bool tbd_client_send_run(struct tbd_probe_client *client, const struct tbd_probe_run *request,
                         size_t bytes, const int *fds, struct tbd_query_error *error);
void tbd_client_close(struct tbd_probe_client *client);

#endif
