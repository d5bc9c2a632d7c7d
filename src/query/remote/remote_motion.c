// SPDX-License-Identifier: MIT
/* remote_motion.c - see remote_motion.h */
#include "query/remote/remote_motion.h"

#include "base/array.h"
#include "query/session/breakpoints.h"
#include "query/session/thread_path.h"
#include "query/text/user_interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 4096u

enum tbd_status tbd_motion_start(struct tbd_remote_motion *motion, struct tbd_session *session,
                                 struct tbd_remote_link *link)
{
    *motion = (struct tbd_remote_motion){ .session = session, .link = link };
    return tbd_motion_take(motion);
}

enum tbd_status tbd_motion_take(struct tbd_remote_motion *motion)
{
    struct tbd_session *session = motion->session;
    struct tbd_place place;
    enum tbd_status status;

    motion->at = tbd_session_current(session);
    status = tbd_session_place(session, motion->at, &place);
    if (status == TBD_OK)
        motion->thread = session->thread != 0 ? session->thread : place.thread;
    session->thread = 0;
    return status;
}

void tbd_motion_end(struct tbd_remote_motion *motion)
{
    free(motion->points);
    free(motion->calls);
    motion->points = NULL;
    motion->calls = NULL;
    motion->count = motion->capacity = motion->call_count = 0;
}

/* ---- what it stops at ---- */

static bool is_same_point(const struct tbd_remote_point *a, const struct tbd_remote_point *b)
{
    return a->kind == b->kind && a->address == b->address && a->bytes == b->bytes;
}

bool tbd_motion_add(struct tbd_remote_motion *motion, const struct tbd_remote_point *point)
{
    for (size_t i = 0; i < motion->count; i++)
        if (is_same_point(&motion->points[i], point))
            return true;
    if (motion->count == POINTS_MAX ||
        !tbd_array_grow(&motion->points, motion->count, &motion->capacity, sizeof(*motion->points)))
        return false;
    motion->points[motion->count++] = *point;
    return true;
}

void tbd_motion_remove(struct tbd_remote_motion *motion, const struct tbd_remote_point *point)
{
    for (size_t i = 0; i < motion->count; i++)
        if (is_same_point(&motion->points[i], point)) {
            motion->points[i] = motion->points[--motion->count];
            return;
        }
}

/* ---- runs ---- */

/* A run on its way: the nearest stop so far. */
struct run {
    struct tbd_remote_motion *motion;
    struct tbd_remote_stop stop;
    struct tbd_nearest nearest;
};

static void poll_interrupt(void *context, uint32_t done, uint32_t windows, uint64_t found)
{
    struct tbd_remote_motion *motion = context;

    (void)done;
    (void)windows;
    (void)found;
    if (tbd_packet_is_interrupted(motion->link))
        atomic_store_explicit(&tbd_interrupt_noted, true, memory_order_relaxed);
}

/* `limit`: only stops before it, in the run's direction, count; NULL: all do. */
static struct run run_from(struct tbd_remote_motion *motion, bool backward,
                           const struct tbd_position *limit)
{
    return (struct run){ .motion = motion,
                         .nearest = { .session = motion->session,
                                      .from = motion->at,
                                      .backward = backward,
                                      .limit = limit,
                                      .progress = poll_interrupt,
                                      .progress_context = motion } };
}

/* Searches for one kind of event; `stop` is what it would be. */
static enum tbd_status look(struct run *run, const char *text, const struct tbd_remote_stop *stop)
{
    struct tbd_nearest_wish wish = {
        .question = text,
        /* What is in memory changes with the instruction: forward, the one at the position counts. */
        .with_own = stop->reason == TBD_STOP_POINT && stop->point.kind >= TBD_POINT_WRITE
    };
    bool is_nearest;
    enum tbd_status status = tbd_nearest_look(&run->nearest, &wish, &is_nearest);

    if (is_nearest)
        run->stop = *stop;
    return status;
}

/* All places at once: they are one question, the first one that is asked. */
static enum tbd_status look_for_places(struct run *run)
{
    struct tbd_remote_motion *motion = run->motion;
    struct tbd_remote_stop stop = { .reason = TBD_STOP_POINT };
    char *text = NULL;
    size_t bytes, count = 0;
    FILE *out = open_memstream(&text, &bytes);
    enum tbd_status status = out == NULL ? TBD_NOMEM : TBD_OK;

    for (size_t i = 0; out != NULL && i < motion->count; i++)
        if (motion->points[i].kind <= TBD_POINT_HARDWARE)
            fprintf(out, "%spc==%#" PRIx64, count++ == 0 ? "state where " : " or ",
                    motion->points[i].address);
    if (out != NULL && fclose(out) != 0)
        status = TBD_NOMEM;
    if (status == TBD_OK && count != 0)
        status = look(run, text, &stop);
    free(text);
    if (status != TBD_OK || !run->nearest.has_event)
        return status;
    run->stop.point.address = run->nearest.event.pc;
    for (size_t i = 0; i < motion->count; i++)
        if (motion->points[i].kind <= TBD_POINT_HARDWARE &&
            motion->points[i].address == run->nearest.event.pc)
            run->stop.point.kind = motion->points[i].kind;
    return status;
}

static enum tbd_status look_for_stores(struct run *run, const struct tbd_remote_point *point)
{
    struct tbd_remote_stop stop = { .reason = TBD_STOP_POINT, .point = *point };
    char text[TBD_WATCH_BYTES];

    tbd_watch_question(point->kind == TBD_POINT_WRITE ? TBD_WATCH_CHANGE : TBD_WATCH_STORE,
                       point->address, point->bytes, text);
    return look(run, text, &stop);
}

static enum tbd_status look_for_accesses(struct run *run, const struct tbd_remote_point *point)
{
    struct tbd_remote_stop stop = { .reason = TBD_STOP_POINT, .point = *point };
    enum tbd_status status = TBD_OK;
    char text[TBD_WATCH_BYTES];

    if (point->kind != TBD_POINT_READ)
        status = look_for_stores(run, point);
    if (status != TBD_OK || point->kind == TBD_POINT_WRITE)
        return status;
    tbd_watch_question(TBD_WATCH_LOAD, point->address, point->bytes, text);
    return look(run, text, &stop);
}

static enum tbd_status look_for_signals(struct run *run)
{
    struct tbd_remote_stop stop = { .reason = TBD_STOP_SIGNAL };
    bool is_first = true;
    char text[2048];
    int used = snprintf(text, sizeof(text), "signal");
    enum tbd_status status;

    for (unsigned i = 1; i < TBD_REMOTE_PASSED; i++)
        if (run->motion->passed[i]) {
            used += snprintf(text + used, sizeof(text) - (size_t)used, " %s signal != %u",
                             is_first ? "where" : "and", i);
            is_first = false;
        }
    status = look(run, text, &stop);
    if (status == TBD_OK && run->nearest.has_event && run->stop.reason == TBD_STOP_SIGNAL)
        run->stop.number = run->nearest.event.number;
    return status;
}

static enum tbd_status look_for_calls(struct run *run)
{
    struct tbd_remote_stop stop = { .reason = TBD_STOP_CALL };
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    enum tbd_status status = TBD_NOMEM;

    if (out == NULL)
        return TBD_NOMEM;
    fprintf(out, "syscall");
    for (size_t i = 0; i < run->motion->call_count; i++)
        fprintf(out, "%s syscall == %" PRIu64, i == 0 ? " where" : " or", run->motion->calls[i]);
    if (fclose(out) == 0)
        status = look(run, text, &stop);
    free(text);
    if (status == TBD_OK && run->nearest.has_event && run->stop.reason == TBD_STOP_CALL)
        run->stop.number = run->nearest.event.number;
    return status;
}

static enum tbd_status look_for_all(struct run *run)
{
    struct tbd_remote_motion *motion = run->motion;
    enum tbd_status status = look_for_places(run);

    for (size_t i = 0; status == TBD_OK && i < motion->count; i++)
        if (motion->points[i].kind >= TBD_POINT_WRITE)
            status = look_for_accesses(run, &motion->points[i]);
    if (status == TBD_OK)
        status = look_for_signals(run);
    if (status == TBD_OK && motion->catches)
        status = look_for_calls(run);
    tbd_interrupt_clear(); /* also one that came when the answer was found */
    return status;
}

/* After the instruction at `at`. */
static struct tbd_position just_after(struct tbd_session *session, struct tbd_position at)
{
    struct tbd_place place;

    if (tbd_session_place(session, at, &place) == TBD_OK && at.offset + 1 < place.insns)
        return (struct tbd_position){ .time = at.time, .offset = at.offset + 1 };
    if (at.time + 1 < session->info->blocks)
        return (struct tbd_position){ .time = at.time + 1 };
    return at;
}

static struct tbd_remote_stop failed(bool backward, enum tbd_status status)
{
    struct tbd_remote_stop stop = { .reason = TBD_STOP_FAILED,
                                    .backward = backward,
                                    .why = status };

    if (status == TBD_INTERRUPTED)
        stop.reason = TBD_STOP_HALTED;
    return stop;
}

/* There is nothing more in this direction. */
static struct tbd_remote_stop at_end(struct tbd_remote_motion *motion, bool backward)
{
    struct tbd_session *session = motion->session;
    struct tbd_place place;

    motion->at = backward ? tbd_session_first(session) : tbd_session_last(session);
    if (tbd_session_place(session, motion->at, &place) == TBD_OK)
        motion->thread = place.thread;
    return (struct tbd_remote_stop){ .reason = TBD_STOP_ENDS, .backward = backward };
}

static struct tbd_remote_stop arrive(struct run *run)
{
    struct tbd_remote_motion *motion = run->motion;

    motion->at = run->nearest.event.position;
    motion->thread = run->nearest.event.thread;
    run->stop.backward = run->nearest.backward;
    if (!run->nearest.backward && run->stop.reason == TBD_STOP_POINT &&
        run->stop.point.kind >= TBD_POINT_WRITE)
        motion->at = just_after(motion->session, motion->at);
    return run->stop;
}

struct tbd_remote_stop tbd_motion_run(struct tbd_remote_motion *motion, bool backward)
{
    struct run run = run_from(motion, backward, NULL);
    enum tbd_status status = look_for_all(&run);

    if (status != TBD_OK)
        return failed(backward, status);
    return run.nearest.has_event ? arrive(&run) : at_end(motion, backward);
}

/* ---- steps ---- */

/* The thread's next instruction, or the one before; TBD_NOTFOUND: there is none. */
static enum tbd_status neighbour(struct tbd_path *path, uint32_t thread, struct tbd_position *io,
                                 bool backward)
{
    const struct tbd_path_block *block;
    struct tbd_place place;
    enum tbd_status status = tbd_session_place(path->session, *io, &place);

    if (status != TBD_OK)
        return status;
    if (place.thread == thread && (backward ? io->offset != 0 : io->offset + 1 < place.insns)) {
        io->offset += backward ? UINT32_MAX : 1;
        return TBD_OK;
    }
    status = backward ? tbd_path_before(path, io->time, &block)
                      : tbd_path_from(path, io->time + (place.thread == thread), &block);
    if (status == TBD_OK)
        *io = (struct tbd_position){ .time = block->time,
                                     .offset = backward && block->insns ? block->insns - 1 : 0 };
    return status;
}

/* Other threads ran: what they did may be a stop. */
static bool stops_between(struct tbd_remote_motion *motion, struct tbd_position to, bool backward,
                          struct tbd_remote_stop *out)
{
    struct run run = run_from(motion, backward, &to);
    enum tbd_status status;

    if (motion->count == 0 ||
        (backward ? motion->at.time - to.time : to.time - motion->at.time) <= 1)
        return false;
    status = look_for_all(&run);
    if (status == TBD_OK && !run.nearest.has_event)
        return false;
    *out = status == TBD_OK ? arrive(&run) : failed(backward, status);
    return true;
}

struct tbd_remote_stop tbd_motion_step(struct tbd_remote_motion *motion, uint32_t thread,
                                       bool backward, uint64_t from, uint64_t to)
{
    struct tbd_remote_stop stop = { .reason = TBD_STOP_STEP, .backward = backward };
    struct tbd_path path;
    struct tbd_place place;
    enum tbd_status status;

    tbd_path_start(&path, motion->session, thread, motion->at.time);
    do {
        struct tbd_position next = motion->at;

        status = neighbour(&path, thread, &next, backward);
        if (status != TBD_OK || stops_between(motion, next, backward, &stop))
            break;
        motion->at = next;
        motion->thread = thread;
        status = tbd_session_place(motion->session, next, &place);
        if (status == TBD_OK && tbd_packet_is_interrupted(motion->link))
            status = TBD_INTERRUPTED;
        for (size_t i = 0; i < motion->count; i++)
            if (motion->points[i].kind <= TBD_POINT_HARDWARE &&
                motion->points[i].address == place.pc)
                to = from;
    } while (status == TBD_OK && place.pc - from < to - from);
    tbd_path_free(&path);
    if (status == TBD_NOTFOUND) /* the thread runs no more in this direction: others do */
        return tbd_motion_run(motion, backward);
    return status == TBD_OK ? stop : failed(backward, status);
}
