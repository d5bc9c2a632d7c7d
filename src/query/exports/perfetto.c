// SPDX-License-Identifier: MIT
/* perfetto.c - a trace for ui.perfetto.dev: TrackEvent packets, in protocol buffers
 *
 * A process track, a track for each thread, and nested slices in it; system calls, signals and marks (tbd_mark) are
 * instants; a track for each counter.  One block entry is shown as one nanosecond.  Names are interned: a packet's slice names a number that the first packets
 * explain.  The numbers below are those of the fields in the public schema (protos/perfetto/trace).
 *
 * PERFETTO-1  Every packet of ours has the one sequence id; the first says that nothing was interned before. (not
 *     checked: test_exports decodes a file) */
#include "query/exports/counter.h"
#include "query/exports/protobuf.h"
#include "query/exports/timeline.h"

#include "base/escape.h"
#include "hooks/table/syscalls.h"
#include "query/commands/functions.h"
#include "query/condition/expr_keep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRACE_PACKET = 1,
    PACKET_WHEN = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,
    EVENT_TYPE = 9,
    EVENT_NAME_NUMBER = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_NAME = 23,
    EVENT_NUMBER = 30,
    EVENT_REAL = 44,
    INTERNED_NAMES = 2,
    NAME_NUMBER = 1,
    NAME_TEXT = 2,
};
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
enum { FLAG_CLEARED = 1, FLAG_NEEDED = 2 };
#define SEQUENCE     1u
#define PROCESS_UUID 1u

/* ---- packets ---- */

struct tracing {
    const struct tbd_export *export;
    struct tbd_protobuf file, packet, part, inner; /* reused */
    uint32_t thread;                               /* of the slices that follow */
    uint32_t counter;                              /* being written */
    bool no_memory;
};

static void write_packet(struct tracing *t)
{
    tbd_protobuf_begin(&t->file);
    tbd_protobuf_message(&t->file, TRACE_PACKET, &t->packet);
    fwrite(t->file.bytes, 1, t->file.used, t->export->out);
    t->no_memory |= t->file.no_memory;
}

static uint64_t track_of(uint32_t thread)
{
    return (1ull << 32) + thread;
}

static void write_process(struct tracing *t)
{
    const struct tbd_trace_info *info = t->export->run->session->info;
    const char *slash = strrchr(info->program, '/');

    tbd_protobuf_begin(&t->inner);
    tbd_protobuf_number(&t->inner, PROCESS_PID, info->pid);
    tbd_protobuf_text(&t->inner, PROCESS_NAME, slash == NULL ? info->program : slash + 1);
    tbd_protobuf_begin(&t->part);
    tbd_protobuf_number(&t->part, TRACK_UUID, PROCESS_UUID);
    tbd_protobuf_message(&t->part, TRACK_PROCESS, &t->inner);
    tbd_protobuf_begin(&t->packet);
    tbd_protobuf_number(&t->packet, PACKET_SEQUENCE, SEQUENCE);
    tbd_protobuf_number(&t->packet, PACKET_FLAGS, FLAG_CLEARED);
    tbd_protobuf_message(&t->packet, PACKET_TRACK, &t->part);
    write_packet(t);
}

static void write_thread(struct tracing *t, uint32_t thread)
{
    tbd_protobuf_begin(&t->inner);
    tbd_protobuf_number(&t->inner, THREAD_PID, t->export->run->session->info->pid);
    tbd_protobuf_number(&t->inner, THREAD_TID, thread);
    tbd_protobuf_begin(&t->part);
    tbd_protobuf_number(&t->part, TRACK_UUID, track_of(thread));
    tbd_protobuf_number(&t->part, TRACK_PARENT, PROCESS_UUID);
    tbd_protobuf_message(&t->part, TRACK_THREAD, &t->inner);
    tbd_protobuf_begin(&t->packet);
    tbd_protobuf_number(&t->packet, PACKET_SEQUENCE, SEQUENCE);
    tbd_protobuf_message(&t->packet, PACKET_TRACK, &t->part);
    write_packet(t);
}

static void write_names(struct tracing *t)
{
    const struct tbd_timeline *timeline = t->export->timeline;

    tbd_protobuf_begin(&t->part);
    for (size_t i = 0; i < timeline->name_count; i++) {
        tbd_protobuf_begin(&t->inner);
        tbd_protobuf_number(&t->inner, NAME_NUMBER, i + 1);
        tbd_protobuf_text(&t->inner, NAME_TEXT, timeline->names[i].text);
        tbd_protobuf_message(&t->part, INTERNED_NAMES, &t->inner);
    }
    tbd_protobuf_begin(&t->packet);
    tbd_protobuf_number(&t->packet, PACKET_SEQUENCE, SEQUENCE);
    tbd_protobuf_number(&t->packet, PACKET_FLAGS, FLAG_NEEDED);
    tbd_protobuf_message(&t->packet, PACKET_INTERNED, &t->part);
    write_packet(t);
}

static void write_event(struct tracing *t, uint64_t time)
{
    tbd_protobuf_begin(&t->packet);
    tbd_protobuf_number(&t->packet, PACKET_WHEN, time);
    tbd_protobuf_number(&t->packet, PACKET_SEQUENCE, SEQUENCE);
    tbd_protobuf_number(&t->packet, PACKET_FLAGS, FLAG_NEEDED);
    tbd_protobuf_message(&t->packet, PACKET_EVENT, &t->part);
    write_packet(t);
}

static void trace_thread(void *context, uint32_t thread)
{
    struct tracing *t = context;

    t->thread = thread;
    write_thread(t, thread);
}

static void trace_open(void *context, const struct tbd_timeline_slice *slice)
{
    struct tracing *t = context;

    tbd_protobuf_begin(&t->part);
    tbd_protobuf_number(&t->part, EVENT_TYPE, SLICE_BEGIN);
    tbd_protobuf_number(&t->part, EVENT_TRACK, track_of(slice->thread));
    tbd_protobuf_number(&t->part, EVENT_NAME_NUMBER, slice->name + 1ull);
    tbd_protobuf_text(&t->part, EVENT_CATEGORY, "call");
    write_event(t, slice->start);
}

static void trace_close(void *context, const struct tbd_timeline_slice *slice, uint64_t self)
{
    struct tracing *t = context;

    (void)self;
    tbd_protobuf_begin(&t->part);
    tbd_protobuf_number(&t->part, EVENT_TYPE, SLICE_END);
    tbd_protobuf_number(&t->part, EVENT_TRACK, track_of(slice->thread));
    write_event(t, slice->end);
}

/* ---- system calls, signals and marks ---- */

static bool write_instant(struct tracing *t, const struct tbd_event *event, const char *category,
                          const char *name)
{
    tbd_protobuf_begin(&t->part);
    tbd_protobuf_number(&t->part, EVENT_TYPE, INSTANT);
    tbd_protobuf_number(&t->part, EVENT_TRACK, track_of(event->thread));
    tbd_protobuf_text(&t->part, EVENT_CATEGORY, category);
    tbd_protobuf_text(&t->part, EVENT_NAME, name);
    write_event(t, event->position.time);
    return !t->no_memory && ferror(t->export->out) == 0;
}

static bool trace_call(void *context, const struct tbd_event *event)
{
    const char *name = tbd_syscall_name(event->number);
    char text[32];

    snprintf(text, sizeof(text), "system call %" PRIu64, event->number);
    return write_instant(context, event, "syscall", name == NULL ? text : name);
}

static bool trace_signal(void *context, const struct tbd_event *event)
{
    char text[32];

    snprintf(text, sizeof(text), "signal %" PRIu64, event->number);
    return write_instant(context, event, "signal", text);
}

/* Its text came with the entry. */
static bool trace_mark(void *context, const struct tbd_event *event)
{
    const struct tbd_kept_value *kept = event->kept;
    char text[TBD_KEPT_TEXT_MAX * TBD_ESCAPE_MAX + 1] = "mark";

    if (kept != NULL && kept->state == TBD_KEPT_TEXT)
        (void)tbd_escape(TBD_ESCAPE_FIELD, (const char *)kept + kept->text, kept->bytes, text,
                         sizeof(text));
    return write_instant(context, event, "mark", text);
}

static bool trace_all(struct tracing *t, struct tbd_question *question,
                      bool (*each)(void *context, const struct tbd_event *event))
{
    return tbd_command_each(t->export->run, question, each, t) <= TBD_EXIT_NOT_FOUND;
}

static bool trace_marks(struct tracing *t)
{
    struct tbd_session *session = t->export->run->session;
    struct tbd_question question = tbd_question_all(TBD_EVENT_FUNC_ENTER);
    char mark[] = "tbd_mark";
    const struct tbd_expr_name name = { .kind = TBD_NAME_FUNCTION, .text = mark };
    uint32_t last = tbd_trace_window_count(session->trace) - 1;
    struct tbd_symbol found[TBD_FUNCTIONS_MAX];
    struct tbd_query_error error = { 0 };
    struct tbd_expr *text = NULL;

    if (tbd_functions_called(session, last, mark, found) == 0)
        return true;
    if (tbd_expr_parse("arg0", 0, TBD_EVENT_FUNC_ENTER, &text, &error) != TBD_OK)
        return false;
    tbd_question_where(&question, tbd_expr_is_in(&name));
    tbd_question_where(&question, tbd_expr_keep(text, question.keeps++, true));
    return trace_all(t, &question, trace_mark);
}

static bool trace_instants(struct tracing *t)
{
    struct tbd_question calls = tbd_question_all(TBD_EVENT_SYSCALL);
    struct tbd_question signals = tbd_question_all(TBD_EVENT_SIGNAL);

    return trace_all(t, &calls, trace_call) && trace_all(t, &signals, trace_signal) &&
           trace_marks(t);
}

/* ---- counters ---- */

static uint64_t counter_track(const struct tracing *t)
{
    return (1ull << 33) + t->counter;
}

static void write_counter(struct tracing *t, const char *name)
{
    tbd_protobuf_begin(&t->inner);
    tbd_protobuf_begin(&t->part);
    tbd_protobuf_number(&t->part, TRACK_UUID, counter_track(t));
    tbd_protobuf_number(&t->part, TRACK_PARENT, PROCESS_UUID);
    tbd_protobuf_text(&t->part, TRACK_NAME, name);
    tbd_protobuf_message(&t->part, TRACK_COUNTER, &t->inner);
    tbd_protobuf_begin(&t->packet);
    tbd_protobuf_number(&t->packet, PACKET_SEQUENCE, SEQUENCE);
    tbd_protobuf_message(&t->packet, PACKET_TRACK, &t->part);
    write_packet(t);
}

static bool trace_value(void *context, const struct tbd_counter_value *value)
{
    struct tracing *t = context;

    tbd_protobuf_begin(&t->part);
    tbd_protobuf_number(&t->part, EVENT_TYPE, COUNTER);
    tbd_protobuf_number(&t->part, EVENT_TRACK, counter_track(t));
    if (value->is_real)
        tbd_protobuf_double(&t->part, EVENT_REAL, value->real);
    else
        tbd_protobuf_number(&t->part, EVENT_NUMBER, (uint64_t)value->number);
    write_event(t, value->time);
    return !t->no_memory && ferror(t->export->out) == 0;
}

static bool trace_counters(struct tracing *t)
{
    for (t->counter = 0; t->counter < t->export->counter_count; t->counter++) {
        struct tbd_counter *counter = &t->export->counters[t->counter];

        write_counter(t, counter->text);
        if (tbd_counter_each(counter, trace_value, t) > TBD_EXIT_NOT_FOUND)
            return false;
    }
    return true;
}

bool tbd_export_perfetto(const struct tbd_export *export)
{
    struct tracing t = { .export = export };
    struct tbd_timeline_visitor visitor = {
        .thread = trace_thread, .open = trace_open, .close = trace_close, .context = &t
    };
    bool is_good;

    write_process(&t);
    write_names(&t);
    is_good =
        tbd_timeline_walk(export->timeline, &visitor) && trace_instants(&t) && trace_counters(&t);
    tbd_protobuf_free(&t.file);
    tbd_protobuf_free(&t.packet);
    tbd_protobuf_free(&t.part);
    tbd_protobuf_free(&t.inner);
    return is_good && !t.no_memory;
}
