// SPDX-License-Identifier: MIT
/* session.c - see session.h
 *
 * The current position is a line "TIME+K", or "TIME+K thread TID", in the file `position` of the
 * trace directory.  It is a convenience: if the file cannot be used, questions start from the
 * trace's last position. */
#include "query/session/session.h"
#include "query/session/counted_trace.h"
#include "query/session/last_position.h"
#include "query/session/packed_trace.h"
#include "query/session/part_trace.h"
#include "query/session/position_text.h"
#include "query/text/user_cache.h"

#include "format/files/trace_dir.h"
#include "query/session/inlined_calls.h"
#include "format/trace/trace_handle.h"
#include "format/window/cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *tbd_session_find(const char *name, char *buffer, size_t bytes)
{
    size_t used;

    if (name == NULL || strchr(name, '/') != NULL || access(name, F_OK) == 0 ||
        tbd_trace_root(buffer, bytes) != TBD_OK)
        return name;
    used = strlen(buffer);
    snprintf(buffer + used, bytes - used, "/%s", name);
    return access(buffer, F_OK) == 0 ? buffer : name;
}

/* Completes a `session` whose trace is open. */
static enum tbd_status complete(struct tbd_session *session)
{
    enum tbd_status status;

    session->window_max = session->borrows_replayer ? 1 : TBD_SESSION_WINDOWS;
    session->info = tbd_trace_info(session->trace);
    if (!session->borrows_replayer && !session->no_cache)
        session->cache = tbd_window_cache_new(session->trace, 0);
    status = tbd_symbols_new(session->trace, &session->symbols);
    if (status != TBD_OK)
        return status;
    return tbd_disas_new(session->trace, session->symbols, session->syntax, &session->disas);
}

enum tbd_status tbd_session_open(struct tbd_session *session, const char *path)
{
    char buffer[4096];
    const char *found = tbd_session_find(path, buffer, sizeof(buffer));
    char unpacked[TBD_USER_CACHE_PATH + 128];
    enum tbd_status status = TBD_OK;

    if (tbd_packed_trace(session, found, unpacked, sizeof(unpacked), &status))
        found = unpacked;
    if (status == TBD_OK)
        status = tbd_counted_trace_open(found, &session->trace, &session->why);
    if (status == TBD_NOTKEPT && session->takes_rings)
        status = tbd_trace_open_rings(found, &session->trace, &session->why);
    if (status == TBD_OK)
        tbd_packed_use_extras(tbd_trace_path(session->trace));
    return status == TBD_OK ? complete(session) : status;
}

enum tbd_status tbd_session_open_part(struct tbd_session *session, struct tbd_counted_part *part)
{
    enum tbd_status status = tbd_part_open(part, session->workers, &session->trace, &session->why);

    if (status != TBD_OK)
        return status;
    session->part = part;
    session->is_private = true; /* until the answer is known to be right */
    tbd_packed_use_extras(part->path);
    return complete(session);
}

int tbd_session_home(const struct tbd_session *session)
{
    return session->part != NULL ? session->part->home : tbd_trace_dir(session->trace).fd;
}

enum tbd_status tbd_session_open_helper(struct tbd_session *session, const struct tbd_session *of,
                                        unsigned worker)
{
    enum tbd_status status;

    memset(session, 0, sizeof(*session));
    session->syntax = of->syntax;
    session->worker = worker;
    session->part = of->part;
    session->workers = 1;
    session->replayer = of->replayer;
    session->cache = of->cache;
    session->borrows_replayer = true;
    status = tbd_trace_open_again(of->trace, &session->trace, &session->why);
    return status == TBD_OK ? complete(session) : status;
}

/* What was kept of the trace for the next question. */
static void forget_moments(struct tbd_session *session)
{
    if (session->kept.what != NULL)
        session->kept.free(session->kept.what);
    for (size_t i = 0; i < TBD_SESSION_WINDOWS; i++)
        tbd_window_free(session->windows[i].window);
    tbd_window_free(session->summaries);
    tbd_window_free(session->picked);
    tbd_session_end_slices(session);
    tbd_inlined_calls_free(session->inlined);
    free(session->moment);
    free(session->passed);
    free(session->seed.frames);
    free(session->wall.stamps);
    tbd_left_out_clear(&session->left_out);
    if (session->owns_replayer)
        tbd_replayer_free(session->replayer);
    if (!session->borrows_replayer)
        tbd_window_cache_free(session->cache);
    tbd_disas_free(session->disas);
}

void tbd_session_close(struct tbd_session *session)
{
    forget_moments(session);
    tbd_user_values_free(&session->values);
    tbd_breakpoints_clear(&session->breakpoints);
    for (unsigned i = 0; i < session->left_count; i++) {
        tbd_symbols_free(session->left[i].symbols);
        tbd_trace_close(session->left[i].trace);
    }
    tbd_symbols_free(session->symbols);
    tbd_trace_close(session->trace);
    memset(session, 0, sizeof(*session));
}

/* The positions that the session has, as text, which means the same in both traces. */
struct told {
    struct tbd_position_text at, unwritten;
};

static struct told tell(const struct tbd_session *session)
{
    return (struct told){ tbd_position_text(session, session->at),
                          tbd_position_text(session, session->unwritten.position) };
}

static void read_told(struct tbd_session *session, const char *text, struct tbd_position *out)
{
    if (tbd_position_take(session, text, out) == 0)
        *out = tbd_session_last(session);
}

enum tbd_status tbd_session_widen(struct tbd_session *session, struct tbd_counted_part *part)
{
    struct tbd_session next = *session;
    struct told told = tell(session);
    unsigned count = session->left_count;
    enum tbd_status status =
        part != NULL ? tbd_part_open(part, session->workers, &next.trace, &session->why)
                     : tbd_counted_trace_open(session->part->path, &next.trace, &session->why);

    if (status == TBD_OK && count == TBD_SESSION_LEFT)
        status = TBD_NOMEM;
    if (status != TBD_OK)
        return status;
    forget_moments(session);
    next.left[count].trace = session->trace;
    next.left[count].symbols = session->symbols;
    next.left_count = count + 1;
    next.part = part;
    next.is_private = part != NULL;
    next.symbols = NULL;
    next.disas = NULL;
    next.replayer = NULL;
    next.owns_replayer = false;
    next.cache = NULL;
    next.kept = (struct tbd_session_kept){ 0 };
    next.left_out = (struct tbd_left_out){ 0 };
    memset(next.windows, 0, sizeof(next.windows));
    memset(&next.slices, 0, sizeof(next.slices));
    next.summaries = next.picked = NULL;
    next.inlined = NULL;
    next.moment = NULL;
    next.passed = NULL;
    memset(&next.seed, 0, sizeof(next.seed));
    memset(&next.wall, 0, sizeof(next.wall));
    memset(&next.main_stack, 0, sizeof(next.main_stack));
    *session = next;
    status = complete(session);
    if (status == TBD_OK) {
        read_told(session, told.at.text, &session->at);
        read_told(session, told.unwritten.text, &session->unwritten.position);
    }
    return status;
}

enum tbd_status tbd_session_replayer(struct tbd_session *session)
{
    /* Helpers, and the session itself.  A helper has one of its own, under its number, if only its
     * windows' own files said that they need one: the index had lost that. */
    unsigned workers = (session->worker ? session->worker : session->workers) + 1;
    enum tbd_status status;

    if (session->replayer != NULL)
        return TBD_OK;
    if (session->info->is_dump)
        return tbd_error_set(&session->why, TBD_NOREPLAY, "", 0,
                             "a crash dump has nothing that could be run again");
    status = tbd_replayer_new(session->trace, workers, &session->replayer, &session->why);
    session->owns_replayer = status == TBD_OK;
    return status;
}

enum tbd_status tbd_session_skim(struct tbd_session *session, uint32_t index,
                                 const struct tbd_skim_listener *listener)
{
    enum tbd_status status = tbd_session_replayer(session);

    if (status == TBD_OK)
        status = tbd_replay_skim(session->replayer, session->worker, index, listener,
                                 &session->divergence, &session->why);
    session->stats.raised += status == TBD_OK;
    return status;
}

enum tbd_status tbd_session_window_at(struct tbd_session *session, struct tbd_position position,
                                      uint32_t *out)
{
    const struct tbd_window_summary *first;

    *out = tbd_trace_window_of(session->trace, position.time);
    if (session->info->has_rings_only && session->past != NULL)
        return TBD_OK; /* its only moments are those before its end */
    if (*out != UINT32_MAX && !session->info->has_rings_only)
        return tbd_part_has(session->part, *out) ? TBD_OK : TBD_INTERRUPTED;
    if (session->info->is_dump && session->info->blocks == 0)
        return tbd_error_set(&session->why, TBD_NOTKEPT, "", 0, "%s",
                             session->info->has_rings_only
                                 ? TBD_RINGS_ONLY_TEXT
                                 : "the crash dump is not complete: see `info`, and `path`");
    first = tbd_trace_window(session->trace, 0); /* other windows were dropped */
    session->why = (struct tbd_error){ .status = TBD_NOTIME };
    snprintf(session->why.detail, sizeof(session->why.detail),
             "time %" PRIu64 " is not in the trace, which has times %" PRIu64 " to %" PRIu64,
             position.time, first == NULL ? 0 : first->first_time,
             session->info->blocks == 0 ? 0 : session->info->blocks - 1);
    return TBD_NOTIME;
}

/* ---- the first and the last position ---- */

struct tbd_position tbd_session_first(const struct tbd_session *session)
{
    const struct tbd_window_summary *window = tbd_trace_window(session->trace, 0);

    return (struct tbd_position){ .time = window == NULL ? 0 : window->first_time };
}

/* In the trace of a killed program, only the entry of the last block is certain. */
static uint64_t last_insn_of(const struct tbd_window *window, const struct tbd_cursor *cursor)
{
    uint64_t limit = tbd_cursor_insn_limit(cursor), count = cursor->block->def.insn_count,
             last = count ? count - 1u : 0;
    bool is_followed = window->complete || cursor->entry + 1 < window->entry_count;

    return !is_followed ? 0 : limit < last ? limit : last;
}

/* Without the window's events, unless these are there already. */
static bool is_last_insn_known(struct tbd_session *session, uint32_t index,
                               struct tbd_position *last)
{
    const struct tbd_window *window = NULL;

    if (tbd_part_has(session->part, index) && !tbd_session_has_slice_at(session, index, last->time))
        window = tbd_session_summaries(session, index);
    return window != NULL && last->time + 1 == window->first_time + window->blocks &&
           tbd_last_insn(session, window, &last->offset);
}

/* The state before the last instruction that ran (or was about to, when a signal ended the
 * program). */
struct tbd_position tbd_session_last(struct tbd_session *session)
{
    struct tbd_position last = { .time =
                                     session->info->blocks == 0 ? 0 : session->info->blocks - 1 };
    const struct tbd_window *window;
    struct tbd_cursor cursor;
    uint32_t index = tbd_trace_window_of(session->trace, last.time);

    if (index == UINT32_MAX || is_last_insn_known(session, index, &last) ||
        tbd_session_slice_at(session, index, last.time, &window) != TBD_OK ||
        !tbd_cursor_seek(window, last.time, &cursor) || cursor.block->def.insn_count == 0)
        return last;
    last.offset = (uint32_t)last_insn_of(window, &cursor);
    return last;
}

/* ---- the remembered position ---- */

static bool read_position(struct tbd_session *session, struct tbd_position *out,
                          uint32_t *out_thread)
{
    FILE *file = tbd_dir_text(tbd_session_home(session), "position");
    char text[128];
    bool has_line;
    size_t length;

    if (file == NULL)
        return false;
    *out_thread = 0;
    has_line = fgets(text, sizeof(text), file) != NULL;
    fclose(file);
    if (!has_line)
        return false;
    length = tbd_position_take(session, text, out);
    if (length == 0)
        return false;
    (void)sscanf(text + length, " thread %" SCNu32, out_thread);
    return text[0] == '@' || out->time < session->info->blocks;
}

/* False: nothing is remembered. */
static bool remembered(struct tbd_session *session, struct tbd_position *out, uint32_t *out_thread)
{
    *out_thread = 0;
    if (!session->unwritten.has_position)
        return read_position(session, out, out_thread);
    *out = session->unwritten.position;
    *out_thread = session->unwritten.thread;
    return true;
}

struct tbd_position tbd_session_current(struct tbd_session *session)
{
    struct tbd_position position;
    uint32_t thread;

    if (session->has_at)
        return session->at;
    if (!remembered(session, &position, &thread)) {
        position = tbd_session_last(session);
        thread = 0;
    }
    if (!session->has_thread)
        session->thread = thread;
    return position;
}

uint32_t tbd_session_current_window(struct tbd_session *session)
{
    struct tbd_position position = session->at;
    uint32_t thread;

    if (!session->has_at && !remembered(session, &position, &thread))
        position.time = session->info->blocks == 0 ? 0 : session->info->blocks - 1;
    return tbd_trace_window_of(session->trace, position.time);
}

/* A user who comes back to a position does not expect the frame selected on an earlier visit. */
static void forget_frame(const struct tbd_session *session)
{
    tbd_dir_remove(tbd_session_home(session), "frame");
}

static bool write_position(const struct tbd_session *session, struct tbd_position position,
                           uint32_t thread)
{
    char text[96];
    int used = snprintf(text, sizeof(text), "%s", tbd_position_text(session, position).text);

    if (thread != 0)
        used += snprintf(text + used, sizeof(text) - (size_t)used, " thread %" PRIu32, thread);
    used += snprintf(text + used, sizeof(text) - (size_t)used, "\n");
    return tbd_dir_write(tbd_session_home(session), "position", text, (size_t)used) == TBD_OK;
}

void tbd_session_move(struct tbd_session *session, struct tbd_position position, uint32_t thread)
{
    if (session->has_at)
        return;
    memset(&session->unwritten, 0, sizeof(session->unwritten));
    if (!session->is_private && write_position(session, position, thread)) {
        forget_frame(session);
        return;
    }
    session->unwritten.has_position = true;
    session->unwritten.position = position;
    session->unwritten.thread = thread;
}

bool tbd_session_keep(struct tbd_session *session)
{
    bool good = true;

    session->is_private = false;
    if (session->unwritten.has_position)
        good = write_position(session, session->unwritten.position, session->unwritten.thread);
    if (good && session->unwritten.has_position)
        forget_frame(session);
    return good;
}

static struct tbd_session_before chosen_before(const struct tbd_session *session)
{
    struct tbd_session_before before = { 0 };
    char text[64] = "";
    FILE *file;

    if (session->has_at)
        return session->before;
    if (session->unwritten.has_position)
        return session->unwritten.before;
    file = tbd_dir_text(tbd_trace_dir(session->trace).fd, "position");
    if (file == NULL || fgets(text, sizeof(text), file) == NULL || text[0] != '-' ||
        sscanf(text + 1, "%" SCNu64 "+%" SCNu32 " thread %" SCNu32, &before.back, &before.insn,
               &before.thread) != 3)
        before.back = 0;
    if (file != NULL)
        fclose(file);
    return before;
}

struct tbd_session_before tbd_session_before(const struct tbd_session *session)
{
    struct tbd_session_before before = chosen_before(session);

    /* where a program that was killed stood in the last block is not known: it entered it */
    if (before.back == 0 && session->info->has_rings_only)
        before.back = 1;
    return before;
}

void tbd_session_move_before(struct tbd_session *session, struct tbd_session_before before)
{
    char text[96];
    int used = snprintf(text, sizeof(text), "-%" PRIu64 "+%" PRIu32 " thread %" PRIu32 "\n",
                        before.back, before.insn, before.thread);

    if (session->has_at) {
        session->before = before;
        return;
    }
    tbd_session_move(session, (struct tbd_position){ 0 }, 0);
    session->unwritten.before = before;
    if (before.back != 0 && !session->unwritten.has_position &&
        tbd_dir_write(tbd_trace_dir(session->trace).fd, "position", text, (size_t)used) != TBD_OK)
        session->unwritten.has_position = true;
}

uint32_t tbd_session_thread_called(const struct tbd_session *session, uint32_t number)
{
    uint32_t count = tbd_trace_thread_count(session->trace);

    for (uint32_t i = 0; i < count; i++) {
        if (tbd_trace_thread(session->trace, i)->tid == number)
            return number;
    }
    return number <= count && number != 0 ? tbd_trace_thread(session->trace, number - 1)->tid
                                          : number;
}
