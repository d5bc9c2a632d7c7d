// SPDX-License-Identifier: MIT
/* remote_state.c - packets about the state where the client stands: registers, memory, threads, objects */
#include "query/remote/remote_private.h"

#include "query/remote/remote_objects.h"
#include "query/remote/remote_registers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

/* ---- state ---- */

bool tbd_remote_read_state(struct tbd_remote_server *server, struct tbd_reg_state *out)
{
    *out = (struct tbd_reg_state){ 0 };
    return tbd_motion_state(&server->motion,
                            server->registers_of != 0 ? server->registers_of
                                                      : server->motion.thread,
                            out) == TBD_OK;
}

/* The same, of a call that is on its way. */
static bool shown_state(struct tbd_remote_server *server, struct tbd_reg_state *out)
{
    const struct tbd_remote_calls *calls = &server->calls;

    if (!calls->is_active ||
        (server->registers_of != 0 && server->registers_of != calls->owner.thread))
        return tbd_remote_read_state(server, out);
    *out = *tbd_copy_state(calls->copy);
    return true;
}

void tbd_answer_tell_registers(struct tbd_remote_server *server, const char *text)
{
    struct tbd_reg_state *state = calloc(1, sizeof(*state));

    (void)text;
    if (state != NULL && shown_state(server, state))
        tbd_remote_registers(server->session->info, state, &server->reply);
    else
        tbd_remote_refuse(server);
    free(state);
}

void tbd_answer_tell_register(struct tbd_remote_server *server, const char *text)
{
    struct tbd_reg_state *state = calloc(1, sizeof(*state));
    uint64_t number;

    if (state == NULL || !tbd_remote_number(&text, &number) || !shown_state(server, state) ||
        !tbd_remote_register(server->session->info, state, number, &server->reply))
        tbd_remote_refuse(server);
    free(state);
}

/* A call that is on its way has its own memory; else it is the recording's, and what only calls have. */
static bool read_bytes(struct tbd_remote_server *server, uint64_t address, uint8_t *out,
                       size_t bytes)
{
    struct tbd_remote_calls *calls = &server->calls;
    const uint8_t *pool = tbd_remote_in_pool(server, address, bytes);

    if (calls->is_active)
        return tbd_copy_read(calls->copy, address, out, bytes);
    if (pool != NULL)
        memcpy(out, pool, bytes);
    return pool != NULL ||
           tbd_session_read(server->session, server->motion.at, address, out, bytes) == TBD_OK ||
           (calls->copy != NULL && tbd_copy_read(calls->copy, address, out, bytes));
}

/* How many of the bytes are known, page by page. */
static size_t read_known(struct tbd_remote_server *server, uint64_t address, uint8_t *out,
                         size_t bytes)
{
    size_t done = 0;

    if (read_bytes(server, address, out, bytes))
        return bytes;
    while (done < bytes) {
        size_t part = (size_t)(PAGE - (address + done) % PAGE);

        if (part > bytes - done)
            part = bytes - done;
        if (!read_bytes(server, address + done, out + done, part))
            break;
        done += part;
    }
    return done;
}

void tbd_answer_tell_memory(struct tbd_remote_server *server, const char *text)
{
    uint8_t memory[TBD_PACKET_BYTES / 2];
    uint64_t address, bytes;
    size_t known;

    if (!tbd_remote_number(&text, &address) || !tbd_remote_skip(&text, ",") ||
        !tbd_remote_number(&text, &bytes) || address + bytes < address) {
        tbd_remote_refuse(server);
        return;
    }
    if (bytes > sizeof(memory))
        bytes = sizeof(memory);
    known = read_known(server, address, memory, (size_t)bytes);
    if (known == 0 && bytes != 0)
        tbd_remote_refuse(server);
    tbd_reply_hex(&server->reply, memory, known);
}

/* For lldb, which reads as much as the region that it is told. */
void tbd_answer_tell_region(struct tbd_remote_server *server, const char *text)
{
    struct tbd_reply *reply = &server->reply;
    const struct tbd_region *region;
    uint64_t address, start, end;

    if (!tbd_remote_number(&text, &address)) {
        tbd_remote_refuse(server);
        return;
    }
    region = tbd_remote_region(&server->motion, address, &start, &end);
    tbd_reply_format(reply, "start:%" PRIx64 ";size:%" PRIx64 ";", start, end - start);
    if (region == NULL)
        return;
    tbd_reply_format(reply, "permissions:%s%s%s;name:", region->prot & PROT_READ ? "r" : "",
                     region->prot & PROT_WRITE ? "w" : "", region->prot & PROT_EXEC ? "x" : "");
    tbd_reply_hex(reply, region->path, strlen(region->path));
    tbd_reply_text(reply, ";");
}

/* ---- threads ---- */

void tbd_answer_select_thread(struct tbd_remote_server *server, const char *text)
{
    char what = *text;
    uint32_t thread = 0;

    if (what == '\0') {
        tbd_remote_refuse(server);
        return;
    }
    text++;
    if (!tbd_remote_read_thread(&text, &thread) ||
        (thread != 0 && !tbd_remote_lives(&server->motion, thread))) {
        tbd_remote_refuse(server);
        return;
    }
    if (what == 'g')
        server->registers_of = thread;
    else
        server->moves = thread;
    tbd_remote_agree(server);
}

void tbd_answer_tell_if_alive(struct tbd_remote_server *server, const char *text)
{
    uint32_t thread;

    if (tbd_remote_read_thread(&text, &thread) && tbd_remote_lives(&server->motion, thread))
        tbd_remote_agree(server);
    else
        tbd_remote_refuse(server);
}

void tbd_answer_tell_current(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "QC");
    tbd_remote_tell_thread(server, server->motion.thread);
}

static void list_thread(void *context, const struct tbd_thread_info *thread)
{
    struct tbd_remote_server *server = context;

    tbd_reply_text(&server->reply, server->reply.bytes == 0 ? "m" : ",");
    tbd_remote_tell_thread(server, thread->tid);
}

void tbd_answer_list_threads(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    tbd_remote_threads(&server->motion, list_thread, server);
}

void tbd_answer_list_no_more(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "l");
}

/* ---- objects ---- */

/* "OBJECT:read:ANNEX:OFFSET,LENGTH" */
void tbd_answer_tell_object(struct tbd_remote_server *server, const char *text)
{
    char name[32], annex[64];
    size_t used = strcspn(text, ":"), bytes = 0, most;
    uint64_t offset, length;
    char *object;

    snprintf(name, sizeof(name), "%.*s", (int)used, text);
    text += used;
    if (!tbd_remote_skip(&text, ":read:"))
        return;
    used = strcspn(text, ":");
    snprintf(annex, sizeof(annex), "%.*s", (int)used, text);
    text += used;
    if (strcmp(name, "siginfo") == 0) /* gdb keeps it before it calls a function */
        server->calls.is_announced = true;
    object = tbd_remote_object(&server->motion, name, annex, &bytes);
    if (object == NULL || !tbd_remote_skip(&text, ":") || !tbd_remote_number(&text, &offset) ||
        !tbd_remote_skip(&text, ",") || !tbd_remote_number(&text, &length)) {
        tbd_remote_refuse(server);
        free(object);
        return;
    }
    if (offset > bytes)
        offset = bytes;
    most = length < bytes - offset ? (size_t)length : bytes - (size_t)offset;
    if (most > TBD_PACKET_BYTES / 2 - 1)
        most = TBD_PACKET_BYTES / 2 - 1;
    tbd_reply_text(&server->reply, offset + most == bytes ? "l" : "m");
    (void)tbd_reply_binary(&server->reply, object + offset, most);
    free(object);
}
