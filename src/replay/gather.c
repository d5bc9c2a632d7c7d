// SPDX-License-Identifier: MIT
/* gather.c - see gather.h
 *
 * Operands are contiguous already (operands.h), or are copied chunk by chunk; entries are replaced
 * by the trace's ids.  Messages about state are removed: they come at the window's end, so little
 * is moved.  In `operands`:
 *
 *     | kept: final | gap | run: checked, not yet moved | not yet checked |
 *     0           kept  run_start                      in               have
 *
 * Invariants
 * GATHER-1  Entries are read once.  Messages are made this process' own, or copied, before they are
 *     checked: a faulty replay process cannot change afterwards what cursors rely on.  (not
 *     checked: test_gather does)
 * GATHER-2  Every entry kept is a block of the table, or a message with a complete payload; records
 *     and messages fill the operands exactly (WINDOW-1).  So cursors need no checks.
 * GATHER-3  The window ends before the first error (`damage`); the rest of its stream is skipped.
 *     (not checked: test_gather does) */
#include "replay/gather.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/copy_once.h"
#include "base/layout.h"
#include "format/coding/coding.h"
#include "format/files/large_buffers.h"
#include "format/window/window_make.h"
#include "replay/replay_end.h"
#include "replay/process.h"
#include "replay/record_sizes.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ENTRIES ((size_t)1 << 31)
/* Most operand bytes of an entry that is continued in the next chunk. */
#define PENDING_MAX (TBD_MESSAGE_MAX_BYTES + sizeof(struct tbd_message))

struct tbd_gather {
    struct tbd_record_sizes sizes; /* of the consumer's stream */

    struct tbd_window *window;     /* owned until the window is finished */
    uint32_t *entries;             /* large buffer; owned until then */
    uint8_t *operands;             /* in the area, or a large buffer; owned until then */
    struct tbd_operand_area *area; /* owned until then; NULL: operands are a large buffer */
    size_t entry_count, entry_hint;
    size_t kept, run_start, in, have, operand_hint;
    uint64_t index, blocks;
    uint32_t thread;
    size_t due;       /* number of entries at the next checkpoint */
    uint32_t pending; /* an entry whose operands come with the next chunk; 0: none */
    bool is_over;
    const char *damage; /* NULL: nothing is wrong */

    struct tbd_log_entry *log; /* malloc; owned until finished */
    size_t *log_offsets;
    size_t log_count, log_capacity, offset_capacity;
    struct tbd_message_limits limits;
    struct tbd_replay_end end; /* of the window: the messages about state since the last event */
};

struct tbd_gather *tbd_gather_new(void)
{
    return calloc(1, sizeof(struct tbd_gather));
}

static void drop(struct tbd_gather *g)
{
    tbd_window_free(g->window);
    tbd_large_buffer_give(g->entries);
    if (!g->area)
        tbd_large_buffer_give(g->operands);
    tbd_area_give(g->area);
    free(g->log);
    g->area = NULL;
    g->window = NULL;
    g->entries = NULL;
    g->operands = NULL;
    g->log = NULL;
    g->log_capacity = 0;
}

void tbd_gather_free(struct tbd_gather *g)
{
    if (!g)
        return;
    drop(g);
    tbd_sizes_free(&g->sizes);
    tbd_replay_end_free(&g->end);
    free(g->log_offsets);
    free(g);
}

void tbd_gather_expect(struct tbd_gather *g, const struct tbd_gather_most *most)
{
    tbd_message_limits_begin(&g->limits, most);
    g->end.page_most = most->pages;
}

static const struct tbd_gather_most no_limits = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX,
                                                  SIZE_MAX };

enum tbd_status tbd_gather_begin(struct tbd_gather *g, struct tbd_consumer *consumer,
                                 struct tbd_operand_area *area, uint64_t first_time,
                                 uint32_t thread)
{
    drop(g);
    g->area = area;
    g->operands = area ? tbd_area_bytes(area) : NULL;
    tbd_sizes_begin(&g->sizes, consumer, false);
    g->entry_count = g->kept = g->run_start = g->in = g->have = g->due = 0;
    g->index = g->blocks = 0;
    g->log_count = 0;
    tbd_gather_expect(g, &no_limits);
    tbd_replay_end_clear(&g->end);
    g->thread = thread;
    g->pending = 0;
    g->is_over = false;
    g->damage = NULL;
    g->window = tbd_window_new(tbd_consumer_table(consumer));
    if (!g->window)
        return TBD_NOMEM;
    g->window->first_time = first_time;
    g->window->regs.thread = thread;
    return TBD_OK;
}

void tbd_gather_forget(struct tbd_gather *g)
{
    drop(g);
    tbd_sizes_forget(&g->sizes);
}

static enum tbd_status wrong(struct tbd_gather *g, const char *what)
{
    g->damage = what;
    return TBD_OK;
}

/* ---- blocks ---- */

struct taking {
    size_t in;
    uint64_t index;
};

/* Takes block entries, four at a time; stops before four of which one is not a usual block. */
static size_t take_fours(const struct tbd_gather *g, const volatile uint32_t *from, size_t count,
                         uint32_t *out, struct taking *io)
{
    const uint64_t *sizes = g->sizes.words;
    const uint32_t mask = g->sizes.mask;
    const size_t have = g->have;
    size_t in = io->in, i;
    uint64_t index = io->index;

    for (i = 0; i + TBD_SIZES_AT_ONCE <= count; i += TBD_SIZES_AT_ONCE) {
        uint32_t a = from[i], b = from[i + 1], c = from[i + 2], d = from[i + 3];
        uint64_t s, t, u, v, sum;

        if ((a | b | c | d) > mask)
            break;
        s = sizes[a];
        t = sizes[b];
        u = sizes[c];
        v = sizes[d];
        sum = s + t + u + v;
        if (tbd_sizes_is_none(s | t | u | v) || tbd_sizes_operand_bytes(sum) > have - in)
            break;
        out[i] = (uint32_t)s;
        out[i + 1] = (uint32_t)t;
        out[i + 2] = (uint32_t)u;
        out[i + 3] = (uint32_t)v;
        in += tbd_sizes_operand_bytes(sum);
        index += sum >> 48;
    }
    *io = (struct taking){ in, index };
    return i;
}

/* Takes block entries up to the next message, the first impossible one, or the next checkpoint. */
static size_t take_some(struct tbd_gather *g, const volatile uint32_t *from, size_t count)
{
    uint32_t *out = g->entries + g->entry_count;
    struct taking at = { g->in, g->index };
    size_t i = take_fours(g, from, count, out, &at);

    for (; i < count; i++) {
        uint32_t entry = from[i];
        uint64_t block = tbd_sizes_of(&g->sizes, entry);

        if (tbd_sizes_is_none(block) || tbd_sizes_operand_bytes(block) > g->have - at.in)
            break;
        out[i] = (uint32_t)block;
        at.in += tbd_sizes_operand_bytes(block);
        at.index += block >> 48;
    }
    g->in = at.in;
    g->index = at.index;
    g->entry_count += i;
    g->blocks += i;
    if (i)
        tbd_replay_end_go_on(&g->end);
    return i;
}

static bool put_checkpoint(struct tbd_gather *g)
{
    struct tbd_checkpoint here = {
        .entry = g->entry_count,
        .operand = g->kept + (g->in - g->run_start),
        .time = g->window->first_time + g->blocks,
        .index = (uint32_t)g->index,
        .thread = g->thread,
    };

    if (!tbd_window_put_checkpoint(g->window, &here))
        return false;
    g->due = g->entry_count + TBD_CHECKPOINT_ENTRIES;
    return true;
}

/* From here on, the replay process cannot change these operands. */
static bool own(struct tbd_gather *g, size_t from, size_t bytes)
{
    return !g->area || tbd_area_own(g->area, from, bytes);
}

/* Keeps the run: moves it down over the gap. */
static bool close_run(struct tbd_gather *g)
{
    size_t bytes = g->in - g->run_start;

    if (g->kept != g->run_start && bytes && !own(g, g->kept, bytes))
        return false;
    if (g->kept != g->run_start && bytes)
        memmove(g->operands + g->kept, g->operands + g->run_start, bytes);
    g->kept += bytes;
    g->run_start = g->in;
    return true;
}

/* ---- messages ---- */

static enum tbd_status put_log(struct tbd_gather *g)
{
    if (!tbd_array_grow(&g->log, g->log_count, &g->log_capacity, sizeof(*g->log)) ||
        !tbd_array_grow(&g->log_offsets, g->log_count, &g->offset_capacity,
                        sizeof(*g->log_offsets)))
        return TBD_NOMEM;
    g->log[g->log_count].time = g->blocks;
    g->log_offsets[g->log_count++] = g->kept + (g->in - g->run_start);
    return TBD_OK;
}

static enum tbd_status take_event(struct tbd_gather *g, uint32_t kind, const uint8_t *payload,
                                  uint32_t bytes)
{
    struct tbd_msg_thread thread;
    const char *what = tbd_message_limits_take(&g->limits, kind, payload, bytes);

    if (what)
        return wrong(g, what);
    if (kind != TBD_MSG_READ && kind != TBD_MSG_UNLOGGED && put_log(g))
        return TBD_NOMEM;
    if (kind != TBD_MSG_READ)
        tbd_replay_end_go_on(&g->end);
    if (kind == TBD_MSG_THREAD) {
        memcpy(&thread, payload, sizeof(thread));
        if (thread.event == TBD_THREAD_SWITCH)
            g->thread = thread.thread;
    }
    g->entries[g->entry_count++] = TBD_ENTRY_MESSAGE | kind;
    g->in += sizeof(struct tbd_message) + bytes;
    g->index++;
    return TBD_OK;
}

/* Takes a message that is no event. */
static enum tbd_status take_state(struct tbd_gather *g, uint32_t kind, const uint8_t *payload,
                                  uint32_t bytes)
{
    const char *what = NULL;
    enum tbd_status status =
        tbd_replay_end_message(&g->end, g->window, kind, payload, bytes, &what);

    return what ? wrong(g, what) : status;
}

/* Takes the next message in the operands.  TBD_NOTFOUND: it has not arrived yet. */
static enum tbd_status take_message(struct tbd_gather *g, uint32_t kind)
{
    size_t left = g->have - g->in;
    const uint8_t *payload;
    struct tbd_message head;
    enum tbd_status status;

    if (left < sizeof(head))
        return TBD_NOTFOUND;
    if (tbd_message_is_event(kind) && !own(g, g->in, sizeof(head)))
        return TBD_NOMEM;
    tbd_copy_once(&head, g->operands + g->in, sizeof(head));
    if (head.kind != kind)
        return wrong(g, "a message of another kind");
    if (head.bytes > left - sizeof(head))
        return TBD_NOTFOUND;
    payload = g->operands + g->in + sizeof(head);
    if (tbd_message_is_event(kind) && !own(g, g->in + sizeof(head), head.bytes))
        return TBD_NOMEM;
    if (tbd_message_is_event(kind))
        return take_event(g, kind, payload, head.bytes);
    if (!close_run(g))
        return TBD_NOMEM;
    status = take_state(g, kind, payload, head.bytes);
    g->in += sizeof(head) + head.bytes;
    g->run_start = g->in;
    return status;
}

/* ---- chunks ---- */

/* Takes one entry that is a message, or a block that take_some() has left.  TBD_NOTFOUND: its
 * operands have not arrived yet. */
static enum tbd_status take_one(struct tbd_gather *g, uint32_t entry)
{
    if (entry & TBD_ENTRY_MESSAGE)
        return take_message(g, entry & ~TBD_ENTRY_MESSAGE);
    if (!tbd_sizes_is_none(tbd_sizes_of(&g->sizes, entry)))
        return TBD_NOTFOUND;
    return wrong(g, tbd_sizes_why_not(&g->sizes, entry));
}

/* Takes a copy of one entry; it is pending if its operands come with the next chunk. */
static enum tbd_status take_alone(struct tbd_gather *g, uint32_t entry)
{
    enum tbd_status status;

    if (g->entry_count >= g->due && !(entry & TBD_ENTRY_MESSAGE) && !put_checkpoint(g))
        return TBD_NOMEM;
    if (take_some(g, &entry, 1))
        return TBD_OK;
    status = take_one(g, entry);
    if (status != TBD_NOTFOUND)
        return status;
    g->pending = entry;
    return TBD_OK;
}

/* Takes all entries; the operands of the last one may come with the next chunk. */
static enum tbd_status take_entries(struct tbd_gather *g, const volatile uint32_t *from,
                                    size_t count)
{
    enum tbd_status status = TBD_OK;
    size_t i = 0;

    while (i < count && status == TBD_OK && !g->damage && !g->pending) {
        size_t most = g->entry_count < g->due ? g->due - g->entry_count : 0;
        size_t taken = take_some(g, from + i, most < count - i ? most : count - i);

        i += taken;
        if (taken == most || !taken)
            status = i < count ? take_alone(g, from[i++]) : TBD_OK;
    }
    if (g->pending && i < count)
        wrong(g, "a record outside the operands");
    if (g->index > UINT32_MAX)
        wrong(g, "too many events");
    return status;
}

/* The buffer with `used` bytes, or one of `likely` bytes, so that `needed` can be written.  NULL: no memory. */
static void *reserve(void *buffer, size_t used, size_t needed, size_t likely)
{
    if (!buffer || tbd_large_buffer_bytes(buffer) < needed)
        buffer = tbd_large_buffer_grow(buffer, used, likely);
    if (buffer)
        tbd_large_buffer_ready(buffer, needed);
    return buffer;
}

static bool reserve_entries(struct tbd_gather *g, size_t entries)
{
    size_t more = entries + entries / 2;
    void *grown;

    if (entries > MOST_ENTRIES)
        return false;
    more = more > g->entry_hint ? more : g->entry_hint;
    grown = reserve(g->entries, g->entry_count * sizeof(*g->entries), entries * sizeof(*g->entries),
                    more * sizeof(*g->entries));
    if (grown)
        g->entries = grown;
    return grown;
}

static bool reserve_operands(struct tbd_gather *g, size_t operands)
{
    size_t more = operands + operands / 2;
    void *grown;

    more = more > g->operand_hint ? more : g->operand_hint;
    grown = reserve(g->operands, g->have, operands, more);
    if (grown)
        g->operands = grown;
    return grown;
}

/* The stream uses the area from its beginning again: from now on operands are copied. */
static bool leave_area(struct tbd_gather *g)
{
    uint8_t *bigger = tbd_large_buffer_take(g->have * 2 + TBD_ROW_SLACK);

    if (!bigger)
        return false;
    memcpy(bigger, g->operands, g->have);
    tbd_area_give(g->area);
    g->area = NULL;
    g->operands = bigger;
    return true;
}

static bool take_operands(struct tbd_gather *g, const struct tbd_chunk_view *chunk)
{
    if (g->area)
        tbd_area_more(g->area, g->have, chunk->operands, chunk->operand_bytes);
    else if (!reserve_operands(g, g->have + chunk->operand_bytes + TBD_ROW_SLACK))
        return false;
    else
        memcpy(g->operands + g->have, chunk->operands, chunk->operand_bytes);
    g->have += chunk->operand_bytes;
    return true;
}

static enum tbd_status take_chunk(struct tbd_gather *g, const struct tbd_chunk_view *chunk)
{
    enum tbd_status status = TBD_OK;

    if (g->damage)
        return TBD_OK;
    if (!reserve_entries(g, g->entry_count + chunk->entry_count + 1) || !take_operands(g, chunk))
        return TBD_NOMEM;
    if (g->pending) {
        uint32_t pending = g->pending;

        g->pending = 0;
        status = take_entries(g, &pending, 1);
    }
    if (!status && g->pending)
        return wrong(g, "a record outside the operands");
    if (!status)
        status = take_entries(g, chunk->entries, chunk->entry_count);
    if (!status && !g->damage && g->have - g->in > (g->pending ? PENDING_MAX : 0))
        return wrong(g, "operands without an entry");
    return status;
}

enum tbd_status tbd_gather_take(struct tbd_gather *g, struct tbd_error *why)
{
    while (!g->is_over) {
        struct tbd_chunk_view chunk;
        enum tbd_status status = tbd_consumer_peek(g->sizes.consumer, &chunk, why);

        if (!status && !tbd_sizes_take_definitions(&g->sizes))
            status = TBD_NOMEM;
        if (!status)
            status = take_chunk(g, &chunk);
        if (!status && chunk.wraps && g->area && !leave_area(g))
            status = TBD_NOMEM;
        if (status)
            return status == TBD_NOMEM ? tbd_process_error(why, status, "no memory") : status;
        g->is_over = chunk.ends_window;
        tbd_consumer_pass(g->sizes.consumer);
    }
    return TBD_OK;
}

bool tbd_gather_is_over(const struct tbd_gather *g)
{
    return g->is_over;
}

/* ---- the window ---- */

static void give_area(void *area)
{
    tbd_area_give(area);
}

static bool adopt_operands(struct tbd_window *window, struct tbd_operand_area *area)
{
    if (area)
        return tbd_window_adopt_with(window, area, give_area);
    return tbd_window_adopt_large_buffer(window, (void *)(uintptr_t)window->operands);
}

static bool finish_events(struct tbd_gather *g, struct tbd_window *window)
{
    struct tbd_operand_area *area = g->area;
    bool is_closed = close_run(g);

    for (size_t i = 0; i < g->log_count; i++)
        g->log[i].message = (const void *)(g->operands + g->log_offsets[i]);
    window->log = g->log;
    window->log_count = g->log_count;
    window->entries = g->entries;
    window->entry_count = g->entry_count;
    window->operands = g->operands;
    window->operand_bytes = g->kept;
    window->blocks = g->blocks;
    window->has_events = true;
    g->entry_hint = g->entry_count + g->entry_count / 16;
    TBD_INVARIANT("GATHER-2", g->kept <= g->in && g->in <= g->have);
    if (!area)
        g->operand_hint = g->have + g->have / 16;
    g->entries = NULL;
    g->operands = NULL;
    g->area = NULL;
    g->log = NULL;
    g->log_capacity = 0;
    /* Evaluates all three calls, even after a failure, so that each pointer has an owner. */
    return (int)is_closed &
           (int)tbd_window_adopt_large_buffer(window, (void *)(uintptr_t)window->entries) &
           (int)adopt_operands(window, area) &
           (int)tbd_window_adopt(window, (void *)(uintptr_t)window->log);
}

enum tbd_status tbd_gather_finish(struct tbd_gather *g, struct tbd_window **out,
                                  struct tbd_error *why)
{
    struct tbd_window *window = g->window;
    const char *damage;

    *out = NULL;
    if (!g->is_over)
        return tbd_process_error(why, TBD_STUBDIED, "the window's stream has no end");
    if (!g->damage && (g->pending || g->in != g->have))
        wrong(g, "operands without an entry");
    damage = g->damage;
    g->window = NULL;
    if (!tbd_replay_end_finish(&g->end, window, g->blocks, (uint32_t)g->log_count) ||
        !finish_events(g, window)) {
        tbd_window_free(window);
        drop(g);
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    }
    window->complete &= !damage;
    *out = window;
    return damage
               ? tbd_process_error(why, TBD_DIVERGED, "entry %zu: %s", window->entry_count, damage)
               : TBD_OK;
}
