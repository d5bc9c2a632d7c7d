// SPDX-License-Identifier: MIT
/* remote_run.c - packets that move, what they stop at, and how a stop is told */
#include "query/remote/remote_private.h"

#include "query/remote/remote_condition.h"
#include "query/remote/remote_objects.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- signals ---- */

/* gdb's number of a Linux signal (include/gdb/signals.def of gdb); the others are equal in both. */
static const struct {
    uint8_t linux_number, gdb_number;
} signals[] = {
    { SIGBUS, 10 },  { SIGUSR1, 30 }, { SIGUSR2, 31 }, { SIGCHLD, 20 },    { SIGCONT, 19 },
    { SIGSTOP, 17 }, { SIGTSTP, 18 }, { SIGURG, 16 },  { SIGIO, 23 },      { SIGPWR, 32 },
    { SIGSYS, 12 },  { 32, 77 },      { 64, 78 },      { SIGSTKFLT, 143 },
};

#define FIRST_REAL_TIME 33u /* as gdb counts them: 45 is SIG33 */
#define GDB_REAL_TIME   45u

static unsigned to_gdb(uint64_t number)
{
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (signals[i].linux_number == number)
            return signals[i].gdb_number;
    return (unsigned)(number >= FIRST_REAL_TIME && number < 64
                          ? number - FIRST_REAL_TIME + GDB_REAL_TIME
                          : number);
}

/* Notes that the signal with gdb's number is passed on without a stop. */
static void pass(struct tbd_remote_server *server, uint64_t gdb_number)
{
    for (unsigned i = 1; i < TBD_REMOTE_PASSED; i++)
        if (to_gdb(i) == gdb_number)
            server->motion.passed[i] = true;
}

void tbd_answer_take_passed(struct tbd_remote_server *server, const char *text)
{
    uint64_t number;

    memset(server->motion.passed, 0, sizeof(server->motion.passed));
    while (tbd_remote_number(&text, &number)) {
        pass(server, number);
        if (!tbd_remote_skip(&text, ";"))
            break;
    }
    tbd_remote_agree(server);
}

/* ---- stops ---- */

void tbd_remote_tell_thread(struct tbd_remote_server *server, uint32_t thread)
{
    if (server->motion.names_process)
        tbd_reply_format(&server->reply, "p%" PRIx32 ".", server->session->info->pid);
    tbd_reply_format(&server->reply, "%" PRIx32, thread);
}

static const char *const point_words[TBD_POINT_KINDS] = { "swbreak", "hwbreak", "watch", "rwatch",
                                                          "awatch" };

static void tell_stop(struct tbd_remote_server *server)
{
    const struct tbd_remote_stop *stop = &server->stop;
    struct tbd_reply *reply = &server->reply;
    unsigned signal = SIGTRAP;

    if (stop->reason == TBD_STOP_SIGNAL)
        signal = to_gdb(stop->number);
    if (stop->reason == TBD_STOP_HALTED)
        signal = SIGINT;
    tbd_reply_format(reply, "T%02xthread:", signal & 0xff);
    tbd_remote_tell_thread(server, server->motion.thread);
    tbd_reply_text(reply, ";");
    if (stop->reason == TBD_STOP_POINT && stop->point.kind <= TBD_POINT_HARDWARE)
        tbd_reply_format(reply, "%s:;", point_words[stop->point.kind]);
    else if (stop->reason == TBD_STOP_POINT)
        tbd_reply_format(reply, "%s:%" PRIx64 ";", point_words[stop->point.kind],
                         stop->point.address);
    if (stop->reason == TBD_STOP_CALL)
        tbd_reply_format(reply, "syscall_entry:%" PRIx64 ";", stop->number);
    if (stop->reason == TBD_STOP_RETURN)
        tbd_reply_format(reply, "syscall_return:%" PRIx64 ";", stop->number);
    if (stop->reason == TBD_STOP_ENDS)
        tbd_reply_format(reply, "replaylog:%s;", stop->backward ? "begin" : "end");
}

/* A line on the client's console, while it waits for a stop. */
void tbd_remote_console(struct tbd_remote_server *server, const char *text)
{
    struct tbd_reply *line = calloc(1, sizeof(*line));

    if (line == NULL)
        return;
    tbd_reply_text(line, "O");
    tbd_reply_hex(line, text, strlen(text));
    if (!line->is_full && !tbd_packet_send(&server->link, line->text, line->bytes))
        server->is_over = true;
    free(line);
}

static void stopped(struct tbd_remote_server *server, struct tbd_remote_stop stop)
{
    char text[512];

    server->stop = stop;
    server->registers_of = server->moves = 0;
    if (stop.reason == TBD_STOP_FAILED) {
        snprintf(text, sizeof(text), "tbdq: %s%s%s\n", tbd_status_text(stop.why),
                 server->session->why.detail[0] != '\0' ? ": " : "", server->session->why.detail);
        tbd_remote_console(server, text);
    }
    tell_stop(server);
}

void tbd_answer_tell_why(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    tell_stop(server);
}

/* ---- motion ---- */

static uint32_t thread_to_move(const struct tbd_remote_server *server)
{
    return server->moves != 0 ? server->moves : server->motion.thread;
}

/* What comes before any motion: a call goes on, or is given up; the client may not know yet where it stands.  True: that was all. */
static bool is_elsewhere(struct tbd_remote_server *server, bool backward, bool steps)
{
    struct tbd_remote_stop stop = { .reason = TBD_STOP_STEP };

    if (backward)
        tbd_remote_call_end(server);
    else if (tbd_remote_call_goes_on(server, steps, &stop)) {
        stopped(server, stop);
        return true;
    }
    if (!server->has_arrived)
        return false;
    server->has_arrived = false;
    stopped(server, stop);
    return true;
}

static void step(struct tbd_remote_server *server, uint32_t thread, bool backward, uint64_t from,
                 uint64_t to)
{
    if (!is_elsewhere(server, backward, true))
        stopped(server, tbd_motion_step(&server->motion, thread,
                                        backward != server->motion.is_turned, from, to));
}

static void run(struct tbd_remote_server *server, bool backward)
{
    if (!is_elsewhere(server, backward, false))
        stopped(server, tbd_motion_run(&server->motion, backward != server->motion.is_turned));
}

void tbd_answer_step_forward(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    step(server, thread_to_move(server), false, 0, 0);
}

void tbd_answer_step_backward(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    step(server, thread_to_move(server), true, 0, 0);
}

void tbd_answer_run_forward(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    run(server, false);
}

void tbd_answer_run_backward(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    run(server, true);
}

/* A thread of the packet, "TID", "pPID.TID" or "pPID": -1 and 0 are all and any of them. */
bool tbd_remote_read_thread(const char **io, uint32_t *out)
{
    uint64_t number = 0;

    *out = 0;
    if (tbd_remote_skip(io, "p")) {
        if (!tbd_remote_skip(io, "-1") && !tbd_remote_number(io, &number))
            return false;
        if (!tbd_remote_skip(io, "."))
            return true;
    }
    if (tbd_remote_skip(io, "-1"))
        return true;
    if (!tbd_remote_number(io, &number) || number > UINT32_MAX)
        return false;
    *out = (uint32_t)number;
    return true;
}

/* "vCont;ACTION[:THREAD];...": one step is carried out, the first; without one, all run. */
void tbd_answer_resume(struct tbd_remote_server *server, const char *text)
{
    server->calls.gets_signal = false;
    while (tbd_remote_skip(&text, ";")) {
        char action = *text;
        uint32_t thread = 0;
        uint64_t from = 0, to = 0;

        if (action == '\0')
            break;
        text++;
        if ((action == 'C' || action == 'S') && !tbd_remote_number(&text, &from))
            break;
        server->calls.gets_signal |= from != 0;
        if (action == 'r' && (!tbd_remote_number(&text, &from) || !tbd_remote_skip(&text, ",") ||
                              !tbd_remote_number(&text, &to)))
            break;
        if (tbd_remote_skip(&text, ":") && !tbd_remote_read_thread(&text, &thread))
            break;
        if (thread != 0 && !tbd_remote_lives(&server->motion, thread))
            break;
        if (action == 's' || action == 'S' || action == 'r') {
            step(server, thread != 0 ? thread : thread_to_move(server), false,
                 action == 'r' ? from : 0, to);
            return;
        }
        if (action != 'c' && action != 'C')
            break;
        if (*text == '\0') {
            tbd_answer_run_forward(server, text);
            return;
        }
    }
    tbd_remote_refuse(server);
}

void tbd_answer_tell_actions(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "vCont;c;C;s;S;r");
}

/* ---- points ---- */

/* "KIND,ADDRESS,LENGTH": the length of a place is that of an instruction of the program's, not of ours. */
static bool read_point(const char **io, struct tbd_remote_point *out)
{
    uint64_t kind, bytes;

    *out = (struct tbd_remote_point){ 0 };
    if (!tbd_remote_number(io, &kind) || kind >= TBD_POINT_KINDS || !tbd_remote_skip(io, ",") ||
        !tbd_remote_number(io, &out->address) || !tbd_remote_skip(io, ",") ||
        !tbd_remote_number(io, &bytes))
        return false;
    out->kind = (enum tbd_remote_point_kind)kind;
    out->bytes = kind >= TBD_POINT_WRITE ? bytes : 0;
    return kind <= TBD_POINT_HARDWARE || (bytes != 0 && out->address + bytes >= out->address);
}

/* Adds " or ..." to the condition.  False: it could not be taken, so there is none. */
static bool join(char **condition, const uint8_t *code, size_t bytes)
{
    char *one = tbd_remote_condition(code, bytes), *both = NULL;

    if (one != NULL && *condition != NULL && asprintf(&both, "(%s) or (%s)", *condition, one) < 0)
        both = NULL;
    if (*condition == NULL)
        both = one;
    else
        free(one);
    free(both == *condition ? NULL : *condition);
    *condition = both;
    return both != NULL;
}

/* ";X LENGTH,CODE..." after a point: it is a stop if one of the conditions holds.  What we cannot evaluate is left to the client,
 * which looks at each stop itself. */
static char *read_conditions(const char *text)
{
    char *condition = NULL;
    uint8_t code[1024];
    uint64_t bytes;

    if (!tbd_remote_skip(&text, ";"))
        return NULL;
    while (tbd_remote_skip(&text, "X")) {
        if (!tbd_remote_number(&text, &bytes) || !tbd_remote_skip(&text, ",") ||
            bytes >= sizeof(code) || !tbd_remote_hex(&text, code, (size_t)bytes) ||
            !join(&condition, code, (size_t)bytes)) {
            free(condition);
            return NULL;
        }
    }
    return condition;
}

void tbd_answer_add_point(struct tbd_remote_server *server, const char *text)
{
    struct tbd_remote_point point;

    if (!read_point(&text, &point)) {
        tbd_remote_refuse(server);
        return;
    }
    if (point.kind <= TBD_POINT_HARDWARE)
        point.condition = read_conditions(text);
    if (tbd_motion_add(&server->motion, &point))
        tbd_remote_agree(server);
    else
        tbd_remote_refuse(server);
}

void tbd_answer_remove_point(struct tbd_remote_server *server, const char *text)
{
    struct tbd_remote_point point;

    if (!read_point(&text, &point)) {
        tbd_remote_refuse(server);
        return;
    }
    tbd_motion_remove(&server->motion, &point);
    tbd_remote_agree(server);
}

/* "1;NUMBER...", "1" for all, "0" */
void tbd_answer_catch_calls(struct tbd_remote_server *server, const char *text)
{
    struct tbd_remote_motion *motion = &server->motion;
    uint64_t number, *calls;

    free(motion->calls);
    motion->calls = NULL;
    motion->call_count = 0;
    motion->catches = tbd_remote_skip(&text, "1");
    while (motion->catches && tbd_remote_skip(&text, ";") && tbd_remote_number(&text, &number)) {
        calls = realloc(motion->calls, (motion->call_count + 1) * sizeof(*calls));
        if (calls == NULL)
            break;
        motion->calls = calls;
        motion->calls[motion->call_count++] = number;
    }
    tbd_remote_agree(server);
}
