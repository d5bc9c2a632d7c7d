// SPDX-License-Identifier: MIT
/* remote_motion.c - see remote_motion.h
 *
 * gdb's `step` into a function steps, and then runs to the end of the function's first instructions.  If there is a breakpoint of
 * the user's with a condition, gdb takes it for its own and does not send it again, now without the condition: we would run past
 * it.  So after a step, as long as no point has changed, a run stops at each point; gdb looks at the condition itself. */
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
    motion->is_signalled = false;
    return status;
}

void tbd_motion_end(struct tbd_remote_motion *motion)
{
    for (size_t i = 0; i < motion->count; i++)
        free(motion->points[i].condition);
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

/* Is it a condition that can be asked?  Names in it are registers, which have none of their own. */
static bool is_condition(const struct tbd_remote_point *point)
{
    struct tbd_question question = { 0 };
    struct tbd_query_error error = { 0 };
    char *text = NULL;
    bool good = point->condition != NULL && asprintf(&text, "state where pc==%#" PRIx64 " and (%s)",
                                                     point->address, point->condition) >= 0;

    if (good) {
        good = tbd_question_parse_all(text, 0, &question, &error) == TBD_OK;
        tbd_question_free(&question);
        free(text);
    }
    return good;
}

bool tbd_motion_add(struct tbd_remote_motion *motion, const struct tbd_remote_point *point)
{
    struct tbd_remote_point added = *point;

    if (!is_condition(point)) {
        free(added.condition);
        added.condition = NULL;
    }
    tbd_motion_remove(motion, point);
    motion->has_stepped = false;
    if (motion->count < POINTS_MAX && tbd_array_grow(&motion->points, motion->count,
                                                     &motion->capacity, sizeof(*motion->points))) {
        motion->points[motion->count++] = added;
        return true;
    }
    free(added.condition);
    return false;
}

void tbd_motion_remove(struct tbd_remote_motion *motion, const struct tbd_remote_point *point)
{
    motion->has_stepped = false;
    for (size_t i = 0; i < motion->count; i++)
        if (is_same_point(&motion->points[i], point)) {
            free(motion->points[i].condition);
            motion->points[i] = motion->points[--motion->count];
            return;
        }
}

/* ---- runs ---- */

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
static struct tbd_remote_run run_from(struct tbd_remote_motion *motion, bool backward,
                                      const struct tbd_position *limit)
{
    return (struct tbd_remote_run){ .motion = motion,
                                    .nearest = { .session = motion->session,
                                                 .from = motion->at,
                                                 .backward = backward,
                                                 .limit = limit,
                                                 .progress = poll_interrupt,
                                                 .progress_context = motion } };
}

void tbd_remote_offer(struct tbd_remote_run *run, struct tbd_position position, uint32_t thread,
                      const struct tbd_remote_stop *stop)
{
    struct tbd_nearest *nearest = &run->nearest;
    const struct tbd_position *than =
        nearest->has_event ? &nearest->event.position : nearest->limit;
    int order = than == NULL ? 0 : tbd_position_compare(position, *than);

    if (than != NULL && (nearest->backward ? order <= 0 : order >= 0))
        return;
    nearest->has_event = true;
    nearest->event = (struct tbd_event){ .position = position, .thread = thread };
    run->stop = *stop;
}

/* Searches for one kind of event; `stop` is what it would be. */
static enum tbd_status look(struct tbd_remote_run *run, const char *text,
                            const struct tbd_remote_stop *stop)
{
    struct tbd_nearest_wish wish = {
        .question = text,
        /* What is in memory changes with the instruction: forward, the one at the position counts; and the handler of a signal has
         * not begun. */
        .with_own = stop->reason == TBD_STOP_POINT &&
                    (stop->point.kind >= TBD_POINT_WRITE || run->motion->is_signalled)
    };
    bool is_nearest;
    enum tbd_status status = tbd_nearest_look(&run->nearest, &wish, &is_nearest);

    if (is_nearest)
        run->stop = *stop;
    if (is_nearest && stop->reason == TBD_STOP_POINT && stop->point.kind <= TBD_POINT_HARDWARE)
        run->stop.point.address = run->nearest.event.pc;
    return status;
}

static bool has_condition(const struct tbd_remote_run *run, const struct tbd_remote_point *point)
{
    return point->condition != NULL && !run->leaves_conditions;
}

/* All places without a condition at once: they are one question, the first one that is asked. */
static enum tbd_status look_for_plain_places(struct tbd_remote_run *run)
{
    struct tbd_remote_motion *motion = run->motion;
    struct tbd_remote_stop stop = { .reason = TBD_STOP_POINT };
    char *text = NULL;
    size_t bytes, count = 0;
    FILE *out = open_memstream(&text, &bytes);
    enum tbd_status status = out == NULL ? TBD_NOMEM : TBD_OK;

    for (size_t i = 0; out != NULL && i < motion->count; i++)
        if (motion->points[i].kind <= TBD_POINT_HARDWARE && !has_condition(run, &motion->points[i]))
            fprintf(out, "%spc==%#" PRIx64, count++ == 0 ? "state where " : " or ",
                    motion->points[i].address);
    if (out != NULL && fclose(out) != 0)
        status = TBD_NOMEM;
    if (status == TBD_OK && count != 0)
        status = look(run, text, &stop);
    free(text);
    return status;
}

static enum tbd_status look_for_place(struct tbd_remote_run *run,
                                      const struct tbd_remote_point *point)
{
    struct tbd_remote_stop stop = { .reason = TBD_STOP_POINT };
    char *text;
    enum tbd_status status;

    if (asprintf(&text, "state where pc==%#" PRIx64 " and (%s)", point->address, point->condition) <
        0)
        return TBD_NOMEM;
    status = look(run, text, &stop);
    free(text);
    return status;
}

static enum tbd_status look_for_places(struct tbd_remote_run *run)
{
    struct tbd_remote_motion *motion = run->motion;
    enum tbd_status status = look_for_plain_places(run);

    for (size_t i = 0; status == TBD_OK && i < motion->count; i++)
        if (has_condition(run, &motion->points[i]))
            status = look_for_place(run, &motion->points[i]);
    for (size_t i = 0; run->nearest.has_event && i < motion->count; i++)
        if (motion->points[i].kind <= TBD_POINT_HARDWARE &&
            motion->points[i].address == run->stop.point.address)
            run->stop.point.kind = motion->points[i].kind;
    return status;
}

static enum tbd_status look_for_stores(struct tbd_remote_run *run,
                                       const struct tbd_remote_point *point)
{
    struct tbd_remote_stop stop = { .reason = TBD_STOP_POINT, .point = *point };
    char text[TBD_WATCH_BYTES];

    tbd_watch_question(point->kind == TBD_POINT_WRITE ? TBD_WATCH_CHANGE : TBD_WATCH_STORE,
                       point->address, point->bytes, text);
    return look(run, text, &stop);
}

static enum tbd_status look_for_accesses(struct tbd_remote_run *run,
                                         const struct tbd_remote_point *point)
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

static enum tbd_status look_for_watched(struct tbd_remote_run *run)
{
    const struct tbd_remote_motion *motion = run->motion;
    enum tbd_status status = TBD_OK;

    for (size_t i = 0; status == TBD_OK && i < motion->count; i++)
        if (motion->points[i].kind >= TBD_POINT_WRITE)
            status = look_for_accesses(run, &motion->points[i]);
    return status;
}

static enum tbd_status look_for_signals(struct tbd_remote_run *run)
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

static enum tbd_status look_for_all(struct tbd_remote_run *run)
{
    struct tbd_remote_motion *motion = run->motion;
    enum tbd_status status = look_for_places(run);

    if (status == TBD_OK)
        status = look_for_watched(run);
    if (status == TBD_OK)
        status = look_for_signals(run);
    if (status == TBD_OK && motion->catches)
        status = tbd_remote_look_for_calls(run);
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
    motion->is_signalled = false;
    if (tbd_session_place(session, motion->at, &place) == TBD_OK)
        motion->thread = place.thread;
    return (struct tbd_remote_stop){ .reason = TBD_STOP_ENDS, .backward = backward };
}

static struct tbd_remote_stop arrive(struct tbd_remote_run *run)
{
    struct tbd_remote_motion *motion = run->motion;

    motion->at = run->nearest.event.position;
    motion->thread = run->nearest.event.thread;
    motion->is_signalled =
        run->stop.reason == TBD_STOP_SIGNAL && (run->nearest.event.flags & TBD_EVENT_FATAL) == 0;
    run->stop.backward = run->nearest.backward;
    if (!run->nearest.backward && run->stop.reason == TBD_STOP_POINT &&
        run->stop.point.kind >= TBD_POINT_WRITE)
        motion->at = just_after(motion->session, motion->at);
    return run->stop;
}

struct tbd_remote_stop tbd_motion_run(struct tbd_remote_motion *motion, bool backward)
{
    struct tbd_remote_run run = run_from(motion, backward, NULL);
    enum tbd_status status;

    run.leaves_conditions = motion->has_stepped;
    motion->has_stepped = false;
    status = look_for_all(&run);
    if (status != TBD_OK)
        return failed(backward, status);
    return run.nearest.has_event ? arrive(&run) : at_end(motion, backward);
}

/* ---- steps ---- */

struct thread_step {
    struct tbd_remote_motion *motion;
    struct tbd_path path;
    struct tbd_remote_stop stop;
    struct tbd_position next;
    uint64_t handles; /* `next` begins a handler: where its return address lies */
    uint32_t thread;
    bool skips; /* handlers of signals that are no stop */
};

/* After the handler, which begins at step->next.  TBD_NOTFOUND: it does not return. */
static enum tbd_status skip_handler(struct thread_step *step)
{
    const struct tbd_path_block *block;
    uint64_t time = step->next.time;
    enum tbd_status status;

    do {
        status = tbd_path_from(&step->path, time, &block);
        if (status != TBD_OK)
            return status;
        time = block->time + 1;
    } while (block->end != TBD_PATH_RETURNS || block->slot != step->handles);
    /* What it returns to makes the call that restores the registers. */
    status = tbd_path_from(&step->path, time, &block);
    if (status == TBD_OK)
        status = tbd_path_from(&step->path, block->time + 1, &block);
    if (status == TBD_OK)
        step->next = (struct tbd_position){ .time = block->time };
    return status;
}

/* The thread's next instruction, or the one before; TBD_NOTFOUND: there is none. */
static enum tbd_status neighbour(struct thread_step *step, bool backward)
{
    struct tbd_path *path = &step->path;
    struct tbd_position *io = &step->next;
    const struct tbd_path_block *block;
    struct tbd_place place;
    enum tbd_status status = tbd_session_place(path->session, *io, &place);

    step->handles = 0;
    if (status != TBD_OK)
        return status;
    if (place.thread == step->thread &&
        (backward ? io->offset != 0 : io->offset + 1 < place.insns)) {
        io->offset += backward ? UINT32_MAX : 1;
        return TBD_OK;
    }
    status = backward ? tbd_path_before(path, io->time, &block)
                      : tbd_path_from(path, io->time + (place.thread == step->thread), &block);
    if (status != TBD_OK)
        return status;
    *io = (struct tbd_position){ .time = block->time,
                                 .offset = backward && block->insns ? block->insns - 1 : 0 };
    step->handles = backward ? 0 : block->handles;
    return TBD_OK;
}

/* Other threads ran, or a handler: what they did may be a stop. */
static bool stops_between(struct thread_step *step, bool backward)
{
    struct tbd_remote_motion *motion = step->motion;
    struct tbd_remote_run run = run_from(motion, backward, &step->next);
    enum tbd_status status;

    if (motion->count == 0 ||
        (backward ? motion->at.time - step->next.time : step->next.time - motion->at.time) <= 1)
        return false;
    status = look_for_all(&run);
    if (status == TBD_OK && !run.nearest.has_event)
        return false;
    step->stop = status == TBD_OK ? arrive(&run) : failed(backward, status);
    return true;
}

/* A signal comes, whose handler begins at step->next.  True: that is a stop. */
static bool is_signalled(struct thread_step *step)
{
    struct tbd_remote_motion *motion = step->motion;
    struct tbd_position before = motion->at, handler = step->next;
    struct tbd_reg_state *state = calloc(1, sizeof(*state));
    uint64_t number = 0;

    motion->at = handler;
    if (state != NULL && tbd_remote_state_at(motion, step->thread, state) == TBD_OK)
        number = state->regs.gpr[TBD_RDI];
    free(state);
    if (number != 0 && number < TBD_REMOTE_PASSED && !motion->passed[number]) {
        motion->is_signalled = true;
        motion->thread = step->thread;
        step->stop.reason = TBD_STOP_SIGNAL;
        step->stop.number = number;
        return true;
    }
    motion->at = before;
    if (step->skips && skip_handler(step) != TBD_OK)
        step->next = handler;
    return false;
}

/* The handler's first instruction has not been carried out, and its signal is a stop: backward, that is before it. */
static bool was_signalled(struct thread_step *step)
{
    const struct tbd_path_block *block;

    if (step->next.offset != 0 || tbd_path_from(&step->path, step->next.time, &block) != TBD_OK ||
        block->time != step->next.time || block->handles == 0)
        return false;
    step->skips = false;
    return is_signalled(step);
}

/* One instruction; false: that was the last one, step->stop says why.  *out_pc is of the instruction that it leads to. */
static bool step_once(struct thread_step *step, bool backward, enum tbd_status *out,
                      uint64_t *out_pc)
{
    struct tbd_remote_motion *motion = step->motion;
    bool was_at_signal = motion->is_signalled && step->thread == motion->thread;
    struct tbd_place place;

    step->next = motion->at;
    motion->is_signalled = false;
    *out = TBD_OK;
    if (backward && !was_at_signal && was_signalled(step))
        return false;
    if (backward || !was_at_signal)
        *out = neighbour(step, backward);
    if (*out != TBD_OK || (step->handles != 0 && is_signalled(step)) ||
        stops_between(step, backward))
        return false;
    motion->at = step->next;
    motion->thread = step->thread;
    *out = tbd_session_place(motion->session, motion->at, &place);
    *out_pc = place.pc;
    if (*out == TBD_OK && tbd_packet_is_interrupted(motion->link))
        *out = TBD_INTERRUPTED;
    for (size_t i = 0; i < motion->count; i++)
        if (motion->points[i].kind <= TBD_POINT_HARDWARE && motion->points[i].address == place.pc)
            return false;
    return *out == TBD_OK;
}

/* Was watched memory touched on the way from `from`?  Then the step ends there.  The way holds the instruction at its earlier end,
 * and not the one at its later end. */
static enum tbd_status look_back(struct thread_step *step, struct tbd_position from, bool backward)
{
    struct tbd_remote_motion *motion = step->motion;
    struct tbd_position end = motion->at, limit = end;
    struct tbd_remote_run run;
    enum tbd_status status;

    if (tbd_position_compare(from, end) == 0)
        return TBD_OK;
    if (backward)
        limit = end.offset != 0 ? (struct tbd_position){ end.time, end.offset - 1 }
                                : (struct tbd_position){ end.time - 1, UINT32_MAX };
    motion->at = from;
    run = run_from(motion, backward, backward && end.time + end.offset == 0 ? NULL : &limit);
    status = look_for_watched(&run);
    tbd_interrupt_clear();
    motion->at = end;
    if (status == TBD_OK && run.nearest.has_event)
        step->stop = arrive(&run);
    return status;
}

struct tbd_remote_stop tbd_motion_step(struct tbd_remote_motion *motion, uint32_t thread,
                                       bool backward, uint64_t from, uint64_t to)
{
    struct thread_step step = { .motion = motion,
                                .thread = thread,
                                .stop = { .reason = TBD_STOP_STEP, .backward = backward },
                                .skips = from < to };
    struct tbd_position began = motion->at;
    enum tbd_status status, watched = TBD_OK;
    uint64_t pc;

    tbd_path_start(&step.path, motion->session, thread, motion->at.time);
    while (step_once(&step, backward, &status, &pc) && pc - from < to - from)
        ;
    tbd_path_free(&step.path);
    motion->has_stepped = false;
    if (status == TBD_OK || status == TBD_NOTFOUND)
        watched = look_back(&step, began, backward);
    if (watched != TBD_OK)
        return failed(backward, watched);
    if (status == TBD_NOTFOUND && step.stop.reason != TBD_STOP_POINT)
        return tbd_motion_run(motion,
                              backward); /* the thread runs no more in this direction: others do */
    motion->has_stepped = true;
    return status == TBD_OK || status == TBD_NOTFOUND ? step.stop : failed(backward, status);
}
