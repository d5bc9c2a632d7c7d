// SPDX-License-Identifier: MIT
/* perfetto.c - a trace for ui.perfetto.dev: TrackEvent packets, in protocol buffers
 *
 * A process track, a track for each thread, and nested slices in it; system calls and signals are instants.  One
 * block entry is shown as one nanosecond.  Names are interned: a packet's slice names a number that the first packets
 * explain.  The numbers below are those of the fields in the public schema (protos/perfetto/trace).
 *
 * PERFETTO-1  Every packet of ours has the one sequence id; the first says that nothing was interned before. (not
 *     checked: test_exports decodes a file) */
#include "query/exports/timeline.h"

#include "base/array.h"
#include "hooks/table/syscalls.h"

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
    INTERNED_NAMES = 2,
    NAME_NUMBER = 1,
    NAME_TEXT = 2,
};
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };
enum { FLAG_CLEARED = 1, FLAG_NEEDED = 2 };
#define SEQUENCE     1u
#define PROCESS_UUID 1u

/* ---- protocol buffers ---- */

struct message {
    uint8_t *bytes; /* owned */
    size_t used, capacity;
    bool no_memory;
};

static void put_raw(struct message *m, const void *bytes, size_t count)
{
    if (!tbd_array_reserve(&m->bytes, m->used + count, &m->capacity, 1)) {
        m->no_memory = true;
        return;
    }
    if (count != 0)
        memcpy(m->bytes + m->used, bytes, count);
    m->used += count;
}

static void put_varint(struct message *m, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;

    do {
        bytes[count] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        count++;
    } while (value != 0);
    put_raw(m, bytes, count);
}

static void put_number(struct message *m, uint32_t field, uint64_t value)
{
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, value);
}

static void put_bytes(struct message *m, uint32_t field, const void *bytes, size_t count)
{
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, count);
    put_raw(m, bytes, count);
}

static void put_text(struct message *m, uint32_t field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

static void put_message(struct message *m, uint32_t field, const struct message *inner)
{
    m->no_memory |= inner->no_memory;
    put_bytes(m, field, inner->bytes, inner->used);
}

/* ---- packets ---- */

struct tracing {
    const struct tbd_export *export;
    struct message packet, part, inner; /* reused */
    uint32_t thread;                    /* of the slices that follow */
    bool no_memory;
};

static void begin(struct message *m)
{
    m->used = 0;
}

static void write_packet(struct tracing *t)
{
    struct message head = { 0 };

    put_varint(&head, (uint64_t)TRACE_PACKET << 3 | 2);
    put_varint(&head, t->packet.used);
    fwrite(head.bytes, 1, head.used, t->export->out);
    fwrite(t->packet.bytes, 1, t->packet.used, t->export->out);
    t->no_memory |= head.no_memory || t->packet.no_memory;
    free(head.bytes);
}

static uint64_t track_of(uint32_t thread)
{
    return (1ull << 32) + thread;
}

static void write_process(struct tracing *t)
{
    const struct tbd_trace_info *info = t->export->run->session->info;
    const char *slash = strrchr(info->program, '/');

    begin(&t->inner);
    put_number(&t->inner, PROCESS_PID, info->pid);
    put_text(&t->inner, PROCESS_NAME, slash == NULL ? info->program : slash + 1);
    begin(&t->part);
    put_number(&t->part, TRACK_UUID, PROCESS_UUID);
    put_message(&t->part, TRACK_PROCESS, &t->inner);
    begin(&t->packet);
    put_number(&t->packet, PACKET_SEQUENCE, SEQUENCE);
    put_number(&t->packet, PACKET_FLAGS, FLAG_CLEARED);
    put_message(&t->packet, PACKET_TRACK, &t->part);
    write_packet(t);
}

static void write_thread(struct tracing *t, uint32_t thread)
{
    begin(&t->inner);
    put_number(&t->inner, THREAD_PID, t->export->run->session->info->pid);
    put_number(&t->inner, THREAD_TID, thread);
    begin(&t->part);
    put_number(&t->part, TRACK_UUID, track_of(thread));
    put_number(&t->part, TRACK_PARENT, PROCESS_UUID);
    put_message(&t->part, TRACK_THREAD, &t->inner);
    begin(&t->packet);
    put_number(&t->packet, PACKET_SEQUENCE, SEQUENCE);
    put_message(&t->packet, PACKET_TRACK, &t->part);
    write_packet(t);
}

static void write_names(struct tracing *t)
{
    const struct tbd_timeline *timeline = t->export->timeline;

    begin(&t->part);
    for (size_t i = 0; i < timeline->name_count; i++) {
        begin(&t->inner);
        put_number(&t->inner, NAME_NUMBER, i + 1);
        put_text(&t->inner, NAME_TEXT, timeline->names[i].text);
        put_message(&t->part, INTERNED_NAMES, &t->inner);
    }
    begin(&t->packet);
    put_number(&t->packet, PACKET_SEQUENCE, SEQUENCE);
    put_number(&t->packet, PACKET_FLAGS, FLAG_NEEDED);
    put_message(&t->packet, PACKET_INTERNED, &t->part);
    write_packet(t);
}

static void write_event(struct tracing *t, uint64_t time)
{
    begin(&t->packet);
    put_number(&t->packet, PACKET_WHEN, time);
    put_number(&t->packet, PACKET_SEQUENCE, SEQUENCE);
    put_number(&t->packet, PACKET_FLAGS, FLAG_NEEDED);
    put_message(&t->packet, PACKET_EVENT, &t->part);
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

    begin(&t->part);
    put_number(&t->part, EVENT_TYPE, SLICE_BEGIN);
    put_number(&t->part, EVENT_TRACK, track_of(slice->thread));
    put_number(&t->part, EVENT_NAME_NUMBER, slice->name + 1ull);
    put_text(&t->part, EVENT_CATEGORY, "call");
    write_event(t, slice->start);
}

static void trace_close(void *context, const struct tbd_timeline_slice *slice, uint64_t self)
{
    struct tracing *t = context;

    (void)self;
    begin(&t->part);
    put_number(&t->part, EVENT_TYPE, SLICE_END);
    put_number(&t->part, EVENT_TRACK, track_of(slice->thread));
    write_event(t, slice->end);
}

/* ---- system calls and signals ---- */

static bool trace_instant(void *context, const struct tbd_event *event)
{
    struct tracing *t = context;
    const char *name = event->type == TBD_EVENT_SYSCALL ? tbd_syscall_name(event->number) : NULL;
    char text[32];

    snprintf(text, sizeof(text), "%s %" PRIu64,
             event->type == TBD_EVENT_SYSCALL ? "system call" : "signal", event->number);
    begin(&t->part);
    put_number(&t->part, EVENT_TYPE, INSTANT);
    put_number(&t->part, EVENT_TRACK, track_of(event->thread));
    put_text(&t->part, EVENT_CATEGORY, event->type == TBD_EVENT_SYSCALL ? "syscall" : "signal");
    put_text(&t->part, EVENT_NAME, name == NULL ? text : name);
    write_event(t, event->position.time);
    return !t->no_memory && ferror(t->export->out) == 0;
}

static bool trace_instants(struct tracing *t, enum tbd_event_type type)
{
    struct tbd_question question = tbd_question_all(type);

    return tbd_command_each(t->export->run, &question, trace_instant, t) <= TBD_EXIT_NOT_FOUND;
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
    is_good = tbd_timeline_walk(export->timeline, &visitor) &&
              trace_instants(&t, TBD_EVENT_SYSCALL) && trace_instants(&t, TBD_EVENT_SIGNAL);
    free(t.packet.bytes);
    free(t.part.bytes);
    free(t.inner.bytes);
    return is_good && !t.no_memory;
}
