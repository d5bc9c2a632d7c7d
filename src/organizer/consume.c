// SPDX-License-Identifier: MIT
/* consume.c - the consumer's side of a stream
 *
 *   engine:    fill chunk -> store published (release)  ............. pairs with (A)
 *   consumer:  load published (acquire) (A) -> copy -> zero entries -> store released (release) (B)
 *   engine:    load released (acquire), pairs with (B), before it fills a slot again
 *
 * Where the stream lies and how large it is: consume_map.c (CONSUME_MAP-1).  Its blocks:
 * consume_defs.c (CONSUME_DEFS-1, CONSUME_DEFS-2).
 *
 * Invariants
 * CONSUME-1  Everything is copied before it is checked, so that the producer cannot change it
 *     between check and use. (not checked: streams that are written over do, test_organizer) */
#include "organizer/consume_private.h"

#include "base/copy_once.h"
#include "format/coding/coding.h"
#include "format/files/file.h"
#include "format/files/large_buffers.h"
#include "organizer/warm.h"

#include <emmintrin.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES      64u
#define RAW_MAX_ENTRIES ((size_t)1 << 31)
/* In play, a window's buffers have at least this capacity.  They take memory only as far as a
 * window fills them, and as all have the same size, any window can reuse another's. */
#define PLAY_OPERANDS     ((size_t)64 << 20)
#define PLAY_ENTRIES_MOST ((size_t)4 << 20)
/* A program that has filled this many chunks will fill more. */
#define SHORT_CHUNKS 4u

void tbd_raw_window_free(struct tbd_raw_window *raw)
{
    tbd_large_buffer_give(raw->entries);
    tbd_large_buffer_give(raw->operands);
    tbd_packed_pages_free(&raw->packed);
    *raw = (struct tbd_raw_window){ 0 };
}

/* ---- start ---- */

/* Replay reserves what it needs. */
static void begin_hints(struct tbd_consumer *c)
{
    uint64_t blocks = c->known ? 0 : c->head->window_blocks;

    c->entry_least = blocks < PLAY_ENTRIES_MOST ? (size_t)blocks : PLAY_ENTRIES_MOST;
    c->operand_least = c->known ? 0 : PLAY_OPERANDS;
    c->entry_hint = c->entry_least;
    c->operand_hint = c->operand_least;
}

enum tbd_status tbd_consumer_new(int fd, struct tbd_block_table *table,
                                 struct tbd_block_table *known, struct tbd_consumer **out,
                                 struct tbd_error *why)
{
    struct tbd_consumer *c = calloc(1, sizeof(*c));
    enum tbd_status status;

    *out = NULL;
    if (!c)
        return TBD_NOMEM;
    tbd_consumer_expect(c, UINT64_MAX, UINT64_MAX);
    c->table = tbd_block_table_retain(table);
    c->known = known ? tbd_block_table_retain(known) : NULL;
    status = tbd_consumer_map(c, fd, why);
    if (!status)
        status = tbd_consumer_reserve_plans(c);
    if (!status)
        begin_hints(c);
    if (status) {
        tbd_consumer_free(c);
        return status;
    }
    *out = c;
    return TBD_OK;
}

void tbd_consumer_free(struct tbd_consumer *c)
{
    if (!c)
        return;
    tbd_warmer_free(c->warmer);
    tbd_consumer_free_plans(c);
    tbd_consumer_unmap(c);
    tbd_raw_window_free(&c->raw);
    tbd_block_table_release(c->table);
    tbd_block_table_release(c->known);
    free(c);
}

struct tbd_stream_head *tbd_consumer_head(const struct tbd_consumer *c)
{
    return c->head;
}

struct tbd_stream_areas tbd_consumer_areas(const struct tbd_consumer *c)
{
    return c->areas;
}

void tbd_consumer_expect(struct tbd_consumer *c, uint64_t entries, uint64_t operand_bytes)
{
    c->entries_left = entries;
    c->operands_left = operand_bytes;
}

bool tbd_consumer_is_half_full(const struct tbd_consumer *c)
{
    return c->plan_count > c->def_capacity / 2 || c->heap_used > c->heap_capacity / 2;
}

void tbd_consumer_use(struct tbd_consumer *c, struct tbd_block_table *table)
{
    tbd_block_table_retain(table);
    tbd_block_table_release(c->table);
    c->table = table;
}

const struct tbd_block_plan *tbd_consumer_plans(const struct tbd_consumer *c)
{
    return c->plans;
}

uint32_t tbd_consumer_plan_count(const struct tbd_consumer *c)
{
    return c->plan_count;
}

struct tbd_block_table *tbd_consumer_table(const struct tbd_consumer *c)
{
    return c->table;
}

/* ---- chunks ---- */

static uint8_t *slot_start(const struct tbd_consumer *c, uint32_t slot)
{
    return c->bytes + c->chunks_offset + (uint64_t)slot * TBD_CHUNK_STRIDE;
}

/* The entries where the copied descriptor says; after check_chunk(). */
static uint8_t *entries_of(const struct tbd_consumer *c, const struct tbd_chunk *chunk)
{
    return slot_start(c, chunk->slot) + chunk->entries_offset;
}

static const uint8_t *operands_of(const struct tbd_consumer *c, const struct tbd_chunk *chunk)
{
    if (c->area)
        return c->area + c->area_used;
    return slot_start(c, chunk->slot) + TBD_ENTRIES_BYTES + GUARD_BYTES;
}

/* The capacity for a window that needs `need` already: as much as the windows before, and a bit
 * (unused space costs nothing); else half as much again. */
static size_t guess(size_t need, size_t hint)
{
    size_t before = hint + hint / 8;

    return need <= before ? before : need + need / 2;
}

static void say_move(const struct tbd_consumer *c)
{
    if (c->before_move)
        c->before_move(c->move_context);
}

/* Reserves space for this many more entries and operand bytes. */
static bool raw_reserve(struct tbd_consumer *c, size_t entries, size_t operands)
{
    struct tbd_raw_window *raw = &c->raw;
    size_t entry_count = raw->entry_count + entries, operand_bytes = raw->operand_bytes + operands;

    if (!raw->entries || entry_count > raw->entry_capacity) {
        size_t wanted = guess(entry_count, c->entry_hint);
        void *grown;

        say_move(c);
        grown = wanted > RAW_MAX_ENTRIES
                    ? NULL
                    : tbd_large_buffer_grow(raw->entries, raw->entry_count * sizeof(*raw->entries),
                                            wanted * sizeof(*raw->entries));
        if (!grown)
            return false;
        raw->entries = grown;
        raw->entry_capacity = tbd_large_buffer_bytes(grown) / sizeof(*raw->entries);
    }
    if (!raw->operands || operand_bytes > raw->operand_capacity) {
        size_t wanted = guess(operand_bytes, c->operand_hint);
        void *grown;

        say_move(c);
        grown = tbd_large_buffer_grow(raw->operands, raw->operand_bytes, wanted + TBD_ROW_SLACK);
        if (!grown)
            return false;
        raw->operands = grown;
        raw->operand_capacity = tbd_large_buffer_bytes(grown) - TBD_ROW_SLACK;
    }
    return true;
}

static size_t operand_space(const struct tbd_consumer *c)
{
    return c->area ? c->areas.bytes - c->area_used : TBD_OPERANDS_BYTES;
}

static enum tbd_status check_chunk(const struct tbd_consumer *c, uint32_t number,
                                   const struct tbd_chunk *chunk, struct tbd_error *why)
{
    if (chunk->slot >= c->chunk_count || chunk->entries_offset % 4 ||
        chunk->entries_offset > TBD_ENTRIES_BYTES ||
        chunk->entry_count > (TBD_ENTRIES_BYTES - chunk->entries_offset) / 4 ||
        chunk->operand_bytes > operand_space(c))
        return tbd_error_set(why, TBD_CORRUPT, "stream",
                             256 + (uint64_t)(number % c->chunk_count) * sizeof(*chunk),
                             "impossible chunk");
    if (chunk->entry_count >= c->entries_left || chunk->operand_bytes > c->operands_left)
        return tbd_error_set(why, TBD_CORRUPT, "stream", 0, "more than the window has");
    return TBD_OK;
}

/* Non-temporal stores: the lines are neither read into the caches first nor left there. */
static void stream_lines(uint8_t *to, const uint8_t *from, size_t lines)
{
    for (size_t i = 0; i < lines * LINE_BYTES; i += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
    _mm_sfence(); /* before the copy is published */
}

/* In play, another thread reads the copy much later, when it would have left the caches unread:
 * workers and the program use them better.  This makes recording perl and sqlite3 a tenth faster.
 * In replay the same thread reads the copy next. */
static void copy_out(const struct tbd_consumer *c, void *out, const uint8_t *from, size_t bytes)
{
    uint8_t *to = out;
    size_t head = -(uintptr_t)to % LINE_BYTES;
    size_t lines = bytes < 2 * LINE_BYTES || c->known ? 0 : (bytes - head) / LINE_BYTES;
    size_t tail = head + lines * LINE_BYTES;

    if (!bytes) /* there may be no buffer yet */
        return;
    if (!lines)
        tail = head = 0;
    memcpy(to, from, head);
    stream_lines(to + head, from + head, lines);
    memcpy(to + tail, from + tail, bytes - tail);
}

void tbd_consumer_append(struct tbd_consumer *c, const uint8_t *from, size_t bytes)
{
    copy_out(c, c->raw.operands + c->raw.operand_bytes, from, bytes);
    c->raw.operand_bytes += bytes;
}

static enum tbd_status copy_chunk(struct tbd_consumer *c, uint32_t number,
                                  const struct tbd_chunk *chunk, struct tbd_error *why)
{
    struct tbd_raw_window *raw = &c->raw;
    enum tbd_status status = check_chunk(c, number, chunk, why);

    if (status)
        return status;
    if (!raw_reserve(c, chunk->entry_count, chunk->operand_bytes))
        return TBD_NOMEM;
    if (!c->raw_started)
        raw->first_time = chunk->first_time;
    c->raw_started = true;
    copy_out(c, raw->entries + raw->entry_count, entries_of(c, chunk),
             (size_t)chunk->entry_count * 4);
    raw->entry_count += chunk->entry_count;
    if (!c->packer)
        tbd_consumer_append(c, operands_of(c, chunk), chunk->operand_bytes);
    else if (!tbd_consumer_take_messages(c, operands_of(c, chunk), chunk->operand_bytes))
        return TBD_NOMEM;
    if (chunk->operand_bytes > c->operands_most)
        c->operands_most = chunk->operand_bytes;
    if (chunk->slot > c->highest_slot)
        c->highest_slot = chunk->slot;
    return TBD_OK;
}

static void futex_wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* 0 means "nothing yet" to tbd_consumer_salvage(), if the producer dies with this chunk open. */
static void zero_entries(const struct tbd_consumer *c, const struct tbd_chunk *chunk)
{
    memset(entries_of(c, chunk), 0, (size_t)chunk->entry_count * 4);
}

static void give_back(struct tbd_consumer *c, const struct tbd_chunk *chunk)
{
    c->entries_left -= chunk->entry_count + 1ull;
    c->operands_left -= chunk->operand_bytes;
    if (c->area)
        c->area_used = chunk->flags & TBD_CHUNK_WRAPS ? 0 : c->area_used + chunk->operand_bytes;
    c->taken++;
    __atomic_store_n(&c->head->released, c->taken, __ATOMIC_RELEASE); /* (B) */
    futex_wake(&c->head->released);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The largest of the last windows. */
static size_t hint_after(size_t hint, size_t count, size_t least)
{
    return larger(larger(count, hint - hint / 16), least);
}

struct tbd_raw_window tbd_consumer_collected(const struct tbd_consumer *c)
{
    struct tbd_raw_window raw = c->raw;

    raw.takes_frames = c->takes_frames;
    raw.plan_count = c->plan_count;
    raw.highest_id = tbd_block_table_count(c->table);
    return raw;
}

void tbd_consumer_watch(struct tbd_consumer *c, void (*before_move)(void *context), void *context)
{
    c->before_move = before_move;
    c->move_context = context;
}

static void give_out(struct tbd_consumer *c, struct tbd_raw_window *out)
{
    *out = c->raw;
    c->is_long = !c->known;
    out->takes_frames = c->takes_frames;
    out->plan_count = c->plan_count;
    out->highest_id = tbd_block_table_count(c->table);
    c->entry_hint = hint_after(c->entry_hint, c->raw.entry_count, c->entry_least);
    c->operand_hint = hint_after(c->operand_hint, c->raw.operand_bytes, c->operand_least);
    c->raw = (struct tbd_raw_window){ 0 };
    c->raw_started = false;
}

void tbd_consumer_drop(struct tbd_consumer *c)
{
    tbd_raw_window_free(&c->raw);
    c->raw_started = false;
}

/* The next chunk, if there is one; the definitions of all its blocks have been imported. */
static enum tbd_status next_chunk(struct tbd_consumer *c, struct tbd_chunk *out,
                                  struct tbd_error *why)
{
    uint32_t published = __atomic_load_n(&c->head->published, __ATOMIC_ACQUIRE); /* (A) */

    if (published == c->taken)
        return TBD_NOTFOUND;
    if (published - c->taken > c->chunk_count)
        return tbd_error_set(why, TBD_CORRUPT, "stream", 128, "more chunks than there are");
    tbd_copy_once(out, &c->head->chunks[c->taken % c->chunk_count], sizeof(*out));
    return tbd_consumer_import(c, why);
}

enum tbd_status tbd_consumer_peek(struct tbd_consumer *c, struct tbd_chunk_view *out,
                                  struct tbd_error *why)
{
    enum tbd_status status = next_chunk(c, &c->seen, why);

    if (!status)
        status = check_chunk(c, c->taken, &c->seen, why);
    if (!status)
        *out = (struct tbd_chunk_view){
            .entries = (const void *)entries_of(c, &c->seen),
            .entry_count = c->seen.entry_count,
            .operands = operands_of(c, &c->seen),
            .operand_bytes = c->seen.operand_bytes,
            .ends_window = c->seen.flags & TBD_CHUNK_ENDS_WINDOW,
            .wraps = c->area && c->seen.flags & TBD_CHUNK_WRAPS,
        };
    return status;
}

void tbd_consumer_pass(struct tbd_consumer *c)
{
    give_back(c, &c->seen);
}

void tbd_consumer_area(struct tbd_consumer *c, uint32_t index)
{
    c->area = index < c->areas.count ? c->bytes + c->areas.offset + index * c->areas.stride : NULL;
    c->area_used = 0;
}

/* Slots are used for the first time in order, so those after the one being filled are new. */
static void warm_others(struct tbd_consumer *c)
{
    uint32_t number = __atomic_load_n(&c->head->published, __ATOMIC_RELAXED);
    uint32_t open =
        __atomic_load_n(&c->head->chunks[number % c->chunk_count].slot, __ATOMIC_RELAXED);
    uint32_t next = (open > c->highest_slot ? open : c->highest_slot) + 2;

    if (next < c->chunk_count)
        c->warmer = tbd_warmer_start(slot_start(c, next), slot_start(c, c->chunk_count));
}

enum tbd_status tbd_consumer_take(struct tbd_consumer *c, struct tbd_raw_window *out,
                                  struct tbd_error *why)
{
    for (;;) {
        struct tbd_chunk chunk;
        enum tbd_status status = next_chunk(c, &chunk, why);

        if (!status)
            status = copy_chunk(c, c->taken, &chunk, why);
        if (status)
            return status;
        zero_entries(c, &chunk);
        give_back(c, &chunk);
        if (c->taken == SHORT_CHUNKS && !c->known && !c->warmer)
            warm_others(c);
        if (chunk.flags & TBD_CHUNK_ENDS_WINDOW) {
            if (c->packer)
                tbd_page_packer_next(c->packer);
            give_out(c, out);
            return TBD_OK;
        }
    }
}

/* Makes small pages present where the warmer got no large ones.  (Kernels before 5.14 cannot; only
 * time is lost.) */
static void warm_slot(struct tbd_consumer *c)
{
    uint8_t *entries = slot_start(c, c->warmed++);

    (void)madvise(entries, TBD_ENTRIES_BYTES, MADV_POPULATE_WRITE);
    (void)madvise(entries + TBD_ENTRIES_BYTES + GUARD_BYTES, c->operands_most, MADV_POPULATE_WRITE);
}

void tbd_consumer_wait(struct tbd_consumer *c, unsigned timeout_ms)
{
    struct timespec timeout = { timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000 };

    if (c->is_long && c->warmed < c->chunk_count && (!c->warmer || tbd_warmer_is_done(c->warmer)))
        warm_slot(c);
    else
        syscall(SYS_futex, &c->head->published, FUTEX_WAIT, c->taken, &timeout, NULL, 0);
}

/* ---- the end ---- */

/* Entries that are not 0. */
static uint32_t count_entries(const uint8_t *entries, uint32_t limit)
{
    uint32_t count = 0, entry;

    for (; count < limit; count++) {
        memcpy(&entry, entries + (size_t)count * 4, sizeof(entry));
        if (!entry)
            break;
    }
    return count;
}

/* Bytes of the chunk's operands that these messages take: there is nothing else in it. */
static uint32_t message_bytes(const struct tbd_consumer *c, const struct tbd_chunk *chunk)
{
    const uint8_t *operands = operands_of(c, chunk);
    uint32_t bytes = 0;

    for (uint32_t i = 0; i < chunk->entry_count; i++) {
        struct tbd_message head;

        if (TBD_OPERANDS_BYTES - bytes < sizeof(head))
            break;
        tbd_copy_once(&head, operands + bytes, sizeof(head));
        if (head.bytes > TBD_OPERANDS_BYTES - bytes - sizeof(head))
            break;
        bytes += (uint32_t)sizeof(head) + head.bytes;
    }
    return bytes;
}

/* Takes the open chunk as if it had been published: its entries up to the first 0, and operands
 * without an end (the entries tell). */
static enum tbd_status take_open_chunk(struct tbd_consumer *c, struct tbd_error *why)
{
    struct tbd_chunk chunk;

    tbd_copy_once(&chunk, &c->head->chunks[c->taken % c->chunk_count], sizeof(chunk));
    if (chunk.entry_count != TBD_COUNT_OPEN)
        return TBD_OK;
    chunk.entry_count = 0;
    chunk.operand_bytes = TBD_OPERANDS_BYTES;
    if (check_chunk(c, c->taken, &chunk, NULL))
        return TBD_OK;
    chunk.entry_count =
        count_entries(entries_of(c, &chunk), (TBD_ENTRIES_BYTES - chunk.entries_offset) / 4);
    if (!chunk.entry_count)
        return TBD_OK;
    if (c->head->flags & TBD_STREAM_ONLY_COUNTS)
        chunk.operand_bytes = message_bytes(c, &chunk);
    c->raw.cut = true;
    return copy_chunk(c, c->taken, &chunk, why);
}

static uint32_t entry_at(const uint8_t *entries, uint32_t index)
{
    uint32_t entry;

    memcpy(&entry, entries + (size_t)index * 4, sizeof(entry));
    return entry;
}

/* The block that was entered last may not be complete: it counts only if it stores nothing, as with
 * entries (organizer/build.c). */
static bool may_be_incomplete(const struct tbd_consumer *c, uint32_t id)
{
    return id <= c->plan_count && c->plans[id].operand_bytes;
}

/* What a producer that only counts has counted since its last message. */
static struct tbd_msg_passed counted_at_last(const struct tbd_consumer *c)
{
    const uint8_t *area = c->bytes + c->areas.offset;
    struct tbd_msg_passed passed;
    uint64_t from;
    uint32_t count;

    tbd_copy_once(&passed, &c->head->passed, sizeof(passed));
    tbd_copy_once(&from, &c->head->counted, sizeof(from));
    if (!c->areas.count || c->areas.bytes < TBD_ENTRIES_BYTES || from % 4 ||
        from > TBD_ENTRIES_BYTES)
        return passed;
    area += from;
    count = count_entries(area, (uint32_t)(TBD_ENTRIES_BYTES - from) / 4);
    if (count && may_be_incomplete(c, entry_at(area, count - 1)))
        count--;
    if (!count)
        return passed;
    if (!passed.blocks)
        passed.first = entry_at(area, 0);
    passed.last = entry_at(area, count - 1);
    passed.blocks += count;
    return passed;
}

static enum tbd_status take_counted(struct tbd_consumer *c)
{
    struct tbd_msg_passed passed = counted_at_last(c);
    struct tbd_message head = { TBD_MSG_PASSED, sizeof(passed) };
    struct tbd_raw_window *raw = &c->raw;

    if (!passed.blocks)
        return TBD_OK;
    if (!raw_reserve(c, 1, sizeof(head) + sizeof(passed)))
        return TBD_NOMEM;
    raw->cut = true;
    raw->entries[raw->entry_count++] = TBD_ENTRY_MESSAGE | TBD_MSG_PASSED;
    memcpy(raw->operands + raw->operand_bytes, &head, sizeof(head));
    memcpy(raw->operands + raw->operand_bytes + sizeof(head), &passed, sizeof(passed));
    raw->operand_bytes += sizeof(head) + sizeof(passed);
    return TBD_OK;
}

enum tbd_status tbd_consumer_salvage(struct tbd_consumer *c, struct tbd_raw_window *out,
                                     struct tbd_error *why)
{
    bool ended = __atomic_load_n(&c->head->engine_state, __ATOMIC_ACQUIRE) == TBD_ENGINE_ENDED;
    enum tbd_status status = tbd_consumer_take(c, out, why);

    if (status != TBD_NOTFOUND)
        return status;
    status = tbd_consumer_import(c, why);
    if (!status && !ended)
        status = take_open_chunk(c, why);
    if (!status && !ended && c->head->flags & TBD_STREAM_ONLY_COUNTS)
        status = take_counted(c);
    if (status)
        return status;
    if (!c->raw.entry_count)
        return TBD_NOTFOUND;
    c->raw.is_last = true;
    give_out(c, out);
    return TBD_OK;
}
