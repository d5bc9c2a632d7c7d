// SPDX-License-Identifier: MIT
/* why_channels.c - see why_channels.h
 *
 * query/channels finds the calls that wrote the bytes.  A hop into another process is a hop like any other, in a
 * session of its own on that process's trace; sessions stay open until the end of the command. */
#include "query/why/why_channels.h"

#include "hooks/table/syscalls.h"
#include "query/output/output.h"
#include "query/text/user_interrupt.h"

#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(TBD_CHANNEL_PIECES_MAX <= TBD_WHY_INPUTS_MAX, "pieces are followed like inputs");

static bool reads_channels(uint64_t number)
{
    static const uint64_t calls[] = { SYS_read,    SYS_readv,    SYS_pread64, SYS_preadv,
                                      SYS_preadv2, SYS_recvfrom, SYS_recvmsg };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (calls[i] == number)
            return true;
    }
    return false;
}

static bool open_channels(struct tbd_why *why)
{
    if (why->channels == NULL)
        why->status = tbd_channels_open(why->own->session, &why->channels);
    if (why->status == TBD_NOTFOUND || why->status == TBD_IO) { /* the trace's folder has gone */
        why->status = TBD_OK;
        return false;
    }
    return why->status == TBD_OK;
}

/* The process as channels.h counts. */
static uint32_t number_of(const struct tbd_why *why, uint32_t process)
{
    return process == TBD_WHY_OWN ? tbd_channels_own(why->channels) : process;
}

static void note_piece(struct tbd_why *why, const struct tbd_channel_piece *piece)
{
    json_t *row = json_object();

    if (why->leads_to == NULL)
        why->leads_to = json_array();
    json_object_set_new(row, "process",
                        json_integer((json_int_t)tbd_channels_pid(why->channels, piece->process)));
    json_object_set_new(row, "trace",
                        tbd_output_text(tbd_channels_trace(why->channels, piece->process)));
    json_object_set_new(row, "position", tbd_rows_position(piece->at));
    json_object_set_new(row, "thread", json_integer((json_int_t)piece->thread));
    json_object_set_new(row, "addr", tbd_output_hex(piece->address));
    json_object_set_new(row, "bytes", json_integer((json_int_t)piece->bytes));
    json_array_append_new(why->leads_to, row);
}

static struct tbd_why_value value_of(const struct tbd_why *why,
                                     const struct tbd_channel_answer *answer, size_t index)
{
    const struct tbd_channel_piece *piece = &answer->pieces[index];

    return (struct tbd_why_value){
        .at = piece->at,
        .thread = piece->thread,
        .place = TBD_WHY_MEMORY,
        .address = piece->address,
        .bytes = piece->bytes,
        .process = piece->process == tbd_channels_own(why->channels) ? TBD_WHY_OWN : piece->process,
        .sent = answer->kind,
        .sent_by = piece->number,
    };
}

/* "written by process 12, process 13" */
static void say_writers(struct tbd_why *why, const struct tbd_channel_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        uint32_t process = answer->pieces[i].process;

        if (i != 0 && process == answer->pieces[i - 1].process)
            continue;
        tbd_why_say(why, "%s", i == 0 ? ", written by " : ", ");
        if (process == number_of(why, why->process))
            tbd_why_say(why, "this process");
        else
            tbd_why_say(why, "process %" PRIu32, tbd_channels_pid(why->channels, process));
    }
}

size_t tbd_why_from_channel(struct tbd_why *why, const struct tbd_why_value *value,
                            const struct tbd_event *call, struct tbd_why_value *out)
{
    struct tbd_channel_answer answer;
    enum tbd_status status;

    if (!reads_channels(call->number) || !open_channels(why))
        return 0;
    status = tbd_channels_find(why->channels, number_of(why, value->process), call->position.time,
                               value->address, value->bytes, &answer);
    if (status == TBD_NOMEM || status == TBD_INTERRUPTED) {
        why->status = status;
        return 0;
    }
    if (status != TBD_OK) {
        tbd_why_say(why, "; it is not known who wrote it: %s", tbd_status_text(status));
        return 0;
    }
    if (answer.kind != NULL)
        tbd_why_say(why, " from %s", answer.kind);
    if (answer.refusal[0] != '\0')
        tbd_why_say(why, "; it is not known who wrote it: %s", answer.refusal);
    say_writers(why, &answer);
    for (size_t i = 0; i < answer.count; i++) {
        out[i] = value_of(why, &answer, i);
        note_piece(why, &answer.pieces[i]);
    }
    return answer.count;
}

bool tbd_why_enter(struct tbd_why *why, uint32_t process)
{
    struct tbd_session *session;

    if (process == why->process)
        return true;
    why->process = process;
    why->run = why->own;
    if (process == TBD_WHY_OWN)
        return true;
    why->status = tbd_channels_session(why->channels, process, &session);
    if (why->status != TBD_OK)
        return false;
    why->beside = *why->own;
    why->beside.session = session;
    why->run = &why->beside;
    return true;
}

void tbd_why_show_sender(struct tbd_why *why, const struct tbd_why_value *value, uint32_t depth)
{
    const char *name = tbd_syscall_name(value->sent_by);
    struct tbd_place place;

    if (value->sent == NULL)
        return;
    why->status = tbd_session_place(why->run->session, value->at, &place);
    if (why->status != TBD_OK)
        return;
    why->what[0] = '\0';
    tbd_why_say(why, "written to %s by the system call %s", value->sent, name == NULL ? "?" : name);
    tbd_why_add_row(
        why, value,
        &(struct tbd_event){ .position = value->at, .pc = place.pc, .thread = place.thread },
        depth);
}

/* Windows have numbers in their own trace only, so a line of its own says what another process's lacks. */
static void tell_left_out(const struct tbd_session *session)
{
    fprintf(stderr, "tbdq: note: the answer may be incomplete: of process %" PRIu32 ", ",
            session->info->pid);
    if (session->left_out.count != 0 || session->left_out.has_unlisted) {
        fprintf(stderr, "windows ");
        tbd_left_out_print(&session->left_out, stderr);
        fprintf(stderr, " were left out\n");
    } else {
        fprintf(stderr, "what came after the last window is lost\n");
    }
}

void tbd_why_end_channels(struct tbd_why *why)
{
    struct tbd_session *session;
    uint32_t process = 0;

    while (why->channels != NULL &&
           (session = tbd_channels_opened(why->channels, &process)) != NULL) {
        if (tbd_left_out_is_empty(&session->left_out))
            continue;
        tell_left_out(session);
        why->own->session->left_out.has_unlisted = true;
    }
    (void)tbd_why_enter(why, TBD_WHY_OWN);
    tbd_channels_close(why->channels);
    why->channels = NULL;
}
