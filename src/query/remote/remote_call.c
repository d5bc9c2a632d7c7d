// SPDX-License-Identifier: MIT
/* remote_call.c - calls of the program's functions by the client: packets that write
 *
 * A client calls a function by writing: arguments, a return address, registers.  A recording cannot be changed, so this goes into a
 * copy of the state (remote_copy.h):
 *
 *   none -> announced (gdb reads $_siginfo, lldb saves the registers) -> a write: active -> runs -> registers restored: rests
 *        -> the next call has a copy of its own, unless its argument (a string) was written into this one's memory meanwhile
 *
 * While a copy is active, registers and memory are those of the copy.  Any other motion ends it.
 *
 * REMOTE_CALL-1  What is not announced is refused, so `print x = 5` says that it cannot be done (not checked: wake() has
 *   the only place that starts a copy). */
#include "query/remote/remote_private.h"

#include "query/remote/remote_registers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse_change(struct tbd_remote_server *server)
{
    tbd_reply_text(&server->reply, "E.a recording cannot be changed");
}

/* ---- the copy ---- */

static void print(void *context, const char *text, size_t bytes)
{
    char part[513];

    for (size_t done = 0; done < bytes;) {
        size_t count = bytes - done < sizeof(part) - 1 ? bytes - done : sizeof(part) - 1;

        memcpy(part, text + done, count);
        part[count] = '\0';
        tbd_remote_console(context, part);
        done += count;
    }
}

static bool is_interrupted(void *context)
{
    struct tbd_remote_server *server = context;

    return tbd_packet_is_interrupted(&server->link);
}

void tbd_remote_call_end(struct tbd_remote_server *server)
{
    tbd_copy_end(server->calls.copy);
    free(server->calls.before);
    server->calls = (struct tbd_remote_calls){ .copy = NULL };
}

static bool start(struct tbd_remote_server *server)
{
    struct tbd_remote_calls *calls = &server->calls;
    char why[128];

    tbd_remote_call_end(server);
    calls->before = calloc(1, sizeof(*calls->before));
    if (calls->before == NULL || !tbd_remote_read_state(server, calls->before))
        return false;
    calls->owner = (struct tbd_copy_owner){ .session = server->session,
                                            .at = server->motion.at,
                                            .thread = calls->before->regs.thread,
                                            .print = print,
                                            .is_interrupted = is_interrupted,
                                            .context = server };
    calls->copy = tbd_copy_start(&calls->owner, calls->before, why);
    if (calls->copy != NULL && !tbd_remote_pools_give(server, calls->copy)) {
        tbd_copy_end(calls->copy);
        calls->copy = NULL;
    }
    calls->is_active = calls->copy != NULL;
    if (calls->copy == NULL)
        tbd_reply_format(&server->reply, "E.no function can be called: %s", why);
    return calls->is_active;
}

/* Makes the copy active for a write.  False: the reply says why not. */
static bool wake(struct tbd_remote_server *server)
{
    struct tbd_remote_calls *calls = &server->calls;

    if (calls->is_active)
        return true;
    if (calls->is_prepared) {
        calls->is_prepared = false;
        calls->has_run = false;
        calls->is_active = true;
        return true;
    }
    if (calls->is_announced && start(server))
        return true;
    if (server->reply.bytes == 0)
        refuse_change(server);
    return false;
}

/* The call is over: what it has changed is the copy's alone. */
static void rest(struct tbd_remote_server *server)
{
    tbd_remote_pools_take(server, server->calls.copy);
    server->calls.is_active = server->calls.is_announced = false;
}

static bool is_as_before(const struct tbd_remote_calls *calls)
{
    const struct tbd_regs *now = &tbd_copy_state(calls->copy)->regs, *then = &calls->before->regs;

    return memcmp(now->gpr, then->gpr, sizeof(now->gpr)) == 0 && now->rip == then->rip;
}

/* ---- registers ---- */

void tbd_answer_write_registers(struct tbd_remote_server *server, const char *text)
{
    if (!wake(server))
        return;
    if (!tbd_remote_take_registers(server->session->info, text,
                                   tbd_copy_state(server->calls.copy))) {
        tbd_remote_refuse(server);
        return;
    }
    if (is_as_before(&server->calls))
        rest(server);
    tbd_remote_agree(server);
}

/* Is this the value that the register has anyway?  gdb restores all of them after a call. */
static bool is_recorded(struct tbd_remote_server *server, uint64_t number, const char *digits)
{
    struct tbd_reg_state *state = calloc(1, sizeof(*state));
    struct tbd_reply *reply = calloc(1, sizeof(*reply));
    bool same = state != NULL && reply != NULL && tbd_remote_read_state(server, state) &&
                tbd_remote_register(server->session->info, state, number, reply) &&
                strcmp(reply->text, digits) == 0;

    free(state);
    free(reply);
    return same;
}

/* "NUMBER=DIGITS" */
void tbd_answer_write_register(struct tbd_remote_server *server, const char *text)
{
    struct tbd_remote_calls *calls = &server->calls;
    uint64_t number;

    if (!tbd_remote_number(&text, &number) || !tbd_remote_skip(&text, "=")) {
        tbd_remote_refuse(server);
        return;
    }
    if (!calls->is_active && is_recorded(server, number, text)) {
        tbd_remote_agree(server);
        return;
    }
    if (!wake(server))
        return;
    if (!tbd_remote_take_register(server->session->info, text, number,
                                  tbd_copy_state(calls->copy))) {
        tbd_remote_refuse(server);
        return;
    }
    if (calls->has_run && is_as_before(calls))
        rest(server);
    tbd_remote_agree(server);
}

/* lldb's way to say that a call begins, and that it is over. */
void tbd_answer_save_registers(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    server->calls.is_announced = true;
    tbd_reply_text(&server->reply, "1");
}

void tbd_answer_restore_registers(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    if (server->calls.is_active) {
        *tbd_copy_state(server->calls.copy) = *server->calls.before;
        rest(server);
    }
    tbd_remote_agree(server);
}

/* ---- memory ---- */

/* Memory for a string that is the next call's argument: the last call has allocated it. */
static bool is_argument(const struct tbd_remote_calls *calls, uint64_t address)
{
    return calls->copy != NULL && calls->has_run && !calls->is_active && address == calls->result;
}

static void write_bytes(struct tbd_remote_server *server, uint64_t address, const void *bytes,
                        size_t count)
{
    struct tbd_remote_calls *calls = &server->calls;
    uint8_t *pool = calls->is_active ? NULL : tbd_remote_in_pool(server, address, count);

    if (pool != NULL) {
        memcpy(pool, bytes, count);
        tbd_remote_agree(server);
        return;
    }
    if (is_argument(calls, address))
        calls->is_prepared = true;
    else if (!wake(server))
        return;
    if (tbd_copy_write(calls->copy, address, bytes, count))
        tbd_remote_agree(server);
    else
        tbd_remote_refuse(server);
}

/* "ADDRESS,LENGTH:" */
static bool read_range(const char **io, uint64_t *out_address, uint64_t *out_bytes)
{
    return tbd_remote_number(io, out_address) && tbd_remote_skip(io, ",") &&
           tbd_remote_number(io, out_bytes) && tbd_remote_skip(io, ":");
}

void tbd_answer_write_memory(struct tbd_remote_server *server, const char *text)
{
    uint8_t bytes[TBD_PACKET_BYTES / 2];
    uint64_t address, count;

    if (!read_range(&text, &address, &count) || count > sizeof(bytes) ||
        !tbd_remote_hex(&text, bytes, (size_t)count))
        tbd_remote_refuse(server);
    else
        write_bytes(server, address, bytes, (size_t)count);
}

/* The bytes are binary, with } before those that are escaped. */
void tbd_answer_write_binary(struct tbd_remote_server *server, const char *text)
{
    uint8_t bytes[TBD_PACKET_BYTES];
    const char *end = server->packet + server->packet_bytes;
    uint64_t address, count;
    size_t used = 0;

    if (!read_range(&text, &address, &count)) {
        tbd_remote_refuse(server);
        return;
    }
    while (text < end && used < sizeof(bytes)) {
        bool is_escaped = *text == '}' && text + 1 < end;

        bytes[used++] = (uint8_t)(is_escaped ? text[1] ^ 0x20 : *text);
        text += is_escaped ? 2 : 1;
    }
    if (used != count)
        tbd_remote_refuse(server);
    else if (count == 0) /* the client finds out whether this packet is understood */
        tbd_remote_agree(server);
    else
        write_bytes(server, address, bytes, used);
}

/* ---- motion ---- */

/* Has the client only changed something, with no call?  Then its stack pointer is as it was. */
static bool is_a_call(const struct tbd_remote_calls *calls)
{
    const struct tbd_regs *now = &tbd_copy_state(calls->copy)->regs, *then = &calls->before->regs;

    return calls->has_run || now->gpr[TBD_RSP] != then->gpr[TBD_RSP];
}

static uint64_t *list_places(const struct tbd_remote_motion *motion, size_t *out_count)
{
    uint64_t *places = calloc(motion->count + 1, sizeof(*places));

    *out_count = 0;
    for (size_t i = 0; places != NULL && i < motion->count; i++)
        if (motion->points[i].kind <= TBD_POINT_HARDWARE)
            places[(*out_count)++] = motion->points[i].address;
    return places;
}

static struct tbd_remote_stop stop_of(struct tbd_remote_server *server, enum tbd_copy_end end,
                                      int signal)
{
    struct tbd_remote_stop stop = { .reason = TBD_STOP_STEP };

    switch (end) {
    case TBD_COPY_STEPPED: break;
    case TBD_COPY_TRAPPED:
        stop.reason = TBD_STOP_POINT;
        stop.point.kind = TBD_POINT_SOFTWARE;
        break;
    case TBD_COPY_INTERRUPTED: stop.reason = TBD_STOP_HALTED; break;
    case TBD_COPY_EXITED:
        tbd_remote_console(
            server,
            "tbdq: the function goes no further: it would end the program, get a signal, or wait "
            "for another thread for ever\n");
        break;
    case TBD_COPY_SIGNALLED: stop.reason = TBD_STOP_SIGNAL; break;
    }
    stop.number = (uint64_t)signal;
    return stop;
}

bool tbd_remote_call_goes_on(struct tbd_remote_server *server, bool steps,
                             struct tbd_remote_stop *out)
{
    struct tbd_remote_calls *calls = &server->calls;
    enum tbd_copy_end end = TBD_COPY_EXITED;
    uint64_t *places;
    size_t count;
    int signal = 0;

    if (!calls->is_active || !is_a_call(calls)) {
        if (calls->is_active)
            tbd_remote_console(server, "tbdq: a recording cannot be changed: what was written is "
                                       "forgotten\n");
        tbd_remote_call_end(server);
        return false;
    }
    places = list_places(&server->motion, &count);
    if (!calls->gets_signal)
        end = tbd_copy_run(calls->copy, places, places == NULL ? 0 : count, steps, &signal);
    calls->gets_signal = false;
    free(places);
    calls->has_run = true;
    calls->result = tbd_copy_state(calls->copy)->regs.gpr[TBD_RAX];
    *out = stop_of(server, end, signal);
    return true;
}
