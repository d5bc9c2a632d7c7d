// SPDX-License-Identifier: MIT
/* remote_server.c - see remote_server.h
 *
 * One table has the packets that are understood; any other gets the empty answer, as the protocol says.
 *
 * REMOTE_SERVER-1  Whatever the client sends, each packet gets one answer, but for `k` (not checked: serve() has the
 *   only place that sends one) */
#include "query/remote/remote_server.h"

#include "query/prompt/command_line.h"
#include "query/remote/remote_private.h"
#include "query/text/user_interrupt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void tell_features(struct tbd_remote_server *server, const char *text)
{
    server->motion.names_process = strstr(text, "multiprocess+") != NULL;
    tbd_reply_format(
        &server->reply,
        "multiprocess+;PacketSize=%x;QStartNoAckMode+;vContSupported+;swbreak+;hwbreak+;"
        "ReverseStep+;ReverseContinue+;QPassSignals+;QCatchSyscalls+;"
        "qXfer:features:read+;qXfer:auxv:read+;qXfer:exec-file:read+;"
        "qXfer:threads:read+;qXfer:siginfo:read+;qXfer:memory-map:read+;"
        "qXfer:libraries-svr4:read+;ConditionalBreakpoints+",
        TBD_PACKET_BYTES);
}

static void go_quiet(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    server->goes_quiet = true;
    tbd_remote_agree(server);
}

static void tell_attached(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "1"); /* so gdb detaches in the end, and does not kill */
}

static void need_no_symbols(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    tbd_remote_agree(server);
}

static void leave(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    server->is_over = true;
    tbd_remote_agree(server);
}

static void die(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    server->is_over = server->has_no_reply = true;
}

/* Our commands for gdb: its next step only tells where it stands, after `monitor` has moved. */
static void arrive(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    server->has_arrived = true;
    tbd_remote_agree(server);
}

/* `monitor direction back`: for clients that know no way back.  False: it is another command. */
static bool is_direction(struct tbd_remote_server *server, const char *line)
{
    bool is_back = strcmp(line, "direction back") == 0;

    if (!is_back && strcmp(line, "direction forward") != 0)
        return false;
    server->motion.is_turned = is_back;
    tbd_remote_agree(server);
    return true;
}

/* `monitor`: a command may move, which gdb does not know. */
static void carry_out(struct tbd_remote_server *server, const char *text)
{
    char *answer = NULL, *line = malloc(TBD_PACKET_BYTES);
    size_t bytes = 0;
    struct tbd_position before = server->motion.at;
    FILE *out = line == NULL ? NULL : open_memstream(&answer, &bytes);

    if (out == NULL) {
        free(line);
        tbd_remote_refuse(server);
        return;
    }
    (void)tbd_remote_bytes(&text, line, TBD_PACKET_BYTES);
    if (is_direction(server, line)) {
        fclose(out);
        free(answer);
        free(line);
        return;
    }
    tbd_remote_call_end(server);
    tbd_session_move(server->session, before, server->motion.thread);
    (void)tbd_line_run(server->session, &(struct tbd_line_options){ .out = out, .quiet = true },
                       line);
    if (tbd_motion_take(&server->motion) == TBD_OK &&
        tbd_position_compare(before, server->motion.at) != 0)
        fprintf(out, "gdb sees the new position after: maintenance flush register-cache\n");
    if (fclose(out) == 0) {
        if (bytes > TBD_PACKET_BYTES / 2)
            bytes = TBD_PACKET_BYTES / 2;
        tbd_reply_hex(&server->reply, answer, bytes);
        if (bytes == 0)
            tbd_remote_agree(server);
    } else {
        tbd_remote_refuse(server);
    }
    free(answer);
    free(line);
}

// clang-format off
/* The first row that fits counts; `whole`: nothing may follow. */
static const struct {
    const char *begin;
    bool whole;
    void (*answer)(struct tbd_remote_server *server, const char *rest);
} packets[] = {
    { "?", true, tbd_answer_tell_why },
    { "g", true, tbd_answer_tell_registers },
    { "p", false, tbd_answer_tell_register },
    { "m", false, tbd_answer_tell_memory },
    { "G", false, tbd_answer_write_registers },
    { "P", false, tbd_answer_write_register },
    { "M", false, tbd_answer_write_memory },
    { "X", false, tbd_answer_write_binary },
    { "_M", false, tbd_answer_allocate },
    { "_m", false, tbd_answer_release },
    { "QSaveRegisterState", false, tbd_answer_save_registers },
    { "QRestoreRegisterState:", false, tbd_answer_restore_registers },
    { "QTbdArrive", true, arrive },
    { "H", false, tbd_answer_select_thread },
    { "T", false, tbd_answer_tell_if_alive },
    { "s", false, tbd_answer_step_forward },
    { "c", false, tbd_answer_run_forward },
    { "S", false, tbd_answer_step_forward },
    { "C", false, tbd_answer_run_forward },
    { "bs", true, tbd_answer_step_backward },
    { "bc", true, tbd_answer_run_backward },
    { "vCont?", true, tbd_answer_tell_actions },
    { "vCont", false, tbd_answer_resume },
    { "vFile:open:", false, tbd_answer_open_file },
    { "vFile:close:", false, tbd_answer_close_file },
    { "vFile:pread:", false, tbd_answer_read_file },
    { "vFile:fstat:", false, tbd_answer_stat_file },
    { "vFile:setfs:", false, tbd_answer_set_file_system },
    { "vFile:readlink:", false, tbd_answer_read_link },
    { "vKill", false, leave },
    { "Z", false, tbd_answer_add_point },
    { "z", false, tbd_answer_remove_point },
    { "qSupported", false, tell_features },
    { "QStartNoAckMode", true, go_quiet },
    { "QPassSignals:", false, tbd_answer_take_passed },
    { "QCatchSyscalls:", false, tbd_answer_catch_calls },
    { "qMemoryRegionInfo:", false, tbd_answer_tell_region },
    { "qXfer:", false, tbd_answer_tell_object },
    { "qAttached", false, tell_attached },
    { "qSymbol:", false, need_no_symbols },
    { "qfThreadInfo", true, tbd_answer_list_threads },
    { "qsThreadInfo", true, tbd_answer_list_no_more },
    { "qC", true, tbd_answer_tell_current },
    { "qRcmd,", false, carry_out },
    { "D", false, leave },
    { "k", true, die },
};
// clang-format on

static void answer(struct tbd_remote_server *server)
{
    const char *text;

    server->reply.bytes = 0;
    server->reply.text[0] = '\0';
    server->reply.is_full = server->has_no_reply = false;
    for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
        text = server->packet;
        if (!tbd_remote_skip(&text, packets[i].begin) || (packets[i].whole && *text != '\0'))
            continue;
        packets[i].answer(server, text);
        return;
    }
}

static void serve(struct tbd_remote_server *server)
{
    size_t bytes;

    while (!server->is_over) {
        enum tbd_packet_event event = tbd_packet_receive(&server->link, server->packet, &bytes);

        if (event == TBD_PACKET_END)
            return;
        if (event == TBD_PACKET_INTERRUPT) /* it came too late: nothing runs */
            continue;
        server->packet_bytes = bytes;
        answer(server);
        tbd_interrupt_clear();
        if (!server->has_no_reply &&
            !tbd_packet_send(&server->link, server->reply.text, server->reply.bytes))
            return;
        if (server->goes_quiet)
            server->link.is_unacknowledged = true;
    }
}

enum tbd_status tbd_remote_serve(struct tbd_session *session, int in, int out)
{
    struct tbd_remote_server *server = calloc(1, sizeof(*server));
    enum tbd_status status;

    if (server == NULL)
        return TBD_NOMEM;
    server->session = session;
    if (session->has_at) { /* commands move all the same, and the trace does not remember it */
        struct tbd_position at = session->at;

        session->has_at = false;
        session->is_private = true;
        tbd_session_move(session, at, session->thread);
    }
    for (size_t i = 0; i < TBD_REMOTE_FILES; i++)
        server->files[i] = -1;
    tbd_remote_link_init(&server->link, in, out);
    status = tbd_motion_start(&server->motion, session, &server->link);
    if (status == TBD_OK) {
        serve(server);
        tbd_session_move(session, server->motion.at, server->motion.thread);
    }
    for (size_t i = 0; i < TBD_REMOTE_FILES; i++)
        if (server->files[i] >= 0)
            close(server->files[i]);
    tbd_remote_call_end(server);
    tbd_remote_pools_free(server);
    tbd_motion_end(&server->motion);
    free(server);
    return status;
}
