// SPDX-License-Identifier: MIT
/* skim.c - see skim.h
 *
 * A chunk is looked at in place.  If an entry's operands come with the next chunk, what is left of the first one's is copied, and the next one's
 * after it.
 *
 * Invariants
 * SKIM-1  Entries are read once.  Messages are copied before they are checked: a faulty replay process cannot change afterwards what the
 *     window's log, and the listener, rely on.  (not checked: nothing else reads the chunk)
 * SKIM-2  Every entry is a block of the table, or a message with a complete payload; records and messages fill the operands exactly.
 * SKIM-3  The window ends before the first error (`damage`); the rest of its stream is skipped. (not checked: as in gather.c) */
#include "replay/skim.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/copy_once.h"
#include "format/window/window_make.h"
#include "replay/full.h"
#include "replay/record_sizes.h"
#include "replay/replay_end.h"
#include "replay/run_plan.h"

#include <stdlib.h>
#include <string.h>

/* Most operand bytes of an entry that is continued in the next chunk. */
#define PENDING_MAX (TBD_MESSAGE_MAX_BYTES + sizeof(struct tbd_message))
#define SHOWN_MOST  2048u /* entries that are shown to the listener at once */
#define SPACE_BYTES ((size_t)64 << 10)

struct tbd_skim {
    struct tbd_record_sizes sizes;
    const struct tbd_skim_listener *listener; /* borrowed; NULL: none */
    struct tbd_window *window;                /* owned until it is finished */
    uint64_t blocks;
    uint32_t pending; /* an entry whose operands come with the next chunk; 0: none */
    bool is_over;
    bool is_counted;    /* blocks come as numbers (TBD_MSG_PASSED) */
    const char *damage; /* NULL: nothing is wrong */

    const uint8_t *operands; /* of the chunk, or `rest` */
    size_t in, have;
    uint8_t *rest; /* malloc; owned */
    size_t rest_bytes, rest_capacity;
    uint8_t *scratch; /* TBD_MESSAGE_MAX_BYTES, malloc; owned */

    struct tbd_log_entry *log; /* malloc; owned until finished */
    uint8_t *space;            /* of the window, for its messages */
    size_t space_left;
    size_t log_count, log_capacity;
    struct tbd_message_limits limits;
    struct tbd_replay_end end;
    uint32_t shown[SHOWN_MOST]; /* entries that the listener has not seen */
    size_t shown_count;
    size_t shown_in; /* operands before those of the first of them */
};

static void drop(struct tbd_skim *s)
{
    tbd_window_free(s->window);
    free(s->log);
    s->window = NULL;
    s->log = NULL;
    s->log_count = s->log_capacity = 0;
}

void tbd_skim_free(struct tbd_skim *s)
{
    if (!s)
        return;
    drop(s);
    tbd_sizes_free(&s->sizes);
    tbd_replay_end_free(&s->end);
    free(s->rest);
    free(s->scratch);
    free(s);
}

void tbd_skim_forget(struct tbd_skim *s)
{
    drop(s);
    tbd_sizes_forget(&s->sizes);
}

struct tbd_skim *tbd_skim_new(void)
{
    struct tbd_skim *s = calloc(1, sizeof(*s));

    if (s)
        s->scratch = malloc(TBD_MESSAGE_MAX_BYTES);
    if (s && s->scratch)
        return s;
    free(s);
    return NULL;
}

enum tbd_status tbd_skim_begin(struct tbd_skim *s, const struct tbd_skim_start *start)
{
    drop(s);
    tbd_sizes_begin(&s->sizes, start->consumer, start->omits_records);
    s->is_counted = start->is_counted;
    tbd_message_limits_begin(&s->limits, &start->most);
    s->end.page_most = start->most.pages;
    tbd_replay_end_clear(&s->end);
    s->listener = start->listener;
    s->blocks = s->shown_count = s->rest_bytes = 0;
    s->pending = 0;
    s->is_over = false;
    s->damage = NULL;
    s->space_left = 0;
    s->window = tbd_window_new(tbd_consumer_table(start->consumer));
    if (!s->window)
        return TBD_NOMEM;
    s->window->first_time = start->first_time;
    s->window->regs.thread = start->thread;
    return TBD_OK;
}

static enum tbd_status wrong(struct tbd_skim *s, const char *what)
{
    s->damage = what;
    return TBD_OK;
}

/* ---- the listener ---- */

static bool show(struct tbd_skim *s)
{
    const struct tbd_skim_listener *listener = s->listener;
    size_t count = s->shown_count;

    s->shown_count = 0;
    if (!count)
        return true;
    return listener->records
               ? listener->records(listener->context, s->shown, count, s->operands + s->shown_in)
               : listener->entries(listener->context, s->shown, count);
}

/* Operands are shown while they lie together, and before the chunk is given back. */
static bool show_records(struct tbd_skim *s)
{
    return !s->listener || !s->listener->records || show(s);
}

static bool show_message(struct tbd_skim *s, uint32_t kind, const uint8_t *payload, uint32_t bytes)
{
    return !s->listener ||
           (show(s) && s->listener->message(s->listener->context, kind, payload, bytes));
}

/* ---- blocks ---- */

/* Takes block entries that nobody wants to see, a stretch at a time; stops before a stretch of which one is not a usual block. */
static size_t take_stretches(struct tbd_skim *s, const volatile uint32_t *from, size_t count)
{
    const uint32_t *bytes_of = s->sizes.bytes;
    const uint32_t mask = s->sizes.mask;
    size_t in = s->in, i;

    for (i = 0; i + TBD_SIZES_STRETCH <= count; i += TBD_SIZES_STRETCH) {
        uint32_t entries = 0, bytes = 0;

        for (size_t k = i; k < i + TBD_SIZES_STRETCH; k += TBD_SIZES_AT_ONCE) {
            uint32_t a = from[k], b = from[k + 1], c = from[k + 2], d = from[k + 3];

            entries |= a | b | c | d;
            bytes +=
                bytes_of[a & mask] + bytes_of[b & mask] + bytes_of[c & mask] + bytes_of[d & mask];
        }
        if (entries > mask || bytes >= TBD_SIZES_NO_BYTES || bytes > s->have - in)
            break;
        in += bytes;
    }
    s->in = in;
    return i;
}

/* The same, four at a time; stops before four of which one is not a usual block. */
static size_t take_fours(struct tbd_skim *s, const volatile uint32_t *from, size_t count)
{
    const uint64_t *words = s->sizes.words;
    const uint32_t mask = s->sizes.mask;
    const size_t have = s->have;
    uint32_t *shown = s->listener ? s->shown + s->shown_count : NULL;
    size_t in = s->in, i;

    for (i = 0; i + TBD_SIZES_AT_ONCE <= count; i += TBD_SIZES_AT_ONCE) {
        uint32_t a = from[i], b = from[i + 1], c = from[i + 2], d = from[i + 3];
        uint64_t k, l, m, n, bytes;

        if ((a | b | c | d) > mask)
            break;
        k = words[a];
        l = words[b];
        m = words[c];
        n = words[d];
        bytes = tbd_sizes_operand_bytes(k + l + m + n);
        if (tbd_sizes_is_none(k | l | m | n) || bytes > have - in)
            break;
        in += bytes;
        if (!shown)
            continue;
        shown[i] = (uint32_t)k;
        shown[i + 1] = (uint32_t)l;
        shown[i + 2] = (uint32_t)m;
        shown[i + 3] = (uint32_t)n;
    }
    s->in = in;
    s->shown_count += s->listener ? i : 0;
    return i;
}

/* False: it is a message, or impossible, or its operands have not arrived yet. */
static bool take_block(struct tbd_skim *s, uint32_t entry)
{
    uint64_t word = tbd_sizes_of(&s->sizes, entry);

    if (tbd_sizes_is_none(word) || tbd_sizes_operand_bytes(word) > s->have - s->in)
        return false;
    if (!s->shown_count)
        s->shown_in = s->in;
    s->in += tbd_sizes_operand_bytes(word);
    if (s->listener)
        s->shown[s->shown_count++] = (uint32_t)word;
    return true;
}

/* Takes block entries up to the next message, the first impossible one, or as many as can be shown. */
static size_t take_some(struct tbd_skim *s, const volatile uint32_t *from, size_t count)
{
    size_t most =
        s->listener && count > SHOWN_MOST - s->shown_count ? SHOWN_MOST - s->shown_count : count;
    size_t i = s->listener ? 0 : take_stretches(s, from, most);

    if (!s->shown_count)
        s->shown_in = s->in;
    i += take_fours(s, from + i, most - i);
    while (i < most && take_block(s, from[i]))
        i++;
    s->blocks += i;
    if (i)
        tbd_replay_end_go_on(&s->end);
    return i;
}

/* ---- messages ---- */

/* Messages lie one after the other: there may be a million. */
static uint8_t *take_space(struct tbd_skim *s, size_t bytes)
{
    uint8_t *taken = s->space;

    if (bytes > SPACE_BYTES / 4)
        return tbd_window_memory(s->window, bytes);
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > s->space_left) {
        taken = tbd_window_memory(s->window, SPACE_BYTES);
        s->space_left = taken ? SPACE_BYTES : 0;
    }
    if (!taken)
        return NULL;
    s->space = taken + bytes;
    s->space_left -= bytes;
    return taken;
}

static enum tbd_status put_log(struct tbd_skim *s, uint32_t kind, const uint8_t *payload,
                               uint32_t bytes)
{
    struct tbd_message head = { kind, bytes };
    uint8_t *copy = take_space(s, sizeof(head) + bytes);

    if (!copy || !tbd_array_grow(&s->log, s->log_count, &s->log_capacity, sizeof(*s->log)))
        return TBD_NOMEM;
    memcpy(copy, &head, sizeof(head));
    memcpy(copy + sizeof(head), payload, bytes);
    s->log[s->log_count++] =
        (struct tbd_log_entry){ .time = s->blocks, .message = (const void *)copy };
    return TBD_OK;
}

/* The payload is our own copy. */
static enum tbd_status take_event(struct tbd_skim *s, uint32_t kind, const uint8_t *payload,
                                  uint32_t bytes)
{
    const char *what = tbd_message_limits_take(&s->limits, kind, payload, bytes);

    if (what)
        return wrong(s, what);
    if (kind != TBD_MSG_READ && kind != TBD_MSG_UNLOGGED && put_log(s, kind, payload, bytes))
        return TBD_NOMEM;
    if (kind != TBD_MSG_READ)
        tbd_replay_end_go_on(&s->end);
    return show_message(s, kind, payload, bytes) ? TBD_OK : TBD_NOMEM;
}

static const char *take_passed(struct tbd_skim *s, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_msg_passed passed;

    if (!s->is_counted || bytes != sizeof(passed))
        return "a number of blocks where there can be none";
    tbd_copy_once(&passed, payload, sizeof(passed));
    if (tbd_sizes_is_none(
            tbd_sizes_of(&s->sizes, passed.last))) /* of others nothing is left: TBD_PLAN_ASIDE */
        return "a block that play did not have";
    s->blocks += passed.blocks;
    tbd_replay_end_go_on(&s->end);
    return NULL;
}

/* Takes a message that is no event.  Play has already sent the others of these. */
static enum tbd_status take_state(struct tbd_skim *s, uint32_t kind, const uint8_t *payload,
                                  uint32_t bytes)
{
    const char *what = NULL;
    enum tbd_status status = TBD_OK;

    if (!show_records(s))
        return TBD_NOMEM;
    if (kind == TBD_MSG_PASSED)
        what = take_passed(s, payload, bytes);
    else
        status = tbd_replay_end_message(&s->end, s->window, kind, payload, bytes, &what);
    return what ? wrong(s, what) : status;
}

/* TBD_NOTFOUND: it has not arrived yet. */
static enum tbd_status take_message(struct tbd_skim *s, uint32_t kind)
{
    size_t left = s->have - s->in;
    const uint8_t *payload;
    struct tbd_message head;

    if (left < sizeof(head))
        return TBD_NOTFOUND;
    tbd_copy_once(&head, s->operands + s->in, sizeof(head));
    if (head.kind != kind)
        return wrong(s, "a message of another kind");
    if (head.bytes > left - sizeof(head))
        return TBD_NOTFOUND;
    payload = s->operands + s->in + sizeof(head);
    s->in += sizeof(head) + head.bytes;
    if (!tbd_message_is_event(kind))
        return take_state(s, kind, payload, head.bytes);
    if (head.bytes > TBD_MESSAGE_MAX_BYTES)
        return wrong(s, "a message that is too long");
    memcpy(s->scratch, payload, head.bytes);
    return take_event(s, kind, s->scratch, head.bytes);
}

/* ---- chunks ---- */

/* Takes one entry that is a message, or a block that take_some() has left. */
static enum tbd_status take_one(struct tbd_skim *s, uint32_t entry)
{
    enum tbd_status status = TBD_NOTFOUND;

    if (s->shown_count == SHOWN_MOST && !show(s))
        return TBD_NOMEM;
    if (take_block(s, entry)) {
        s->blocks++;
        tbd_replay_end_go_on(&s->end);
        return TBD_OK;
    }
    if (entry & TBD_ENTRY_MESSAGE)
        status = take_message(s, entry & ~TBD_ENTRY_MESSAGE);
    else if (tbd_sizes_is_none(tbd_sizes_of(&s->sizes, entry)))
        return wrong(s, tbd_sizes_why_not(&s->sizes, entry));
    if (status != TBD_NOTFOUND)
        return status;
    s->pending = entry;
    return TBD_OK;
}

/* Takes all entries; the operands of the last one may come with the next chunk. */
static enum tbd_status take_entries(struct tbd_skim *s, const volatile uint32_t *from, size_t count)
{
    enum tbd_status status = TBD_OK;
    size_t i = 0;

    while (i < count && !status && !s->damage && !s->pending) {
        i += take_some(s, from + i, count - i);
        if (s->shown_count == SHOWN_MOST)
            status = show(s) ? TBD_OK : TBD_NOMEM;
        else if (i < count)
            status = take_one(s, from[i++]);
    }
    if (s->pending && i < count)
        wrong(s, "a record outside the operands");
    return status;
}

static bool keep_rest(struct tbd_skim *s, const uint8_t *bytes, size_t count)
{
    if (!tbd_array_reserve(&s->rest, s->rest_bytes + count, &s->rest_capacity, 1))
        return false;
    memmove(s->rest + s->rest_bytes, bytes, count);
    s->rest_bytes += count;
    return true;
}

static enum tbd_status look(struct tbd_skim *s, const struct tbd_chunk_view *chunk)
{
    enum tbd_status status = TBD_OK;
    uint32_t pending = s->pending;

    s->in = 0;
    s->pending = 0;
    if (pending)
        status = take_one(s, pending);
    if (!status && s->pending)
        return wrong(s, "a record outside the operands");
    if (!status)
        status = take_entries(s, chunk->entries, chunk->entry_count);
    TBD_INVARIANT("SKIM-2", s->in <= s->have);
    if (!status && !s->damage && s->have - s->in > (s->pending ? PENDING_MAX : 0))
        return wrong(s, "operands without an entry");
    return status;
}

static enum tbd_status take_chunk(struct tbd_skim *s, const struct tbd_chunk_view *chunk)
{
    size_t left;
    enum tbd_status status;

    if (s->damage)
        return TBD_OK;
    s->operands = chunk->operands;
    s->have = chunk->operand_bytes;
    if (s->rest_bytes) {
        if (!keep_rest(s, chunk->operands, chunk->operand_bytes))
            return TBD_NOMEM;
        s->operands = s->rest;
        s->have = s->rest_bytes;
    }
    status = look(s, chunk);
    if (!status && !s->damage && !show_records(s))
        status = TBD_NOMEM;
    left = s->have - s->in;
    s->rest_bytes = 0;
    if (!status && !s->damage && left && !keep_rest(s, s->operands + s->in, left))
        return TBD_NOMEM;
    return status;
}

enum tbd_status tbd_skim_take(struct tbd_skim *s, struct tbd_error *why)
{
    while (!s->is_over) {
        struct tbd_chunk_view chunk;
        enum tbd_status status = tbd_consumer_peek(s->sizes.consumer, &chunk, why);

        if (!status && !tbd_sizes_take_definitions(&s->sizes))
            status = TBD_NOMEM;
        if (!status)
            status = take_chunk(s, &chunk);
        if (status)
            return status == TBD_NOMEM ? tbd_process_error(why, status, "no memory") : status;
        s->is_over = chunk.ends_window;
        tbd_consumer_pass(s->sizes.consumer);
    }
    return TBD_OK;
}

/* ---- the window ---- */

static bool make_window(struct tbd_skim *s, struct tbd_window *window)
{
    struct tbd_log_entry *log = s->log;
    size_t count = s->log_count;

    s->log = NULL;
    s->log_count = s->log_capacity = 0;
    if (log && !tbd_window_adopt(window, log))
        return false;
    window->log = log;
    window->log_count = count;
    return tbd_replay_end_finish(&s->end, window, s->blocks, (uint32_t)count);
}

enum tbd_status tbd_skim_finish(struct tbd_skim *s, struct tbd_window **out, struct tbd_error *why)
{
    struct tbd_window *window = s->window;

    *out = NULL;
    if (!s->is_over)
        return tbd_process_error(why, TBD_STUBDIED, "the window's stream has no end");
    if (!s->damage && (s->pending || s->rest_bytes))
        wrong(s, "operands without an entry");
    window->blocks = s->blocks;
    if (!s->damage && s->is_counted && s->sizes.lacks_blocks)
        return tbd_process_error(why, TBD_NOTFOUND, "a block that play did not have");
    if (!s->damage && ((s->listener && !show(s)) || !make_window(s, window)))
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    s->window = NULL;
    *out = window;
    return s->damage ? tbd_process_error(why, TBD_DIVERGED, "%s", s->damage) : TBD_OK;
}

/* ---- as a consumer of a replay (run_plan.h) ---- */

static enum tbd_status begin(void *context, struct tbd_error *why)
{
    struct tbd_full *full = context;
    struct tbd_worker *worker = full->worker;
    enum tbd_status status = tbd_full_begin(full, why);
    struct tbd_skim_start start = { .omits_records =
                                        full->hooks & (TBD_PLAN_ENTRIES | TBD_PLAN_COUNTS),
                                    .is_counted = full->hooks & TBD_PLAN_COUNTS,
                                    .listener = full->listener,
                                    .most = tbd_full_most(worker->window, full->hooks),
                                    .first_time = worker->window->first_time,
                                    .thread = worker->window->regs.thread };

    if (status)
        return status;
    start.consumer = worker->consumer;
    if (!worker->skim)
        worker->skim = tbd_skim_new();
    if (!worker->skim || tbd_skim_begin(worker->skim, &start))
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    return TBD_OK;
}

static enum tbd_status take(void *context, struct tbd_error *why)
{
    struct tbd_full *full = context;
    struct tbd_process *process = &full->worker->process;

    process->seen_published = __atomic_load_n(process->published, __ATOMIC_ACQUIRE);
    return tbd_full_judge(tbd_skim_take(full->worker->skim, why), why);
}

static enum tbd_status finish(struct tbd_worker *worker, struct tbd_window **out,
                              struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_error damage = { 0 };
    enum tbd_status status = tbd_skim_finish(worker->skim, out, &damage);

    if (status && why)
        *why = damage;
    if (status == TBD_DIVERGED && divergence)
        tbd_full_fill_damage(worker, *out, damage.detail, divergence);
    if (status) {
        tbd_window_free(*out);
        *out = NULL;
        return status;
    }
    (*out)->index = worker->window->index;
    (*out)->number = worker->window->number;
    return TBD_OK;
}

enum tbd_status tbd_skim_window(struct tbd_worker *worker, uint32_t hooks,
                                const struct tbd_skim_listener *listener, struct tbd_window **out,
                                struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_full full = {
        .worker = worker, .hooks = hooks, .skims = true, .listener = listener
    };
    struct tbd_run_consumer consumer = { .begin = begin, .take = take, .context = &full };
    enum tbd_status status = tbd_run_plan(worker, hooks, NULL, 0, &consumer, divergence, why);

    *out = NULL;
    if (!status)
        status = finish(worker, out, divergence, why);
    if (worker->skim)
        drop(worker->skim);
    return status;
}
