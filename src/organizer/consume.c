// SPDX-License-Identifier: MIT
/* consume.c - the consumer's side of a stream
 *
 *   engine:    fill chunk -> store published (release)  ............. pairs with (A)
 *   consumer:  load published (acquire) (A) -> copy -> zero entries -> store released (release) (B)
 *   engine:    load released (acquire), pairs with (B), before it fills a slot again
 *
 * Invariants
 * C1  Sizes and offsets of the stream are read once, checked against the file's size, and kept
 *     here: what the producer writes into the head later changes nothing.
 * C2  Everything is copied before it is looked at, so that it cannot change under our eyes.
 * C3  A definition is imported before any window that may name it is given out.
 * C4  `plans` never moves: it is reserved for all ids at once. */
#include "organizer/consume.h"

#include "format/coding.h"
#include "format/file.h"
#include "format/room.h"
#include "organizer/warm.h"

#include <emmintrin.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GUARD_BYTES 4096u
#define LINE_BYTES 64u
#define STORES_BYTES (256u << 10)
#define RAW_MAX_ENTRIES ((size_t)1 << 31)
/* In play, room for a window is for so much at least.  It takes memory only as far as a window fills
 * it, and as all pieces are alike, what one window has filled comes back for any other. */
#define PLAY_OPERANDS ((size_t)64 << 20)
#define EXPECT_AHEAD 4u /* definitions */
#define PLAY_ENTRIES_MOST ((size_t)4 << 20)
/* A program that has filled so many will fill more. */
#define SHORT_CHUNKS 4u

struct stores {
    struct stores *next;
    size_t used;
    size_t capacity;
    struct tbd_plan_store stores[];
};

struct tbd_consumer {
    uint8_t *bytes; /* the stream, mapped */
    size_t size;
    struct tbd_stream_head *head;
    /* kept from the head (C1) */
    uint32_t chunk_count;
    uint64_t defs_offset;
    uint64_t heap_offset;
    uint64_t heap_capacity;
    uint64_t chunks_offset;
    uint32_t def_capacity;
    struct tbd_stream_areas areas;

    struct tbd_block_table *table;
    struct tbd_block_table *known;
    struct tbd_plan *plans;
    size_t plans_bytes;
    uint32_t plan_count;
    struct stores *stores;

    uint32_t taken; /* chunks given back so far */
    uint32_t warmed; /* slots whose pages have been made present */
    uint32_t highest_slot; /* of a chunk so far */
    struct tbd_warmer *warmer;
    uint32_t operands_most; /* of one chunk so far */
    bool is_long;    /* a window has come: more will */
    struct tbd_chunk seen; /* the one that tbd_consumer_peek() gave */
    const uint8_t *area;   /* where the window's operands lie; NULL: in their chunks */
    size_t area_used;      /* by chunks before the next one */
    struct tbd_raw_window raw;
    void (*before_move)(void *context); /* NULL: nobody looks at `raw` */
    void *move_context;
    bool raw_started;
    bool ended;
    size_t entry_hint; /* sizes of the windows before: what to reserve */
    size_t operand_hint;
    size_t entry_least; /* the hints are never lower */
    size_t operand_least;
};

void tbd_raw_window_free(struct tbd_raw_window *raw)
{
    tbd_room_give(raw->entries);
    tbd_room_give(raw->operands);
    *raw = (struct tbd_raw_window){ 0 };
}

/* ---- start ---- */

static size_t page_up(size_t bytes)
{
    return (bytes + GUARD_BYTES - 1) & ~(size_t)(GUARD_BYTES - 1);
}

static bool fits(uint64_t offset, uint64_t count, uint64_t element, uint64_t limit)
{
    uint64_t bytes;

    return !__builtin_mul_overflow(count, element, &bytes) && offset <= limit &&
           bytes <= limit - offset;
}

static bool areas_fit(const struct tbd_stream_head *head, uint64_t size)
{
    return head->area_bytes % GUARD_BYTES == 0 && head->area_bytes < size &&
           head->areas_offset % GUARD_BYTES == 0 &&
           fits(head->areas_offset, head->area_count, head->area_bytes + GUARD_BYTES, size);
}

static enum tbd_status take_head(struct tbd_consumer *c, struct tbd_error *why)
{
    struct tbd_stream_head head;

    memcpy(&head, c->head, sizeof(head));
    if (head.magic != TBD_STREAM_MAGIC)
        return tbd_error_set(why, TBD_BADMAGIC, "stream", 0, "the magic number is wrong");
    if (head.version != TBD_STREAM_VERSION)
        return tbd_error_set(why, TBD_UNSUPPORTED, "stream", 8, "version %u", head.version);
    if (head.chunk_count < 2 || head.chunk_count > TBD_STREAM_MAX_CHUNKS ||
        head.chunk_stride != TBD_CHUNK_STRIDE || head.defs_offset % 8 || head.heap_offset % 8 ||
        head.chunks_offset % 4096 || head.def_capacity >> 30 || head.total_bytes > c->size ||
        !fits(head.defs_offset, head.def_capacity, sizeof(struct tbd_block_def), c->size) ||
        !fits(head.heap_offset, head.heap_capacity, 1, c->size) ||
        !fits(head.chunks_offset, head.chunk_count, TBD_CHUNK_STRIDE, c->size) ||
        !areas_fit(&head, c->size))
        return tbd_error_set(why, TBD_CORRUPT, "stream", 12, "impossible sizes");
    c->chunk_count = head.chunk_count;
    c->defs_offset = head.defs_offset;
    c->heap_offset = head.heap_offset;
    c->heap_capacity = head.heap_capacity;
    c->chunks_offset = head.chunks_offset;
    c->def_capacity = head.def_capacity;
    c->areas = (struct tbd_stream_areas){ head.areas_offset, head.area_bytes,
                                          head.area_bytes + GUARD_BYTES, head.area_count };
    c->taken = head.released;
    return TBD_OK;
}

/* So that large pages can lie in it (warm.h). */
static void *map_aligned(int fd, size_t bytes)
{
    size_t reserved = bytes + TBD_LARGE_PAGE;
    uint8_t *start = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t *at;
    size_t before;

    if (start == MAP_FAILED)
        return MAP_FAILED;
    before = -(uintptr_t)start % TBD_LARGE_PAGE;
    at = start + before;
    if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(start, reserved);
        return MAP_FAILED;
    }
    if (before)
        munmap(start, before);
    munmap(at + page_up(bytes), reserved - before - page_up(bytes));
    return at;
}

static enum tbd_status map_stream(struct tbd_consumer *c, int fd, struct tbd_error *why)
{
    struct stat st;
    void *at;

    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK); /* fine if it cannot be sealed */
    if (fstat(fd, &st) || (size_t)st.st_size < sizeof(*c->head))
        return tbd_error_set(why, TBD_TRUNCATED, "stream", 0, "it has no head");
    at = map_aligned(fd, (size_t)st.st_size);
    if (at == MAP_FAILED)
        return tbd_error_set(why, TBD_SYSTEM, "stream", 0, "cannot map it: %s", strerror(errno));
    c->bytes = at;
    c->size = (size_t)st.st_size;
    c->head = at;
    return take_head(c, why);
}

/* Replay makes room for what it needs. */
static void begin_hints(struct tbd_consumer *c)
{
    uint64_t blocks = c->known ? 0 : c->head->window_blocks;

    c->entry_least = blocks < PLAY_ENTRIES_MOST ? (size_t)blocks : PLAY_ENTRIES_MOST;
    c->operand_least = c->known ? 0 : PLAY_OPERANDS;
    c->entry_hint = c->entry_least;
    c->operand_hint = c->operand_least;
}

static enum tbd_status reserve_plans(struct tbd_consumer *c)
{
    void *at;

    c->plans_bytes = ((size_t)c->def_capacity + 1) * sizeof(*c->plans);
    at = mmap(NULL, c->plans_bytes, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return TBD_NOMEM;
    c->plans = at;
    return TBD_OK;
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
    c->table = tbd_block_table_retain(table);
    c->known = known ? tbd_block_table_retain(known) : NULL;
    status = map_stream(c, fd, why);
    if (!status)
        status = reserve_plans(c);
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
    while (c->stores) {
        struct stores *next = c->stores->next;

        free(c->stores);
        c->stores = next;
    }
    if (c->plans)
        munmap(c->plans, c->plans_bytes);
    if (c->bytes)
        munmap(c->bytes, c->size);
    tbd_raw_window_free(&c->raw);
    tbd_block_table_release(c->table);
    tbd_block_table_release(c->known);
    free(c);
}

struct tbd_stream_head *tbd_consumer_head(const struct tbd_consumer *c)
{
    return c->head;
}

void tbd_consumer_use(struct tbd_consumer *c, struct tbd_block_table *table)
{
    tbd_block_table_retain(table);
    tbd_block_table_release(c->table);
    c->table = table;
}

const struct tbd_plan *tbd_consumer_plans(const struct tbd_consumer *c)
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

/* ---- definitions ---- */

static struct tbd_plan_store *take_stores(struct tbd_consumer *c, size_t count)
{
    struct stores *stores = c->stores;

    if (!stores || stores->capacity - stores->used < count) {
        size_t capacity = STORES_BYTES / sizeof(struct tbd_plan_store);

        if (capacity < count)
            capacity = count;
        stores = malloc(sizeof(*stores) + capacity * sizeof(struct tbd_plan_store));
        if (!stores)
            return NULL;
        stores->next = c->stores;
        stores->used = 0;
        stores->capacity = capacity;
        c->stores = stores;
    }
    stores->used += count;
    return stores->stores + stores->used - count;
}

static enum tbd_status make_plan(struct tbd_consumer *c, const struct tbd_block_def *def,
                                 const struct tbd_op *ops, uint32_t id)
{
    struct tbd_plan plan = { .id = id, .operand_bytes = (uint16_t)def->operand_bytes,
                             .op_count = def->op_count };
    struct tbd_plan_store *stores;

    for (uint16_t i = 0; i < def->op_count; i++) {
        plan.store_count = (uint16_t)(plan.store_count + (ops[i].kind == TBD_OP_STORE));
        plan.calls = (uint8_t)(plan.calls + (ops[i].kind == TBD_OP_CALL));
        plan.returns = (uint8_t)(plan.returns + (ops[i].kind == TBD_OP_RET));
    }
    stores = take_stores(c, plan.store_count);
    if (!stores)
        return TBD_NOMEM;
    plan.stores = stores;
    for (uint16_t i = 0; i < def->op_count; i++)
        if (ops[i].kind == TBD_OP_STORE)
            *stores++ = (struct tbd_plan_store){ ops[i].base, ops[i].size, ops[i].add, i + 1u,
                                                 ops[i].insn };
    c->plans[++c->plan_count] = plan;
    return TBD_OK;
}

/* The id the block has in the trace; 0 if a replay comes upon a block that play did not have. */
static enum tbd_status settle_id(struct tbd_consumer *c, const struct tbd_block_def *def,
                                 const struct tbd_op *ops, const uint8_t *code, uint32_t *out)
{
    if (c->known) {
        *out = tbd_block_table_find(c->known, def, ops, code, false);
        if (!*out || tbd_block_table_get(c->table, *out))
            return TBD_OK;
    } else {
        *out = tbd_block_table_find(c->table, def, ops, code, true);
        if (*out)
            return TBD_OK;
        *out = tbd_block_table_count(c->table) + 1;
    }
    return tbd_block_table_put(c->table, *out, def, ops, code);
}

static uint64_t def_offset(const struct tbd_consumer *c, uint32_t id)
{
    return c->defs_offset + (uint64_t)(id - 1) * sizeof(struct tbd_block_def);
}

static enum tbd_status import_one(struct tbd_consumer *c, uint32_t id, struct tbd_error *why)
{
    uint64_t at = def_offset(c, id);
    struct tbd_op *ops = NULL;
    uint8_t code[TBD_BLOCK_MAX_INSNS * 15];
    const char *wrong = NULL;
    struct tbd_block_def def;
    enum tbd_status status;
    uint32_t ours;

    memcpy(&def, c->bytes + at, sizeof(def));
    if (!fits(def.ops_offset, def.op_count, sizeof(*ops), c->heap_capacity) ||
        !fits(def.code_offset, def.code_bytes, 1, c->heap_capacity) ||
        def.code_bytes > sizeof(code))
        return tbd_error_set(why, TBD_CORRUPT, "stream", at, "block %u lies outside the heap", id);
    ops = malloc(sizeof(*ops) * def.op_count + 1);
    if (!ops)
        return TBD_NOMEM;
    memcpy(ops, c->bytes + c->heap_offset + def.ops_offset, sizeof(*ops) * def.op_count);
    memcpy(code, c->bytes + c->heap_offset + def.code_offset, def.code_bytes);
    wrong = tbd_block_check(&def, ops, c->known != NULL);
    if (wrong) {
        free(ops);
        return tbd_error_set(why, TBD_CORRUPT, "stream", at, "block %u: %s", id, wrong);
    }
    status = settle_id(c, &def, ops, code, &ours);
    if (!status)
        status = make_plan(c, &def, ops, ours);
    free(ops);
    return status;
}

/* Its place in the table is in no cache, which is most of what finding it takes. */
static void expect_one(const struct tbd_consumer *c, uint32_t id)
{
    struct tbd_block_def def;

    memcpy(&def, c->bytes + def_offset(c, id), sizeof(def));
    tbd_block_table_expect(c->known ? c->known : c->table, def.start, def.code_hash);
}

static enum tbd_status import_defs(struct tbd_consumer *c, struct tbd_error *why)
{
    uint32_t count = __atomic_load_n(&c->head->def_count, __ATOMIC_ACQUIRE);

    if (count > c->def_capacity)
        return tbd_error_set(why, TBD_CORRUPT, "stream", 132, "%u definitions", count);
    while (c->plan_count < count) {
        enum tbd_status status;

        if (count - c->plan_count > EXPECT_AHEAD)
            expect_one(c, c->plan_count + 1 + EXPECT_AHEAD);
        status = import_one(c, c->plan_count + 1, why);
        if (status)
            return status;
    }
    return TBD_OK;
}

/* ---- chunks ---- */

static uint8_t *slot_start(const struct tbd_consumer *c, uint32_t slot)
{
    return c->bytes + c->chunks_offset + (uint64_t)slot * TBD_CHUNK_STRIDE;
}

/* Where the copied descriptor says, after check_chunk(). */
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

/* What a window will need that has so much already: as much as those before, and a bit (nothing is
 * lost if it is not used); else half as much again. */
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

/* Room for so many entries and operand bytes behind those that are there. */
static bool raw_reserve(struct tbd_consumer *c, size_t entries, size_t operands)
{
    struct tbd_raw_window *raw = &c->raw;
    size_t entry_count = raw->entry_count + entries, operand_bytes = raw->operand_bytes + operands;

    if (!raw->entries || entry_count > raw->entry_capacity) {
        size_t wanted = guess(entry_count, c->entry_hint);
        void *grown;

        say_move(c);
        grown = wanted > RAW_MAX_ENTRIES ? NULL
                                         : tbd_room_grow(raw->entries, raw->entry_count * sizeof(*raw->entries),
                                                         wanted * sizeof(*raw->entries));
        if (!grown)
            return false;
        raw->entries = grown;
        raw->entry_capacity = tbd_room_bytes(grown) / sizeof(*raw->entries);
    }
    if (!raw->operands || operand_bytes > raw->operand_capacity) {
        size_t wanted = guess(operand_bytes, c->operand_hint);
        void *grown;

        say_move(c);
        grown = tbd_room_grow(raw->operands, raw->operand_bytes, wanted + TBD_ROW_SLACK);
        if (!grown)
            return false;
        raw->operands = grown;
        raw->operand_capacity = tbd_room_bytes(grown) - TBD_ROW_SLACK;
    }
    return true;
}

static size_t operand_room(const struct tbd_consumer *c)
{
    return c->area ? c->areas.bytes - c->area_used : TBD_OPERANDS_BYTES;
}

static enum tbd_status check_chunk(const struct tbd_consumer *c, uint32_t number,
                                   const struct tbd_chunk *chunk, struct tbd_error *why)
{
    if (chunk->slot >= c->chunk_count || chunk->entries_offset % 4 || chunk->entries_offset > TBD_ENTRIES_BYTES ||
        chunk->entry_count > (TBD_ENTRIES_BYTES - chunk->entries_offset) / 4 ||
        chunk->operand_bytes > operand_room(c))
        return tbd_error_set(why, TBD_CORRUPT, "stream",
                             256 + (uint64_t)(number % c->chunk_count) * sizeof(*chunk),
                             "impossible chunk");
    return TBD_OK;
}

/* Past the caches: without fetching the lines first, and without leaving them there. */
static void stream_lines(uint8_t *to, const uint8_t *from, size_t lines)
{
    for (size_t i = 0; i < lines * LINE_BYTES; i += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)(to + i), _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
    _mm_sfence(); /* before anybody is told of it */
}

/* In play, what is copied is looked at much later, by another thread, when it would have left the caches unread:
 * they are better used by the workers and the program.  Recording perl and sqlite3 takes a tenth less time for it.
 * In replay the same thread looks at it next. */
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
    copy_out(c, raw->entries + raw->entry_count, entries_of(c, chunk), (size_t)chunk->entry_count * 4);
    copy_out(c, raw->operands + raw->operand_bytes, operands_of(c, chunk), chunk->operand_bytes);
    raw->entry_count += chunk->entry_count;
    raw->operand_bytes += chunk->operand_bytes;
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

/* 0 is "nothing yet", for who salvages the open chunk of a producer that died. */
static void zero_entries(const struct tbd_consumer *c, const struct tbd_chunk *chunk)
{
    memset(entries_of(c, chunk), 0, (size_t)chunk->entry_count * 4);
}

static void give_back(struct tbd_consumer *c, const struct tbd_chunk *chunk)
{
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

/* The next chunk, if there is one; definitions of all its blocks are there. */
static enum tbd_status next_chunk(struct tbd_consumer *c, struct tbd_chunk *out,
                                  struct tbd_error *why)
{
    uint32_t published = __atomic_load_n(&c->head->published, __ATOMIC_ACQUIRE); /* (A) */

    if (published == c->taken)
        return TBD_NOTFOUND;
    if (published - c->taken > c->chunk_count)
        return tbd_error_set(why, TBD_CORRUPT, "stream", 128, "more chunks than there are");
    memcpy(out, &c->head->chunks[c->taken % c->chunk_count], sizeof(*out));
    return import_defs(c, why);
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

struct tbd_stream_areas tbd_consumer_areas(const struct tbd_consumer *c)
{
    return c->areas;
}

/* Slots are used for the first time in their order, so those behind the one being filled are new. */
static void warm_others(struct tbd_consumer *c)
{
    uint32_t number = __atomic_load_n(&c->head->published, __ATOMIC_RELAXED);
    uint32_t open = __atomic_load_n(&c->head->chunks[number % c->chunk_count].slot, __ATOMIC_RELAXED);
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
            give_out(c, out);
            return TBD_OK;
        }
    }
}

/* What the warmer did not get large pages for.  (Kernels before 5.14 cannot; nothing is lost but time.) */
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

/* The open chunk as if it had been published: as many entries as are there, and no end of operands
 * (the entries tell). */
static enum tbd_status take_open_chunk(struct tbd_consumer *c, struct tbd_error *why)
{
    struct tbd_chunk chunk;
    const uint8_t *entries;
    uint32_t limit;

    memcpy(&chunk, &c->head->chunks[c->taken % c->chunk_count], sizeof(chunk));
    if (chunk.entry_count != TBD_COUNT_OPEN)
        return TBD_OK;
    chunk.entry_count = 0;
    chunk.operand_bytes = TBD_OPERANDS_BYTES;
    if (check_chunk(c, c->taken, &chunk, NULL))
        return TBD_OK;
    entries = entries_of(c, &chunk);
    limit = (TBD_ENTRIES_BYTES - chunk.entries_offset) / 4;
    for (chunk.entry_count = 0; chunk.entry_count < limit; chunk.entry_count++) {
        uint32_t entry;

        memcpy(&entry, entries + (size_t)chunk.entry_count * 4, sizeof(entry));
        if (!entry)
            break;
    }
    if (!chunk.entry_count)
        return TBD_OK;
    c->raw.cut = true;
    return copy_chunk(c, c->taken, &chunk, why);
}

enum tbd_status tbd_consumer_salvage(struct tbd_consumer *c, struct tbd_raw_window *out,
                                     struct tbd_error *why)
{
    bool ended = __atomic_load_n(&c->head->engine_state, __ATOMIC_ACQUIRE) == TBD_ENGINE_ENDED;
    enum tbd_status status = tbd_consumer_take(c, out, why);

    if (status != TBD_NOTFOUND)
        return status;
    status = import_defs(c, why);
    if (!status && !ended)
        status = take_open_chunk(c, why);
    if (status)
        return status;
    if (!c->raw.entry_count)
        return TBD_NOTFOUND;
    c->raw.is_last = true;
    give_out(c, out);
    return TBD_OK;
}
