// SPDX-License-Identifier: MIT
/* diverged.c - see diverged.h */
#include "query/commands/diverged.h"

#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "format/window/window_make.h"
#include "hooks/table/syscalls.h"
#include "query/output/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BLOCKS_BEFORE 5u

/* ---- causes ---- */

struct cause {
    const char *words; /* in the description; the first row that fits counts */
    const char *text;
};

static const struct cause causes[] = {
    { "a special instruction at",
      "native play did not stop for this instruction: its bytes lie within another one's, or control went another way "
      "before" },
    { "before it is overwritten",
      "memory was changed by a writer that the trace does not know: the kernel (a system "
      "call's row in syscalls.def), another process, a device" },
    { "before the store",
      "memory was changed by a writer that the trace does not know: the kernel (a system call's "
      "row in syscalls.def), another process, a device" },
    { "written by play, is not there", "a mapping was not made again as in play" },
    { "cannot be done again", "a mapping call that replay does not know" },
    { "turn of another thread",
      "a thread ran further, or less far, than in play: a switch is not where it was" },
    { "gives way",
      "a thread ran further, or less far, than in play: a switch is not where it was" },
    { "waits at the window's end", "a thread began, ended or was switched elsewhere than in play" },
    { "has control at the window's end", "a switch of threads is not where it was" },
    { "vector state",
      "an instruction that leaves vector registers undefined, or another kind of processor" },
    { "rflags is", "an instruction that leaves flags undefined" },
    { "which play did not have",
      "memory that play had is missing, or a wild address from an earlier difference" },
    { "fault after", "an instruction stopped at another place: memory or its protection differs" },
    { "operands differ",
      "a register differed before; the events before it say where it came from" },
    { "argument",
      "a register or memory differed before this call; the events before it say where it came from" },
    { "system call", "control went another way before: a register or memory differed" },
    { "block 0x", "a branch went the other way: a register or memory differed before" },
    { "special instruction",
      "its inputs differed, or its outputs are not those of this processor" },
    { "at the window's end",
      "the last thing that wrote this value had other inputs than in play, or was not recorded" },
};

const char *tbd_diverged_cause(const char *what)
{
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (strstr(what, causes[i].words) != NULL)
            return causes[i].text;
    }
    return NULL;
}

/* ---- before ---- */

/* A message, and when it came. */
struct logged {
    const struct tbd_message *message;
    uint64_t time;
    uint32_t thread; /* 0: not known */
};

static void describe_thread(const struct logged *logged, char *out, size_t bytes)
{
    static const char *const events[] = { "?", "made", "given control", "ended" };
    struct tbd_msg_thread message = tbd_thread_message(logged->message);

    snprintf(out, bytes, "%" PRIu64 " thread %" PRIu32 " %s", logged->time, message.thread,
             events[message.event <= TBD_THREAD_END ? message.event : 0]);
}

static void describe_call(const struct tbd_message *at, char *out, size_t bytes)
{
    struct tbd_sys_call call = { 0 };
    struct tbd_msg_syscall message;

    memcpy(&message, (const uint8_t *)at + sizeof(struct tbd_message), sizeof(message));
    call.number = message.number;
    memcpy(call.args, message.args, sizeof(call.args));
    tbd_syscall_print(&call, (int64_t)message.result, NULL, NULL, out, bytes);
}

static const char *name_of(uint32_t kind)
{
    static const char *const names[TBD_MSG_KIND_COUNT] = {
        [TBD_MSG_SPECIAL] = "special instruction",
        [TBD_MSG_SIGNAL] = "signal",
        [TBD_MSG_INTERRUPTED] = "stopped in the middle",
        [TBD_MSG_RSEQ] = "restartable sequence",
        [TBD_MSG_CUT] = "computation cut",
        [TBD_MSG_TRANSLATED] = "translated code",
        [TBD_MSG_STOPS] = "times are numbers of stops",
        [TBD_MSG_READ] = "load of a special instruction",
        [TBD_MSG_UNLOGGED] = "special instruction that is not logged",
    };

    return kind < TBD_MSG_KIND_COUNT && names[kind] ? names[kind] : "message";
}

static void describe_message(const struct logged *logged, char *out, size_t bytes)
{
    uint32_t kind = tbd_message_kind(logged->message);
    char line[160], thread[24] = "";

    if (kind == TBD_MSG_THREAD) {
        describe_thread(logged, out, bytes);
        return;
    }
    snprintf(line, sizeof(line), "%s", name_of(kind));
    if (kind == TBD_MSG_SYSCALL)
        describe_call(logged->message, line, sizeof(line));
    if (logged->thread)
        snprintf(thread, sizeof(thread), " thread %" PRIu32, logged->thread);
    snprintf(out, bytes, "%" PRIu64 "%s %s", logged->time, thread, line);
}

/* It follows the block entry of the time before. */
bool tbd_diverged_logged(const struct tbd_window *window, uint64_t index, char *out, size_t bytes)
{
    struct logged logged = { 0 };

    if (index >= window->log_count)
        return false;
    logged.message = window->log[index].message;
    logged.time = window->first_time + window->log[index].time - (window->log[index].time > 0);
    describe_message(&logged, out, bytes);
    return true;
}

static void describe(struct tbd_session *session, const struct tbd_cursor *cursor, char *out,
                     size_t bytes)
{
    char name[256];

    if (cursor->kind == TBD_AT_MESSAGE) {
        struct logged logged = { cursor->message, cursor->time, cursor->thread };

        describe_message(&logged, out, bytes);
        return;
    }
    tbd_symbols_format(session->symbols, cursor->window->index, cursor->block->def.start, name,
                       sizeof(name));
    snprintf(out, bytes, "%" PRIu64 " thread %" PRIu32 " block 0x%" PRIx64 " %s", cursor->time,
             cursor->thread, cursor->block->def.start, name);
}

json_t *tbd_diverged_before(struct tbd_session *session, const struct tbd_divergence *divergence)
{
    uint64_t time = divergence->position.time;
    json_t *lines = json_array();
    struct tbd_window *window;
    struct tbd_cursor cursor;
    char line[512];

    if (tbd_window_load(session->trace, divergence->window, true, &window, NULL) != TBD_OK)
        return lines;
    if (time >= window->first_time + window->blocks && window->blocks != 0)
        time = window->first_time + window->blocks - 1;
    if (time < window->first_time + BLOCKS_BEFORE)
        tbd_cursor_first(window, &cursor);
    else
        (void)tbd_cursor_seek(window, time - BLOCKS_BEFORE, &cursor);
    while (cursor.kind != TBD_AT_END && cursor.time <= time) {
        describe(session, &cursor, line, sizeof(line));
        json_array_append_new(lines, tbd_output_text(line));
        tbd_cursor_skip_block(&cursor);
    }
    tbd_window_free(window);
    return lines;
}
