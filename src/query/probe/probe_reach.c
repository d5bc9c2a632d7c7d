// SPDX-License-Identifier: MIT
/* probe_reach.c - see probe_reach.h */
#include "query/probe/probe_reach.h"

#include "query/attach/attach.h"
#include "query/attach/attach_check.h"
#include "query/probe/deputy.h"

#include <time.h>

#define KEEPER_TRIES  500
#define KEEPER_TRY_NS 10000000L

/* It needs a moment to listen. */
static bool await_keeper(struct tbd_probe_client *client, pid_t pid, struct tbd_query_error *error)
{
    const struct timespec moment = { 0, KEEPER_TRY_NS };

    for (int i = 0; i < KEEPER_TRIES; i++) {
        *error = (struct tbd_query_error){ 0 };
        if (tbd_client_connect(client, pid, error))
            return true;
        nanosleep(&moment, NULL);
    }
    return false;
}

void tbd_probe_await_keeper_end(pid_t pid)
{
    const struct timespec moment = { 0, KEEPER_TRY_NS };
    struct tbd_probe_client client;
    struct tbd_query_error ignored = { 0 };

    for (int i = 0; i < KEEPER_TRIES && tbd_client_connect(&client, pid, &ignored); i++) {
        tbd_client_close(&client);
        nanosleep(&moment, NULL);
    }
}

/* A program that begins under tbd makes itself ready, perhaps just now: then its own keeper is there in a moment. */
static bool await_own_keeper(struct tbd_probe_client *client, pid_t pid,
                             struct tbd_query_error *error)
{
    struct tbd_query_error refused = *error;

    if (error->status != TBD_BUSY || !tbd_attach_shares_memory(pid))
        return false;
    if (await_keeper(client, pid, error))
        return true;
    *error = refused;
    return false;
}

bool tbd_probe_reach(struct tbd_probe_client *client, pid_t pid, struct tbd_query_error *error)
{
    if (client->connection >= 0 || tbd_client_connect(client, pid, error))
        return true;
    if (error->status != TBD_NOTFOUND)
        return false;
    *error = (struct tbd_query_error){ 0 };
    return tbd_attach_arm(pid, error) ? await_keeper(client, pid, error)
                                      : await_own_keeper(client, pid, error);
}

/* False: the error says why not. */
static bool bring_keeper(struct tbd_probe_client *client, pid_t pid, struct tbd_query_error *error)
{
    int status = 0;

    tbd_client_close(client);
    *error = (struct tbd_query_error){ 0 };
    if (!tbd_deputy_ask(pid, "arm", "", &status, error))
        return false;
    if (status)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d is not armed again", (int)pid);
    return await_keeper(client, pid, error);
}

/* The keeper of a program that has executed another one goes when somebody asks it. */
static bool reach_next(struct tbd_probe_client *client, pid_t pid, struct tbd_query_error *error)
{
    tbd_client_close(client);
    *error = (struct tbd_query_error){ 0 };
    tbd_probe_await_keeper_end(pid);
    return tbd_probe_reach(client, pid, error);
}

bool tbd_probe_open_session(struct tbd_probe_client *client, pid_t pid,
                            const struct tbd_probe_script *script, uint32_t flags,
                            struct tbd_query_error *error)
{
    if (tbd_client_open(client, script->maps, script->map_count, flags, error))
        return true;
    if (!(client->is_closed                   ? reach_next(client, pid, error)
          : client->refusal == TBD_PROBE_AWAY ? bring_keeper(client, pid, error)
                                              : false))
        return false;
    return tbd_client_open(client, script->maps, script->map_count, flags, error);
}
