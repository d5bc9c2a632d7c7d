// SPDX-License-Identifier: MIT
/* take_run.c - see take_run.h */
#include "query/probe/take_run.h"

#include "query/attach/attach.h"
#include "query/attach/attach_check.h"
#include "query/attach/take.h"
#include "query/probe/deputy.h"
#include "query/probe/probe_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { EXIT_USAGE = 2 };

static int fail(const char *command, const struct tbd_query_error *error)
{
    fprintf(stderr, "tbd %s: %s\n", command, error->message);
    if (error->hint[0])
        fprintf(stderr, "tbd %s: hint: %s\n", command, error->hint);
    return error->status == TBD_NOTFOUND ? 1 : error->status == TBD_USAGE ? EXIT_USAGE : 4;
}

#define LEAVE_TRIES 400
#define LEAVE_NS    5000000L

/* Returns when it has gone, so that who comes next does not meet it. */
static bool send_keeper_away(pid_t pid, struct tbd_query_error *error)
{
    const struct timespec moment = { 0, LEAVE_NS };
    struct tbd_query_error ignored = { 0 };
    struct tbd_probe_client client;
    bool is_there = tbd_client_connect(&client, pid, error);

    if (!is_there)
        return false;
    for (int i = 0; i < LEAVE_TRIES && is_there; i++) {
        if (!tbd_client_order(&client, TBD_PROBE_LEAVE, NULL, error) && client.refusal) {
            tbd_client_close(&client);
            return false;
        }
        tbd_client_close(&client);
        nanosleep(&moment, NULL);
        is_there = tbd_client_connect(&client, pid, &ignored);
    }
    *error = (struct tbd_query_error){ 0 };
    tbd_client_close(&client);
    return !is_there || tbd_query_wrong(error, TBD_BUSY, 0, 0,
                                        "process %d: what waits beside it does not go", (int)pid);
}

static bool has_keeper(pid_t pid)
{
    struct tbd_query_error ignored = { 0 };
    struct tbd_probe_client client;
    bool is_there = tbd_client_connect(&client, pid, &ignored);

    tbd_client_close(&client);
    return is_there;
}

int tbd_stop_run(int argc, char **argv)
{
    struct tbd_query_error error = { 0 };
    bool done;
    pid_t pid;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        puts(
            "usage: tbd stop PID\n\nThe process goes on natively: what records it, or waits beside it for `tbd probe`, goes "
            "away.");
        return 0;
    }
    if (argc != 2 || !tbd_client_read_pid(argv[1], &pid)) {
        fputs("tbd stop: it takes the number of a process\n", stderr);
        return EXIT_USAGE;
    }
    done = tbd_attach_has_stream(pid) ? tbd_let_go_process(pid, &error)
                                      : send_keeper_away(pid, &error);
    return done ? 0 : fail("stop", &error);
}

int tbd_take_process(pid_t pid, const char *how, const char *options)
{
    struct tbd_query_error error = { 0 };
    bool records = strcmp(how, "record") == 0;
    struct tbd_taken taken;

    if (has_keeper(pid) && !send_keeper_away(pid, &error))
        return fail(how, &error);
    if (!tbd_take(pid, options, records, &taken, &error))
        return fail(how, &error);
    fprintf(stderr,
            "tbd %s: process %d %s, %zu threads; all stood still for %" PRIu64 ".%" PRIu64 " ms\n",
            how, (int)pid, records ? "is recorded" : "has rings", taken.threads,
            taken.stopped_ns / 1000000, taken.stopped_ns / 100000 % 10);
    return 0;
}

int tbd_take_run(int argc, char **argv)
{
    struct tbd_query_error error = { 0 };
    int status = 0;
    pid_t pid;

    if (argc != 4 || !tbd_client_read_pid(argv[2], &pid)) {
        fputs("tbd: -p takes the number of a process\n", stderr);
        return EXIT_USAGE;
    }
    if (!has_keeper(pid) || !tbd_attach_is_forbidden(pid))
        return tbd_take_process(pid, argv[1], argv[3]);
    return tbd_deputy_ask(pid, argv[1], argv[3], &status, &error) ? status : fail(argv[1], &error);
}
