// SPDX-License-Identifier: MIT
/* remote_server.c - see remote_server.h
 *
 * One table has the packets that are understood; any other gets the empty answer, as the protocol says.
 *
 * REMOTE_SERVER-1  Whatever the client sends, each packet gets one answer, but for `k` (not checked: serve() has the
 *   only place that sends one) */
#include "query/remote/remote_server.h"

#include "query/prompt/command_line.h"
#include "query/remote/remote_objects.h"
#include "query/remote/remote_registers.h"
#include "query/text/user_interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 64
#define PAGE      4096u

struct server {
    struct tbd_session *session;
    struct tbd_remote_link link;
    struct tbd_remote_motion motion;
    struct tbd_remote_stop stop; /* the last one */
    uint32_t registers_of;       /* thread of `g` and `p`; 0: the one that stopped */
    uint32_t moves;              /* thread of `s`; 0: the one that stopped */
    int files[FILES_MAX];        /* of vFile; -1: free */
    char packet[TBD_PACKET_BYTES + 1];
    struct tbd_reply reply;
    bool goes_quiet; /* from the next packet on nothing is acknowledged */
    bool is_over, has_no_reply;
};

static void refuse(struct server *server)
{
    tbd_reply_text(&server->reply, "E01");
}

static void agree(struct server *server)
{
    tbd_reply_text(&server->reply, "OK");
}

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
static void pass(struct server *server, uint64_t gdb_number)
{
    for (unsigned i = 1; i < TBD_REMOTE_PASSED; i++)
        if (to_gdb(i) == gdb_number)
            server->motion.passed[i] = true;
}

static void take_passed(struct server *server, const char *text)
{
    uint64_t number;

    memset(server->motion.passed, 0, sizeof(server->motion.passed));
    while (tbd_remote_number(&text, &number)) {
        pass(server, number);
        if (!tbd_remote_skip(&text, ";"))
            break;
    }
    agree(server);
}

/* ---- stops ---- */

static void tell_thread(struct server *server, uint32_t thread)
{
    if (server->motion.names_process)
        tbd_reply_format(&server->reply, "p%" PRIx32 ".", server->session->info->pid);
    tbd_reply_format(&server->reply, "%" PRIx32, thread);
}

static const char *const point_words[TBD_POINT_KINDS] = { "swbreak", "hwbreak", "watch", "rwatch",
                                                          "awatch" };

static void tell_stop(struct server *server)
{
    const struct tbd_remote_stop *stop = &server->stop;
    struct tbd_reply *reply = &server->reply;
    unsigned signal = SIGTRAP;

    if (stop->reason == TBD_STOP_SIGNAL)
        signal = to_gdb(stop->number);
    if (stop->reason == TBD_STOP_HALTED)
        signal = SIGINT;
    tbd_reply_format(reply, "T%02xthread:", signal & 0xff);
    tell_thread(server, server->motion.thread);
    tbd_reply_text(reply, ";");
    if (stop->reason == TBD_STOP_POINT && stop->point.kind <= TBD_POINT_HARDWARE)
        tbd_reply_format(reply, "%s:;", point_words[stop->point.kind]);
    else if (stop->reason == TBD_STOP_POINT)
        tbd_reply_format(reply, "%s:%" PRIx64 ";", point_words[stop->point.kind],
                         stop->point.address);
    if (stop->reason == TBD_STOP_CALL)
        tbd_reply_format(reply, "syscall_entry:%" PRIx64 ";", stop->number);
    if (stop->reason == TBD_STOP_ENDS)
        tbd_reply_format(reply, "replaylog:%s;", stop->backward ? "begin" : "end");
}

/* A line on the client's console, while it waits for a stop. */
static void print_on_console(struct server *server, const char *text)
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

static void stopped(struct server *server, struct tbd_remote_stop stop)
{
    char text[512];

    server->stop = stop;
    server->registers_of = server->moves = 0;
    if (stop.reason == TBD_STOP_FAILED) {
        snprintf(text, sizeof(text), "tbdq: %s%s%s\n", tbd_status_text(stop.why),
                 server->session->why.detail[0] != '\0' ? ": " : "", server->session->why.detail);
        print_on_console(server, text);
    }
    tell_stop(server);
}

static void tell_why(struct server *server, const char *text)
{
    (void)text;
    tell_stop(server);
}

/* ---- motion ---- */

static uint32_t thread_to_move(const struct server *server)
{
    return server->moves != 0 ? server->moves : server->motion.thread;
}

static void step(struct server *server, uint32_t thread, bool backward, uint64_t from, uint64_t to)
{
    stopped(server, tbd_motion_step(&server->motion, thread, backward, from, to));
}

static void step_forward(struct server *server, const char *text)
{
    (void)text;
    step(server, thread_to_move(server), false, 0, 0);
}

static void step_backward(struct server *server, const char *text)
{
    (void)text;
    step(server, thread_to_move(server), true, 0, 0);
}

static void run_forward(struct server *server, const char *text)
{
    (void)text;
    stopped(server, tbd_motion_run(&server->motion, false));
}

static void run_backward(struct server *server, const char *text)
{
    (void)text;
    stopped(server, tbd_motion_run(&server->motion, true));
}

/* A thread of the packet, "TID", "pPID.TID" or "pPID": -1 and 0 are all and any of them. */
static bool read_thread(const char **io, uint32_t *out)
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
static void resume(struct server *server, const char *text)
{
    while (tbd_remote_skip(&text, ";")) {
        char action = *text;
        uint32_t thread = 0;
        uint64_t from = 0, to = 0;

        if (action == '\0')
            break;
        text++;
        if ((action == 'C' || action == 'S') && !tbd_remote_number(&text, &from))
            break;
        if (action == 'r' && (!tbd_remote_number(&text, &from) || !tbd_remote_skip(&text, ",") ||
                              !tbd_remote_number(&text, &to)))
            break;
        if (tbd_remote_skip(&text, ":") && !read_thread(&text, &thread))
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
            run_forward(server, text);
            return;
        }
    }
    refuse(server);
}

static void tell_actions(struct server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "vCont;c;C;s;S;r");
}

/* ---- points ---- */

/* "KIND,ADDRESS,LENGTH": the length of a place is that of an instruction of the program's, not of ours. */
static bool read_point(const char *text, struct tbd_remote_point *out)
{
    uint64_t kind, bytes;

    if (!tbd_remote_number(&text, &kind) || kind >= TBD_POINT_KINDS ||
        !tbd_remote_skip(&text, ",") || !tbd_remote_number(&text, &out->address) ||
        !tbd_remote_skip(&text, ",") || !tbd_remote_number(&text, &bytes))
        return false;
    out->kind = (enum tbd_remote_point_kind)kind;
    out->bytes = kind >= TBD_POINT_WRITE ? bytes : 0;
    return kind <= TBD_POINT_HARDWARE || (bytes != 0 && out->address + bytes >= out->address);
}

static void add_point(struct server *server, const char *text)
{
    struct tbd_remote_point point;

    if (read_point(text, &point) && tbd_motion_add(&server->motion, &point))
        agree(server);
    else
        refuse(server);
}

static void remove_point(struct server *server, const char *text)
{
    struct tbd_remote_point point;

    if (!read_point(text, &point)) {
        refuse(server);
        return;
    }
    tbd_motion_remove(&server->motion, &point);
    agree(server);
}

/* "1;NUMBER...", "1" for all, "0" */
static void catch_calls(struct server *server, const char *text)
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
    agree(server);
}

/* ---- state ---- */

static bool read_state(struct server *server, struct tbd_reg_state *out)
{
    enum tbd_status status;

    *out = (struct tbd_reg_state){ 0 };
    server->session->thread =
        server->registers_of != 0 ? server->registers_of : server->motion.thread;
    status = tbd_session_regs(server->session, server->motion.at, out);
    server->session->thread = 0;
    return status == TBD_OK;
}

static void tell_registers(struct server *server, const char *text)
{
    struct tbd_reg_state *state = calloc(1, sizeof(*state));

    (void)text;
    if (state != NULL && read_state(server, state))
        tbd_remote_registers(server->session->info, state, &server->reply);
    else
        refuse(server);
    free(state);
}

static void tell_register(struct server *server, const char *text)
{
    struct tbd_reg_state *state = calloc(1, sizeof(*state));
    uint64_t number;

    if (state == NULL || !tbd_remote_number(&text, &number) || !read_state(server, state) ||
        !tbd_remote_register(server->session->info, state, number, &server->reply))
        refuse(server);
    free(state);
}

/* How many of the bytes are known, page by page. */
static size_t read_known(struct server *server, uint64_t address, uint8_t *out, size_t bytes)
{
    size_t done = 0;

    if (tbd_session_read(server->session, server->motion.at, address, out, bytes) == TBD_OK)
        return bytes;
    while (done < bytes) {
        size_t part = (size_t)(PAGE - (address + done) % PAGE);

        if (part > bytes - done)
            part = bytes - done;
        if (tbd_session_read(server->session, server->motion.at, address + done, out + done,
                             part) != TBD_OK)
            break;
        done += part;
    }
    return done;
}

static void tell_memory(struct server *server, const char *text)
{
    uint8_t memory[TBD_PACKET_BYTES / 2];
    uint64_t address, bytes;
    size_t known;

    if (!tbd_remote_number(&text, &address) || !tbd_remote_skip(&text, ",") ||
        !tbd_remote_number(&text, &bytes) || address + bytes < address) {
        refuse(server);
        return;
    }
    if (bytes > sizeof(memory))
        bytes = sizeof(memory);
    known = read_known(server, address, memory, (size_t)bytes);
    if (known == 0 && bytes != 0)
        refuse(server);
    tbd_reply_hex(&server->reply, memory, known);
}

static void refuse_change(struct server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "E.a recording cannot be changed");
}

/* ---- threads ---- */

static void select_thread(struct server *server, const char *text)
{
    char what = *text;
    uint32_t thread = 0;

    if (what == '\0') {
        refuse(server);
        return;
    }
    text++;
    if (!read_thread(&text, &thread) ||
        (thread != 0 && !tbd_remote_lives(&server->motion, thread))) {
        refuse(server);
        return;
    }
    if (what == 'g')
        server->registers_of = thread;
    else
        server->moves = thread;
    agree(server);
}

static void tell_if_alive(struct server *server, const char *text)
{
    uint32_t thread;

    if (read_thread(&text, &thread) && tbd_remote_lives(&server->motion, thread))
        agree(server);
    else
        refuse(server);
}

static void tell_current(struct server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "QC");
    tell_thread(server, server->motion.thread);
}

static void list_thread(void *context, const struct tbd_thread_info *thread)
{
    struct server *server = context;

    tbd_reply_text(&server->reply, server->reply.bytes == 0 ? "m" : ",");
    tell_thread(server, thread->tid);
}

static void list_threads(struct server *server, const char *text)
{
    (void)text;
    tbd_remote_threads(&server->motion, list_thread, server);
}

static void list_no_more(struct server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "l");
}

/* ---- objects ---- */

/* "OBJECT:read:ANNEX:OFFSET,LENGTH" */
static void tell_object(struct server *server, const char *text)
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
    object = tbd_remote_object(&server->motion, name, annex, &bytes);
    if (object == NULL || !tbd_remote_skip(&text, ":") || !tbd_remote_number(&text, &offset) ||
        !tbd_remote_skip(&text, ",") || !tbd_remote_number(&text, &length)) {
        refuse(server);
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

/* ---- files ---- */

enum { FILE_ENOENT = 2, FILE_EBADF = 9, FILE_EINVAL = 22, FILE_EUNKNOWN = 9999 }; /* gdb's */

static void fail_file(struct server *server, unsigned error)
{
    tbd_reply_format(&server->reply, "F-1,%x", error);
}

static void open_file(struct server *server, const char *text)
{
    char path[PATH_MAX];
    uint64_t flags;
    int slot = 0;

    (void)tbd_remote_bytes(&text, path, sizeof(path));
    if (!tbd_remote_skip(&text, ",") || !tbd_remote_number(&text, &flags) || flags != 0) {
        fail_file(server, FILE_EINVAL);
        return;
    }
    while (slot < FILES_MAX && server->files[slot] >= 0)
        slot++;
    if (slot < FILES_MAX)
        server->files[slot] = tbd_remote_open(&server->motion, path);
    if (slot == FILES_MAX || server->files[slot] < 0)
        fail_file(server, slot == FILES_MAX ? FILE_EUNKNOWN : FILE_ENOENT);
    else
        tbd_reply_format(&server->reply, "F%x", (unsigned)slot);
}

/* The slot that the packet names. */
static bool read_slot(struct server *server, const char **io, int **out)
{
    uint64_t slot;

    if (!tbd_remote_number(io, &slot) || slot >= FILES_MAX || server->files[slot] < 0)
        return false;
    *out = &server->files[slot];
    return true;
}

static void close_file(struct server *server, const char *text)
{
    int *slot;

    if (!read_slot(server, &text, &slot)) {
        fail_file(server, FILE_EBADF);
        return;
    }
    close(*slot);
    *slot = -1;
    tbd_reply_text(&server->reply, "F0");
}

static void read_file(struct server *server, const char *text)
{
    char data[TBD_PACKET_BYTES / 2 - 32];
    uint64_t bytes, offset;
    ssize_t got;
    int *slot;

    if (!read_slot(server, &text, &slot) || !tbd_remote_skip(&text, ",") ||
        !tbd_remote_number(&text, &bytes) || !tbd_remote_skip(&text, ",") ||
        !tbd_remote_number(&text, &offset) || offset > INT64_MAX) {
        fail_file(server, FILE_EBADF);
        return;
    }
    got = pread(*slot, data, bytes < sizeof(data) ? (size_t)bytes : sizeof(data), (off_t)offset);
    if (got < 0) {
        fail_file(server, FILE_EUNKNOWN);
        return;
    }
    tbd_reply_format(&server->reply, "F%zx;", (size_t)got);
    (void)tbd_reply_binary(&server->reply, data, (size_t)got);
}

static size_t put_number(uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    return bytes;
}

/* As the File-I/O extension lays it out: big-endian. */
static void stat_file(struct server *server, const char *text)
{
    uint8_t out[64] = { 0 };
    size_t used = 0;
    struct stat info;
    int *slot;

    if (!read_slot(server, &text, &slot) || fstat(*slot, &info) != 0) {
        fail_file(server, FILE_EBADF);
        return;
    }
    used += put_number(out + used, 0, 8); /* device, inode */
    used += put_number(out + used, S_IFREG | 0400, 4);
    used += put_number(out + used, 1, 4);
    used += put_number(out + used, 0, 12); /* owner, group, device */
    used += put_number(out + used, (uint64_t)info.st_size, 8);
    used += put_number(out + used, PAGE, 8);
    used += put_number(out + used, (uint64_t)info.st_blocks, 8);
    tbd_reply_text(&server->reply, "F40;");
    (void)tbd_reply_binary(&server->reply, out, sizeof(out));
}

static void set_file_system(struct server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "F0");
}

static void read_link(struct server *server, const char *text)
{
    (void)text;
    fail_file(server, FILE_EINVAL);
}

/* ---- the rest ---- */

static void tell_features(struct server *server, const char *text)
{
    server->motion.names_process = strstr(text, "multiprocess+") != NULL;
    tbd_reply_format(
        &server->reply,
        "multiprocess+;PacketSize=%x;QStartNoAckMode+;vContSupported+;swbreak+;hwbreak+;"
        "ReverseStep+;ReverseContinue+;QPassSignals+;QCatchSyscalls+;"
        "qXfer:features:read+;qXfer:auxv:read+;qXfer:exec-file:read+;"
        "qXfer:threads:read+;qXfer:siginfo:read+",
        TBD_PACKET_BYTES);
}

static void go_quiet(struct server *server, const char *text)
{
    (void)text;
    server->goes_quiet = true;
    agree(server);
}

static void tell_attached(struct server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "1"); /* so gdb detaches in the end, and does not kill */
}

static void need_no_symbols(struct server *server, const char *text)
{
    (void)text;
    agree(server);
}

static void leave(struct server *server, const char *text)
{
    (void)text;
    server->is_over = true;
    agree(server);
}

static void die(struct server *server, const char *text)
{
    (void)text;
    server->is_over = server->has_no_reply = true;
}

/* `monitor`: a command may move, which gdb does not know. */
static void carry_out(struct server *server, const char *text)
{
    char *answer = NULL, *line = malloc(TBD_PACKET_BYTES);
    size_t bytes = 0;
    struct tbd_position before = server->motion.at;
    FILE *out = line == NULL ? NULL : open_memstream(&answer, &bytes);

    if (out == NULL) {
        free(line);
        refuse(server);
        return;
    }
    (void)tbd_remote_bytes(&text, line, TBD_PACKET_BYTES);
    if (server->session->has_at)
        server->session->at = before;
    else
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
            agree(server);
    } else {
        refuse(server);
    }
    free(answer);
    free(line);
}

// clang-format off
/* The first row that fits counts; `whole`: nothing may follow. */
static const struct {
    const char *begin;
    bool whole;
    void (*answer)(struct server *server, const char *rest);
} packets[] = {
    { "?", true, tell_why },
    { "g", true, tell_registers },
    { "p", false, tell_register },
    { "m", false, tell_memory },
    { "G", false, refuse_change },
    { "P", false, refuse_change },
    { "M", false, refuse_change },
    { "X", false, refuse_change },
    { "H", false, select_thread },
    { "T", false, tell_if_alive },
    { "s", false, step_forward },
    { "c", false, run_forward },
    { "S", false, step_forward },
    { "C", false, run_forward },
    { "bs", true, step_backward },
    { "bc", true, run_backward },
    { "vCont?", true, tell_actions },
    { "vCont", false, resume },
    { "vFile:open:", false, open_file },
    { "vFile:close:", false, close_file },
    { "vFile:pread:", false, read_file },
    { "vFile:fstat:", false, stat_file },
    { "vFile:setfs:", false, set_file_system },
    { "vFile:readlink:", false, read_link },
    { "vKill", false, leave },
    { "Z", false, add_point },
    { "z", false, remove_point },
    { "qSupported", false, tell_features },
    { "QStartNoAckMode", true, go_quiet },
    { "QPassSignals:", false, take_passed },
    { "QCatchSyscalls:", false, catch_calls },
    { "qXfer:", false, tell_object },
    { "qAttached", false, tell_attached },
    { "qSymbol:", false, need_no_symbols },
    { "qfThreadInfo", true, list_threads },
    { "qsThreadInfo", true, list_no_more },
    { "qC", true, tell_current },
    { "qRcmd,", false, carry_out },
    { "D", false, leave },
    { "k", true, die },
};
// clang-format on

static void answer(struct server *server)
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

static void serve(struct server *server)
{
    size_t bytes;

    while (!server->is_over) {
        enum tbd_packet_event event = tbd_packet_receive(&server->link, server->packet, &bytes);

        if (event == TBD_PACKET_END)
            return;
        if (event == TBD_PACKET_INTERRUPT) /* it came too late: nothing runs */
            continue;
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
    struct server *server = calloc(1, sizeof(*server));
    enum tbd_status status;

    if (server == NULL)
        return TBD_NOMEM;
    server->session = session;
    for (size_t i = 0; i < FILES_MAX; i++)
        server->files[i] = -1;
    tbd_remote_link_init(&server->link, in, out);
    status = tbd_motion_start(&server->motion, session, &server->link);
    if (status == TBD_OK) {
        serve(server);
        tbd_session_move(session, server->motion.at, server->motion.thread);
    }
    for (size_t i = 0; i < FILES_MAX; i++)
        if (server->files[i] >= 0)
            close(server->files[i]);
    tbd_motion_end(&server->motion);
    free(server);
    return status;
}
