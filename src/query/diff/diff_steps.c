// SPDX-License-Identifier: MIT
/* diff_steps.c - the steps of a run's threads, from its windows
 *
 *   window -> blocks of each thread -> steps (diff_side.c) -> chunks, each with one number
 *
 * A chunk's number is made of the keys of its TBD_DIFF_CHUNK steps in order, so two runs are compared by one number for
 * many steps, and only the chunk that differs is read again, step by step.
 *
 * DIFF_STEPS-1  marks[n] of a stream is about the steps from n * TBD_DIFF_CHUNK on; the last one's may be fewer. */
#include "query/diff/diff.h"

#include "base/array.h"
#include "base/assert.h"
#include "format/window/cursor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* ---- what a message changes ---- */

/* A handler begins or returns. */
static void take_signal(const struct tbd_cursor *cursor, uint32_t *io_depth)
{
    struct tbd_message message;
    struct tbd_msg_signal signal;
    struct tbd_msg_syscall call;

    memcpy(&message, cursor->message, sizeof(message));
    if (message.kind == TBD_MSG_SIGNAL && message.bytes >= sizeof(signal)) {
        memcpy(&signal, (const uint8_t *)cursor->message + sizeof(message), sizeof(signal));
        *io_depth += signal.handler > 1; /* neither SIG_DFL nor SIG_IGN */
    } else if (message.kind == TBD_MSG_SYSCALL && message.bytes >= sizeof(call)) {
        memcpy(&call, (const uint8_t *)cursor->message + sizeof(message), sizeof(call));
        *io_depth -= call.number == SYS_rt_sigreturn && *io_depth != 0;
    }
}

static bool is_about_signals(const struct tbd_cursor *cursor)
{
    uint32_t kind;

    memcpy(&kind, cursor->message, sizeof(kind));
    return kind == TBD_MSG_SIGNAL || kind == TBD_MSG_SYSCALL;
}

/* The number of the thread whose events are at the cursor. */
static uint32_t thread_number(const struct tbd_trace *trace, const struct tbd_cursor *cursor)
{
    const struct tbd_thread_info *thread = tbd_trace_thread_of(trace, cursor->thread, cursor->time);

    return thread == NULL ? 0 : (uint32_t)(thread - tbd_trace_thread(trace, 0));
}

/* ---- streams of all threads ---- */

enum tbd_status tbd_diff_walk_start(struct tbd_diff_side *side, struct tbd_diff_walk *walk)
{
    uint32_t threads = tbd_trace_thread_count(side->session.trace);

    *walk = (struct tbd_diff_walk){ .side = side, .thread_count = threads };
    walk->streams = calloc(2 * (size_t)threads + 1, sizeof(*walk->streams));
    walk->depth = calloc((size_t)threads + 1, sizeof(*walk->depth));
    if (walk->streams == NULL || walk->depth == NULL)
        return TBD_NOMEM;
    for (uint32_t i = 0; i < 2 * threads; i++)
        walk->streams[i].last_time = UINT64_MAX;
    return TBD_OK;
}

void tbd_diff_walk_end(struct tbd_diff_walk *walk)
{
    for (uint32_t i = 0; walk->streams != NULL && i < 2 * walk->thread_count; i++)
        free(walk->streams[i].marks);
    free(walk->streams);
    free(walk->depth);
    walk->streams = NULL;
    walk->depth = NULL;
}

static bool begin_chunk(struct tbd_diff_stream *stream, uint64_t time, uint32_t depth)
{
    if (!tbd_array_grow(&stream->marks, stream->mark_count, &stream->mark_capacity,
                        sizeof(*stream->marks)))
        return false;
    stream->marks[stream->mark_count++] = (struct tbd_diff_mark){
        .time = time, .before = stream->last_time, .last = stream->last, .depth = depth
    };
    return true;
}

static bool add_step(struct tbd_diff_stream *stream, uint64_t key, uint64_t time, uint32_t depth)
{
    struct tbd_diff_mark *mark;

    TBD_INVARIANT("DIFF_STEPS-1",
                  stream->mark_count == (stream->count + TBD_DIFF_CHUNK - 1) / TBD_DIFF_CHUNK);
    if (stream->count % TBD_DIFF_CHUNK == 0 && !begin_chunk(stream, time, depth))
        return false;
    mark = &stream->marks[stream->mark_count - 1];
    mark->hash = (mark->hash ^ key) * 0x9fb21c651e98df25ull;
    mark->hash ^= mark->hash >> 29;
    stream->last = key;
    stream->last_time = time;
    stream->count++;
    return true;
}

static bool add_block(struct tbd_diff_walk *walk, const struct tbd_cursor *cursor,
                      const struct tbd_diff_code *code)
{
    uint32_t depth = walk->depth[walk->index];
    struct tbd_diff_stream *stream = &walk->streams[2 * walk->index + (depth != 0)];
    const uint64_t *lines = walk->side->line_keys + code->lines;

    if (stream->is_over)
        return true;
    if (code->key != 0)
        return add_step(stream, code->key, cursor->time, depth);
    for (uint32_t i = 0; i < code->line_count; i++)
        if (lines[i] != stream->last && !add_step(stream, lines[i], cursor->time, depth))
            return false;
    return true;
}

static bool take_event(struct tbd_diff_walk *walk, const struct tbd_cursor *cursor)
{
    struct tbd_diff_side *side = walk->side;
    const struct tbd_diff_code *code;

    if (cursor->thread != walk->tid) {
        walk->tid = cursor->thread;
        walk->index = thread_number(side->session.trace, cursor);
    }
    if (cursor->kind != TBD_AT_BLOCK) {
        if (is_about_signals(cursor))
            take_signal(cursor, &walk->depth[walk->index]);
        walk->tid = 0; /* a thread may have begun or ended */
        return true;
    }
    code = tbd_diff_code_of(side, cursor);
    if (code == NULL ||
        !tbd_array_reach(&side->counts, cursor->id, &side->count_capacity, sizeof(*side->counts)))
        return false;
    side->counts[cursor->id]++;
    return add_block(walk, cursor, code);
}

static enum tbd_status walk_slice(struct tbd_diff_walk *walk, const struct tbd_window *window)
{
    struct tbd_cursor cursor;
    bool more;

    tbd_cursor_first(window, &cursor);
    for (more = cursor.kind != TBD_AT_END; more;) {
        if (!take_event(walk, &cursor))
            return TBD_NOMEM;
        more =
            cursor.kind == TBD_AT_BLOCK ? tbd_cursor_skip_block(&cursor) : tbd_cursor_next(&cursor);
    }
    return TBD_OK;
}

enum tbd_status tbd_diff_walk_window(struct tbd_diff_walk *walk, uint32_t window)
{
    struct tbd_session *session = &walk->side->session;
    uint32_t slices = tbd_session_slices(session, window, false);
    enum tbd_status status = TBD_OK;

    for (uint32_t i = 0; i < slices && status == TBD_OK; i++) {
        struct tbd_session_slice wanted = { .window = window, .slice = i, .last = slices - 1 };
        const struct tbd_window *slice;

        status = tbd_session_slice(session, &wanted, &slice);
        if (status == TBD_OK)
            status = walk_slice(walk, slice);
    }
    return status;
}

/* ---- one stream, step by step ---- */

struct step_reading {
    struct tbd_diff_reader *reader;
    struct tbd_diff_step *out;
    size_t count, max;
};

static void put_step(struct step_reading *to, uint64_t key, const struct tbd_cursor *cursor)
{
    to->out[to->count++] =
        (struct tbd_diff_step){ .key = key, .time = cursor->time, .id = cursor->id };
    to->reader->last = key;
}

static bool read_block(struct step_reading *to, const struct tbd_cursor *cursor)
{
    struct tbd_diff_reader *reader = to->reader;
    const struct tbd_diff_code *code = tbd_diff_code_of(reader->side, cursor);

    if (code == NULL)
        return false;
    if (code->key != 0)
        put_step(to, code->key, cursor);
    for (uint32_t i = 0; i < code->line_count; i++)
        if (reader->side->line_keys[code->lines + i] != reader->last)
            put_step(to, reader->side->line_keys[code->lines + i], cursor);
    return true;
}

/* The thread's events of a slice, from reader->time on. */
static bool read_slice(struct step_reading *to, const struct tbd_window *window)
{
    struct tbd_diff_reader *reader = to->reader;
    const struct tbd_trace *trace = reader->side->session.trace;
    uint32_t wanted = reader->stream / 2, tid = 0, index = 0;
    struct tbd_cursor cursor;
    bool more = true;

    if (reader->time <= window->first_time || !tbd_cursor_seek(window, reader->time, &cursor))
        tbd_cursor_first(window, &cursor);
    while (more && cursor.kind != TBD_AT_END && to->count < to->max) {
        if (cursor.thread != tid)
            index = thread_number(trace, &cursor);
        tid = cursor.kind == TBD_AT_BLOCK ? cursor.thread : 0;
        if (index == wanted && cursor.kind == TBD_AT_MESSAGE && is_about_signals(&cursor))
            take_signal(&cursor, &reader->depth);
        if (index == wanted && cursor.kind == TBD_AT_BLOCK &&
            (reader->depth != 0) == (reader->stream % 2 != 0) && !read_block(to, &cursor))
            return false;
        if (cursor.kind == TBD_AT_BLOCK)
            reader->time = cursor.time + 1;
        more =
            cursor.kind == TBD_AT_BLOCK ? tbd_cursor_skip_block(&cursor) : tbd_cursor_next(&cursor);
        /* messages after the block belong to it */
        while (more && to->count >= to->max && cursor.kind == TBD_AT_MESSAGE) {
            if (thread_number(trace, &cursor) == wanted && is_about_signals(&cursor))
                take_signal(&cursor, &reader->depth);
            more = tbd_cursor_next(&cursor);
        }
    }
    return true;
}

enum tbd_status tbd_diff_read(struct tbd_diff_reader *reader, struct tbd_diff_step *out, size_t max,
                              size_t *out_count)
{
    struct tbd_session *session = &reader->side->session;
    struct step_reading to = { .reader = reader, .out = out, .max = max - TBD_DIFF_STEPS_OF_BLOCK };
    enum tbd_status status = TBD_OK;

    while (status == TBD_OK && to.count < to.max) {
        uint32_t index = tbd_trace_window_of(session->trace, reader->time);
        const struct tbd_window *window;

        if (index == UINT32_MAX)
            break;
        status = tbd_session_slice_at(session, index, reader->time, &window);
        if (status == TBD_OK && !read_slice(&to, window))
            status = TBD_NOMEM;
    }
    *out_count = to.count;
    return status;
}
