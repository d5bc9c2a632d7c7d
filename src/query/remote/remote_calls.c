// SPDX-License-Identifier: MIT
/* remote_calls.c - system calls as stops: where a call begins, and where it has returned
 *
 * The trace has one event for a call.  Where the thread had to wait in it, that is the moment when it came back; so each
 * thread's next calls, and the ones before, are looked at, and the nearest beginning or return is the stop.  A call has returned where
 * its thread's next block begins. */
#include "query/remote/remote_motion.h"

#include "query/session/thread_path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* With more threads only calls in which no thread waits are exact, and returns are no stops. */
#define THREADS_MAX 64u

struct calls {
    struct tbd_remote_run *run;
    uint32_t thread;
    struct tbd_position at; /* the run's beginning */
};

struct waited_call {
    uint64_t number;
    struct tbd_position begin, end; /* end.time UINT64_MAX: it does not return */
};

/* "syscall where ..."; NULL: no memory. */
static char *question_of(const struct tbd_remote_motion *motion, uint32_t thread)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    fprintf(out, "syscall");
    if (thread != 0)
        fprintf(out, " where thread == %" PRIu32, thread);
    for (size_t i = 0; i < motion->call_count; i++)
        fprintf(out, "%s syscall == %" PRIu64,
                i != 0        ? " or"
                : thread != 0 ? " and ("
                              : " where",
                motion->calls[i]);
    fprintf(out, "%s", thread != 0 && motion->call_count != 0 ? ")" : "");
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* The thread's next event after `from`, or with `with_own` at it, or the one before. */
static enum tbd_status find(const struct calls *calls, struct tbd_position from, bool backward,
                            bool with_own, struct tbd_nearest *out)
{
    struct tbd_remote_run *run = calls->run;
    char *text = question_of(run->motion, calls->thread);
    struct tbd_nearest_wish wish = { .question = text, .with_own = with_own };
    enum tbd_status status = TBD_NOMEM;
    bool is_nearest;

    *out = (struct tbd_nearest){ .session = run->nearest.session,
                                 .from = from,
                                 .backward = backward,
                                 .progress = run->nearest.progress,
                                 .progress_context = run->nearest.progress_context };
    if (text != NULL)
        status = tbd_nearest_look(out, &wish, &is_nearest);
    free(text);
    return status;
}

/* The call's beginning and return. */
static enum tbd_status take(const struct calls *calls, const struct tbd_event *event,
                            struct waited_call *out)
{
    struct tbd_session *session = calls->run->nearest.session;
    const struct tbd_path_block *block;
    struct tbd_path path;
    enum tbd_status status;

    *out = (struct waited_call){ .number = event->number, .begin = event->position };
    tbd_path_start(&path, session, calls->thread,
                   event->flags & TBD_EVENT_RESUMED ? event->began : event->position.time);
    if ((event->flags & TBD_EVENT_RESUMED) != 0) {
        status = tbd_path_from(&path, event->began, &block);
        if (status == TBD_OK)
            out->begin = (struct tbd_position){ .time = block->time,
                                                .offset = block->insns ? block->insns - 1 : 0 };
    }
    status = tbd_path_from(&path, out->begin.time + 1, &block);
    out->end.time = status == TBD_OK ? block->time : UINT64_MAX;
    tbd_path_free(&path);
    return status == TBD_NOTFOUND || status == TBD_NOTIME ? TBD_OK : status;
}

/* Offers what lies in the run's direction. */
static void offer(const struct calls *calls, const struct waited_call *call)
{
    struct tbd_remote_stop begin = { .reason = TBD_STOP_CALL, .number = call->number };
    struct tbd_remote_stop end = { .reason = TBD_STOP_RETURN, .number = call->number };
    int wanted = calls->run->nearest.backward ? -1 : 1;

    if (tbd_position_compare(call->begin, calls->at) == wanted)
        tbd_remote_offer(calls->run, call->begin, calls->thread, &begin);
    if (call->end.time != UINT64_MAX && tbd_position_compare(call->end, calls->at) == wanted)
        tbd_remote_offer(calls->run, call->end, calls->thread, &end);
}

/* The next two events of a thread, and the one before: the nearest beginning and return are among theirs. */
static enum tbd_status look_in(const struct calls *calls)
{
    bool backward = calls->run->nearest.backward;
    struct tbd_position from = calls->at;
    struct tbd_nearest found;
    enum tbd_status status = TBD_OK;
    struct waited_call call;

    for (unsigned i = 0; status == TBD_OK && i < 3; i++) {
        bool is_other_way = i == 2;

        status = find(calls, is_other_way ? calls->at : from, is_other_way ? !backward : backward,
                      i == 0 || is_other_way, &found);
        if (status != TBD_OK)
            break;
        if (!found.has_event) {
            i = i < 1 ? 1 : i;
            continue;
        }
        from = found.event.position;
        status = take(calls, &found.event, &call);
        if (status == TBD_OK)
            offer(calls, &call);
    }
    return status;
}

/* Where there are too many threads: the nearest event of all. */
static enum tbd_status look_in_all(struct tbd_remote_run *run)
{
    struct calls calls = { .run = run, .at = run->nearest.from };
    struct tbd_remote_stop stop = { .reason = TBD_STOP_CALL };
    struct tbd_nearest found;
    enum tbd_status status = find(&calls, calls.at, run->nearest.backward, false, &found);

    if (status != TBD_OK || !found.has_event)
        return status;
    stop.number = found.event.number;
    tbd_remote_offer(run, found.event.position, found.event.thread, &stop);
    return TBD_OK;
}

enum tbd_status tbd_remote_look_for_calls(struct tbd_remote_run *run)
{
    struct tbd_trace *trace = run->nearest.session->trace;
    uint32_t count = tbd_trace_thread_count(trace);
    enum tbd_status status = TBD_OK;

    if (count > THREADS_MAX)
        return look_in_all(run);
    for (uint32_t i = 0; status == TBD_OK && i < count; i++) {
        struct calls calls = { .run = run,
                               .thread = tbd_trace_thread(trace, i)->tid,
                               .at = run->nearest.from };

        status = look_in(&calls);
    }
    return status;
}
