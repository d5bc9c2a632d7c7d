// SPDX-License-Identifier: MIT
/* ring.c - the producer's side of a stream: chunks, messages, block definitions
 *
 *   producer:  fill the open chunk -> publish: entry_count, then published+1 (release) ...(A)
 *   consumer:  published (acquire, A) -> use it, zero the entries -> released+1 (release) .(B)
 *   producer:  released (acquire, B), before it opens a slot again
 *
 * Invariants (STREAM-1 to STREAM-5 are the stream's, format/stream/stream.h)
 * RING-1  entry_next lies in the open chunk's entries area or at its end.  Messages use entries as
 *     blocks do, so the area's end is reached at the time `due` or earlier, never later.
 * RING-2  Only a block's entry store (by a fault) and reserve() notice that the area is full.
 * RING-3  When the consumer is gone (`discard`), the producer fills the same slot again and again
 *     and never waits.  The engine detaches at the next boundary.
 * RING-4  With an operand area (replay), each chunk's operands begin where those of the previous
 *     chunk end, so that a window's operands are contiguous.  When a chunk is opened, at least
 *     TBD_OPERANDS_BYTES are left in the area.  If they are not, the consumer is told (WRAPS),
 *     takes all chunks, and the area is used from its beginning.
 * RING-5  Every slot is in exactly one state: open, in `free`, or taken by a chunk not yet
 *     collected.
 * RING-6  A ring that counts: time is `first_time` plus the entries from `counted` on; those before
 *     are in `passed`, or were sent.
 * RING-7  Where nobody reads what translated code writes (entries that are only counted, records aside), it goes into memory that a
 *     processor's first cache holds: one area of the address space, whose pages are all the same few.  What is read back of it is the
 *     entry, or the record, written last. (not checked: it would need what has been written)
 */
#include "hooks/stream/ring.h"

#include "base/assert.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/stream/patience.h"

#define AROUND_BYTES 65536u
/* The end of an area of TBD_ENTRIES_BYTES, in which entries are only counted. */
#define COUNTING_BYTES 131072u

static uint32_t place_of(const struct tbd_ring *ring, uint32_t number)
{
    return number % ring->head->chunk_count;
}

static struct tbd_chunk *open_one(const struct tbd_ring *ring)
{
    return &ring->head->chunks[place_of(ring, ring->number)];
}

static uint64_t entries_start(const struct tbd_ring *ring, uint32_t slot)
{
    return TBD_STREAM_BASE + ring->head->chunks_offset + (uint64_t)slot * TBD_CHUNK_STRIDE;
}

/* Where the operands of the open chunk begin. */
static uint64_t operands_start(const struct tbd_ring *ring)
{
    if (ring->area)
        return ring->area_at;
    return entries_start(ring, ring->slot) + TBD_ENTRIES_BYTES + TBD_PAGE_SIZE;
}

static uint64_t operands_end(const struct tbd_ring *ring)
{
    if (ring->area)
        return ring->area + ring->head->area_bytes;
    return operands_start(ring) + TBD_OPERANDS_BYTES;
}

/* Where the space for records ends, which translated code writes at operand_next. */
static uint64_t records_end(const struct tbd_ring *ring)
{
    return ring->aside ? ring->aside + ring->aside_bytes : operands_end(ring);
}

/* Where the next message goes, with its payload. */
static uint64_t *message_operand(struct tbd_ring *ring, struct tbd_thread *thread)
{
    return ring->aside ? &ring->message_operand : &thread->operand_next;
}

/* Do entries go to an area of their own, as nobody reads them (RING-7)? */
static bool discards_apart(const struct tbd_ring *ring)
{
    return ring->discard && ring->discards_into;
}

/* The area of the open chunk's entries, unless they are counted. */
static uint64_t own_entries(const struct tbd_ring *ring)
{
    return discards_apart(ring) ? ring->discards_into : entries_start(ring, ring->slot);
}

static uint64_t own_entries_bytes(const struct tbd_ring *ring)
{
    return discards_apart(ring) ? ring->discards_bytes : TBD_ENTRIES_BYTES;
}

/* Where translated code writes its entries. */
static uint64_t filled_entries(const struct tbd_ring *ring)
{
    return ring->counting ? ring->counting : own_entries(ring);
}

static uint64_t filled_entries_bytes(const struct tbd_ring *ring)
{
    return ring->counting ? ring->counting_bytes : own_entries_bytes(ring);
}

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);
}

/* ---- making one ---- */

static void lay_out(struct tbd_stream_head *head, const struct tbd_ring_config *config)
{
    *head = (struct tbd_stream_head){
        .magic = TBD_STREAM_MAGIC,
        .version = TBD_STREAM_VERSION,
        .chunk_count = config->chunks,
        .def_capacity = config->def_capacity,
        .chunk_stride = TBD_CHUNK_STRIDE,
        .heap_capacity = page_up(config->heap_capacity),
        .window_blocks = config->window_blocks,
        .hook_set = config->hook_set,
        .pid = config->pid,
        .flags = (config->only_counts ? TBD_STREAM_ONLY_COUNTS : 0) |
                 (config->is_native ? TBD_STREAM_NATIVE | TBD_STREAM_OWN_CODE : 0),
    };
    head->defs_offset = page_up(sizeof(*head));
    head->heap_offset =
        head->defs_offset + page_up((uint64_t)config->def_capacity * sizeof(struct tbd_block_def));
    head->chunks_offset = head->heap_offset + head->heap_capacity;
    head->areas_offset = head->chunks_offset + (uint64_t)config->chunks * TBD_CHUNK_STRIDE;
    head->area_count = config->only_counts ? 1 : config->areas;
    head->area_bytes = config->only_counts ? TBD_ENTRIES_BYTES : config->area_bytes;
    head->total_bytes = head->areas_offset + head->area_count * (head->area_bytes + TBD_PAGE_SIZE);
}

uint64_t tbd_ring_bytes(const struct tbd_ring_config *config)
{
    struct tbd_stream_head head;

    lay_out(&head, config);
    return head.total_bytes;
}

/* Where entries are only counted, chunks have messages alone, which look for space before (make_space()). */
bool tbd_ring_guard(const struct tbd_ring *ring)
{
    for (uint32_t i = 0; !ring->counting && i < ring->head->chunk_count; i++) {
        uint64_t start = entries_start(ring, i);

        if (tbd_sys_failed(tbd_sys_mprotect(start + TBD_ENTRIES_BYTES, TBD_PAGE_SIZE, PROT_NONE)) ||
            tbd_sys_failed(tbd_sys_mprotect(start + TBD_CHUNK_STRIDE - TBD_PAGE_SIZE, TBD_PAGE_SIZE,
                                            PROT_NONE)))
            return false;
    }
    for (uint32_t i = 0; i < ring->head->area_count; i++)
        if (tbd_sys_failed(tbd_sys_mprotect(tbd_ring_area(ring, i) + ring->head->area_bytes,
                                            TBD_PAGE_SIZE, PROT_NONE)))
            return false;
    return true;
}

uint64_t tbd_ring_area(const struct tbd_ring *ring, uint32_t index)
{
    const struct tbd_stream_head *head = ring->head;

    return TBD_STREAM_BASE + head->areas_offset + index * (head->area_bytes + TBD_PAGE_SIZE);
}

/* The first chunk lies in slot 0, the next ones in 1, 2, ... until a chunk is given back. */
static void free_slots(struct tbd_ring *ring, uint32_t count)
{
    while (--count > 0)
        ring->free[ring->free_count++] = (uint8_t)count;
}

enum tbd_status tbd_ring_create(struct tbd_ring *ring, int fd, const struct tbd_ring_config *config)
{
    uint64_t bytes = tbd_ring_bytes(config);
    int flags = fd < 0 ? TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE : MAP_SHARED | MAP_FIXED_NOREPLACE;

    *ring = (struct tbd_ring){ .bytes = bytes, .discard = fd < 0, .used_slots = 1 };
    if (bytes > TBD_PLAN_BASE - TBD_STREAM_BASE)
        return TBD_USAGE;
    if (fd >= 0 && tbd_sys_failed(tbd_sys3(__NR_ftruncate, (uint64_t)(unsigned)fd, bytes, 0)))
        return TBD_SYSTEM;
    if (tbd_sys_mmap(TBD_STREAM_BASE, bytes, TBD_PROT_RW, flags, fd, 0) != (long)TBD_STREAM_BASE)
        return TBD_NOMEM;
    ring->head = (struct tbd_stream_head *)TBD_STREAM_BASE;
    lay_out(ring->head, config);
    free_slots(ring, config->chunks);
    ring->counting = config->only_counts ? tbd_ring_area(ring, 0) : 0;
    ring->counting_bytes = TBD_ENTRIES_BYTES;
    return TBD_OK;
}

/* ---- chunks ---- */

/* Into an area of `area_bytes` whose last `bytes` are used. */
static uint64_t start_offset(const struct tbd_ring *ring, uint64_t time, uint64_t area_bytes,
                             uint64_t bytes)
{
    uint64_t left = ring->due - time;

    if (ring->due == TBD_TIME_NEVER || left == 0 || left >= bytes / 4)
        left = bytes / 4; /* left == 0: space for messages; the caller first handles what is due */
    return area_bytes - left * 4;
}

/* ---- only counting ---- */

/* When the program is killed, the organizer reads what was counted: in what order the fields of the
 * head change, so that nothing is counted twice, the compiler must leave as it is. */
static void set_counted(struct tbd_ring *ring, uint64_t entry_next)
{
    ring->counted = entry_next;
    __atomic_store_n(&ring->head->counted, entry_next - ring->counting, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Opens the area in which entries are counted anew; all of them are in `passed`. */
static void open_counting(struct tbd_ring *ring, uint64_t *entry_next)
{
    uint64_t most =
        ring->counting_bytes == TBD_ENTRIES_BYTES ? COUNTING_BYTES : ring->counting_bytes;

    if (ring->head->flags & TBD_STREAM_ONLY_COUNTS && ring->counted > ring->counting_start)
        memset((void *)ring->counting_start, 0, ring->counted - ring->counting_start);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    ring->counting_start =
        ring->counting + start_offset(ring, ring->first_time, ring->counting_bytes, most);
    *entry_next = ring->counting_start;
    set_counted(ring, *entry_next);
}

/* The entries so far are in `passed`. */
static void take_count(struct tbd_ring *ring, uint64_t entry_next)
{
    struct tbd_msg_passed *passed = &ring->head->passed;
    uint64_t from = ring->counted;
    uint32_t count = (uint32_t)((entry_next - ring->counted) / 4);

    TBD_INVARIANT("RING-6", entry_next >= ring->counted &&
                                entry_next <= ring->counting + ring->counting_bytes);
    if (!count)
        return;
    ring->last_block = *(const uint32_t *)(entry_next - 4);
    ring->first_time += count;
    set_counted(ring, entry_next);
    if (!passed->blocks)
        passed->first = *(const uint32_t *)from;
    passed->last = ring->last_block;
    __atomic_store_n(&passed->blocks, passed->blocks + count, __ATOMIC_RELEASE);
}

/* Is there no space in the area for another chunk (RING-4)? */
static bool is_used_up(const struct tbd_ring *ring, uint64_t operand_next)
{
    return ring->area && operands_end(ring) - operand_next < TBD_OPERANDS_BYTES;
}

static void open_chunk(struct tbd_ring *ring, uint64_t time, uint64_t *entry_next,
                       uint64_t *operand_next)
{
    struct tbd_chunk *chunk = open_one(ring);
    uint64_t bytes = own_entries_bytes(ring);
    uint64_t offset = ring->counting ? 0 : start_offset(ring, time, bytes, bytes);

    ring->first_time = time;
    ring->messages = 0;
    chunk->first_time = time;
    chunk->entries_offset = (uint32_t)offset;
    chunk->operand_bytes = 0;
    chunk->flags = 0;
    chunk->slot = ring->slot;
    __atomic_store_n(&chunk->entry_count, TBD_COUNT_OPEN, __ATOMIC_RELEASE);
    ring->message_at = own_entries(ring) + offset;
    *entry_next = ring->message_at;
    if (ring->counting)
        open_counting(ring, entry_next);
    ring->area_at = *operand_next;
    *operand_next = ring->aside ? ring->aside : operands_start(ring);
    ring->message_operand = operands_start(ring);
    TBD_INVARIANT("RING-4", !ring->area || !is_used_up(ring, *operand_next));
}

static uint32_t open_entries(const struct tbd_ring *ring, uint64_t entry_next)
{
    uint64_t first = own_entries(ring) + open_one(ring)->entries_offset;

    return (uint32_t)(((ring->counting ? ring->message_at : entry_next) - first) / 4);
}

static uint64_t time_at(const struct tbd_ring *ring, uint64_t entry_next)
{
    if (ring->counting)
        return ring->first_time + (entry_next - ring->counted) / 4;
    return ring->first_time + open_entries(ring, entry_next) - ring->messages;
}

bool tbd_ring_consumer_died(const struct tbd_ring *ring)
{
    uint32_t lock = __atomic_load_n(&ring->head->organizer_lock, __ATOMIC_ACQUIRE);
    uint32_t state = __atomic_load_n(&ring->head->organizer_state, __ATOMIC_ACQUIRE);

    return (lock & FUTEX_OWNER_DIED) || state == TBD_ORGANIZER_FAILED;
}

/* Makes the slots of chunks that were given back free. */
static uint32_t collect(struct tbd_ring *ring)
{
    uint32_t released = __atomic_load_n(&ring->head->released, __ATOMIC_ACQUIRE); /* (B) */

    while (ring->collected != released && ring->collected != ring->number)
        ring->free[ring->free_count++] = ring->taken[place_of(ring, ring->collected++)];
    return released;
}

/* Reads one byte in 16 pages.  If the pages exist in the shared file already, a read fault maps all
 * 16 of them, writable, and a write fault only one (fault-around, do_read_fault()).  They exist if
 * the organizer has made them (organizer/warm.h); otherwise this allocates one page in 16, which
 * will be filled anyway. */
static void look_around(uint64_t from, uint64_t to)
{
    for (uint64_t at = from; at < to; at = (at | (AROUND_BYTES - 1)) + 1)
        (void)*(const volatile uint8_t *)at;
}

/* Slots are first used in ascending order. */
static void enter_slot(struct tbd_ring *ring, uint32_t slot)
{
    uint64_t entries = entries_start(ring, slot);
    uint64_t operands = entries + TBD_ENTRIES_BYTES + TBD_PAGE_SIZE;

    if (slot >= ring->used_slots) {
        ring->used_slots = slot + 1;
        look_around(entries, entries + TBD_ENTRIES_BYTES);
        if (!ring->area)
            look_around(operands, operands + ring->operands_most);
    }
    ring->slot = slot;
}

/* Waits until `count` slots are free, and takes one as the open one. */
static void take_slot(struct tbd_ring *ring, uint32_t count)
{
    struct tbd_stream_head *head = ring->head;
    struct tbd_patience patience = { 0 };
    uint32_t before = 0;
    bool waited = false;

    while (!ring->discard) {
        uint32_t released = collect(ring);

        if (tbd_ring_consumer_died(
                ring)) { /* also while there is space: a computation needs little */
            ring->discard = true;
            return;
        }
        TBD_INVARIANT("RING-5",
                      ring->free_count + (ring->number - ring->collected) == head->chunk_count);
        if (ring->free_count >= count) {
            enter_slot(ring, ring->free[--ring->free_count]);
            return;
        }
        if (!waited)
            __atomic_store_n(&head->waits, head->waits + 1, __ATOMIC_RELAXED);
        if (waited && released != before)
            patience.waits = 0; /* it works */
        waited = true;
        before = released;
        tbd_patience_wait(&patience, &head->released, released, head->organizer_lock);
    }
}

static void publish(struct tbd_ring *ring, uint64_t entry_next, uint64_t operand_next,
                    uint32_t flags)
{
    struct tbd_stream_head *head = ring->head;
    struct tbd_chunk *chunk = open_one(ring);

    TBD_INVARIANT("RING-1",
                  ring->counting ||
                      (entry_next >= entries_start(ring, ring->slot) + chunk->entries_offset &&
                       entry_next <= entries_start(ring, ring->slot) + TBD_ENTRIES_BYTES));
    TBD_INVARIANT("RING-3", !ring->discard);
    TBD_INVARIANT("STREAM-4", ring->messages <= open_entries(ring, entry_next));
    TBD_INVARIANT("STREAM-5", head->engine_state != TBD_ENGINE_ENDED);
    TBD_INVARIANT("STREAM-2",
                  operand_next >= operands_start(ring) && operand_next <= operands_end(ring));
    chunk->operand_bytes = (uint32_t)(operand_next - operands_start(ring));
    chunk->flags = flags;
    ring->window_bytes += chunk->operand_bytes;
    if (chunk->operand_bytes > ring->operands_most)
        ring->operands_most = chunk->operand_bytes;
    if (flags & TBD_CHUNK_ENDS_WINDOW)
        ring->window_bytes = 0;
    __atomic_store_n(&chunk->entry_count, open_entries(ring, entry_next), __ATOMIC_RELEASE);
    ring->taken[place_of(ring, ring->number)] = (uint8_t)ring->slot;
    ring->number++;
    __atomic_store_n(&head->published, ring->number, __ATOMIC_RELEASE); /* (A) */
    tbd_sys_futex_wake(&head->published);
}

/* The id of the last block entry.  Messages may follow it, and the open chunk may have none. */
static uint32_t last_block(const struct tbd_ring *ring, uint64_t entry_next)
{
    uint32_t count = open_entries(ring, entry_next);

    if (ring->counting)
        return entry_next > ring->counted ? *(const uint32_t *)(entry_next - 4) : ring->last_block;
    for (const uint32_t *entry = (const uint32_t *)entry_next; count; count--)
        if (!(*--entry & TBD_ENTRY_MESSAGE))
            return *entry;
    return ring->last_block;
}

uint32_t tbd_ring_last_block(const struct tbd_ring *ring, const struct tbd_thread *thread)
{
    return last_block(ring, thread->entry_next);
}

static void turn(struct tbd_ring *ring, uint64_t *entry_next, uint64_t *operand_next,
                 uint32_t flags)
{
    uint64_t time = time_at(ring, *entry_next);
    bool wraps = is_used_up(ring, *operand_next);

    if (ring->counting)
        take_count(ring, *entry_next);
    else
        ring->last_block = last_block(ring, *entry_next);
    if (wraps)
        flags |= TBD_CHUNK_WRAPS;
    if (!ring->discard && (flags || open_entries(ring, *entry_next) > 0)) {
        publish(ring, *entry_next, ring->aside ? ring->message_operand : *operand_next, flags);
        take_slot(ring, wraps ? ring->head->chunk_count : 1);
    }
    if (wraps || ring->discard)
        *operand_next = ring->area;
    open_chunk(ring, time, entry_next, operand_next);
}

void tbd_ring_start(struct tbd_ring *ring, struct tbd_thread *thread, uint64_t time, uint64_t due)
{
    ring->due = due;
    thread->operand_next = ring->area;
    open_chunk(ring, time, &thread->entry_next, &thread->operand_next);
}

uint64_t tbd_ring_time(const struct tbd_ring *ring, const struct tbd_thread *thread)
{
    return time_at(ring, thread->entry_next);
}

void tbd_ring_go_on(struct tbd_ring *ring, struct tbd_thread *thread)
{
    if (!ring->counting) {
        tbd_ring_turn(ring, thread, 0);
        return;
    }
    take_count(ring, thread->entry_next);
    if (ring->aside)
        thread->operand_next = ring->aside;
    if (ring->head->passed.blocks >> 31)
        tbd_ring_turn(ring, thread, 0); /* before it overflows */
    else
        open_counting(ring, &thread->entry_next);
}

void tbd_ring_enter(struct tbd_ring *ring, struct tbd_thread *thread, uint32_t id)
{
    if (thread->entry_next == filled_entries(ring) + filled_entries_bytes(ring))
        tbd_ring_go_on(ring, thread);
    *(volatile uint32_t *)thread->entry_next = id;
    thread->entry_next += 4;
}

void tbd_ring_set_due(struct tbd_ring *ring, struct tbd_thread *thread, uint64_t due)
{
    ring->due = due;
    tbd_ring_go_on(ring, thread);
}

/* ---- messages ---- */

/* With a message, its PASSED may come. */
#define PASSED_BYTES (sizeof(struct tbd_message) + sizeof(struct tbd_msg_passed))

static bool has_space(struct tbd_ring *ring, struct tbd_thread *thread, size_t bytes)
{
    uint64_t entries_end = entries_start(ring, ring->slot) + TBD_ENTRIES_BYTES;
    uint64_t entry_next = ring->counting ? ring->message_at + 4 : thread->entry_next;

    bytes += ring->counting ? PASSED_BYTES : 0;
    return entry_next + 4 <= entries_end &&
           *message_operand(ring, thread) + sizeof(struct tbd_message) + bytes <=
               operands_end(ring);
}

static uint8_t *put_head(struct tbd_ring *ring, struct tbd_thread *thread,
                         enum tbd_message_kind kind, size_t bytes)
{
    struct tbd_message head = { (uint32_t)kind, (uint32_t)bytes };
    uint8_t *at = (uint8_t *)*message_operand(ring, thread);

    memcpy(at, &head, sizeof(head));
    return at + sizeof(head);
}

/* The message whose head and payload are at message_operand() is complete. */
static void end_message(struct tbd_ring *ring, struct tbd_thread *thread)
{
    uint64_t *entry_next = ring->counting ? &ring->message_at : &thread->entry_next;
    uint64_t *operand = message_operand(ring, thread);
    struct tbd_message head;

    memcpy(&head, (const uint8_t *)*operand, sizeof(head));
    *operand += sizeof(head) + head.bytes;
    ring->messages++;
    __atomic_store_n((uint32_t *)*entry_next, TBD_ENTRY_MESSAGE | head.kind, __ATOMIC_RELEASE);
    *entry_next += 4;
}

/* Says how many blocks were entered since the last message. */
static void send_passed(struct tbd_ring *ring, struct tbd_thread *thread)
{
    struct tbd_msg_passed *passed = &ring->head->passed;

    take_count(ring, thread->entry_next);
    if (!passed->blocks)
        return;
    memcpy(put_head(ring, thread, TBD_MSG_PASSED, sizeof(*passed)), passed, sizeof(*passed));
    __atomic_store_n(&passed->blocks, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    end_message(ring, thread);
}

void tbd_ring_turn(struct tbd_ring *ring, struct tbd_thread *thread, uint32_t flags)
{
    if (ring->counting && !ring->discard && has_space(ring, thread, 0))
        send_passed(ring, thread);
    turn(ring, &thread->entry_next, &thread->operand_next, flags);
}

/* A chunk shortened for `due` has few entries left.  A message takes one of them; the remaining
 * blocks up to `due` go into the next chunk.  A chunk without any entry left is replaced by one
 * with space for the message. */
static void make_space(struct tbd_ring *ring, struct tbd_thread *thread, size_t bytes)
{
    if (!has_space(ring, thread, bytes))
        tbd_ring_turn(ring, thread, 0);
}

uint8_t *tbd_ring_reserve(struct tbd_ring *ring, struct tbd_thread *thread,
                          enum tbd_message_kind kind, size_t bytes)
{
    if (ring->discard || bytes > TBD_MESSAGE_MAX_BYTES)
        return NULL;
    make_space(ring, thread, bytes);
    if (ring->discard)
        return NULL;
    if (ring->counting)
        send_passed(ring, thread);
    return put_head(ring, thread, kind, bytes);
}

void tbd_ring_commit(struct tbd_ring *ring, struct tbd_thread *thread)
{
    uint64_t operand = *message_operand(ring, thread);
    struct tbd_message head;

    memcpy(&head, (const uint8_t *)operand, sizeof(head));
    TBD_INVARIANT("RING-2", operand + sizeof(head) + head.bytes <= operands_end(ring));
    end_message(ring, thread);
}

void tbd_ring_send(struct tbd_ring *ring, struct tbd_thread *thread, enum tbd_message_kind kind,
                   const struct tbd_part *parts, size_t count)
{
    size_t bytes = 0;
    uint8_t *at;

    for (size_t i = 0; i < count; i++)
        bytes += parts[i].bytes;
    at = tbd_ring_reserve(ring, thread, kind, bytes);
    if (!at)
        return;
    for (size_t i = 0; i < count; i++) {
        memcpy(at, parts[i].data, parts[i].bytes);
        at += parts[i].bytes;
    }
    tbd_ring_commit(ring, thread);
}

/* ---- definitions ---- */

uint32_t tbd_ring_define(struct tbd_ring *ring, const struct tbd_block_def *def,
                         const struct tbd_op *ops, const uint8_t *code)
{
    struct tbd_stream_head *head = ring->head;
    struct tbd_block_def *out;
    uint64_t ops_at = (head->heap_used + 7) & ~7ull;
    uint64_t ops_bytes = def->op_count * sizeof(struct tbd_op);
    uint64_t code_at = ops_at + ops_bytes;
    uint8_t *heap = (uint8_t *)head + head->heap_offset;

    if (head->def_count == head->def_capacity || code_at + def->code_bytes > head->heap_capacity) {
        ring->full = true;
        return 1;
    }
    if (ops_bytes)
        memcpy(heap + ops_at, ops, ops_bytes);
    if (def->code_bytes)
        memcpy(heap + code_at, code, def->code_bytes);
    out = (struct tbd_block_def *)((uint8_t *)head + head->defs_offset) + head->def_count;
    *out = *def;
    out->ops_offset = ops_at;
    out->code_offset = code_at;
    TBD_INVARIANT("STREAM-3", code_at + def->code_bytes <= head->heap_capacity &&
                                  head->def_count < head->def_capacity);
    __atomic_store_n(&head->heap_used, code_at + def->code_bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&head->def_count, head->def_count + 1, __ATOMIC_RELEASE); /* STREAM-3 */
    return head->def_count;
}

/* ---- SIG ---- */

enum tbd_guard tbd_ring_guard_sigsafe(const struct tbd_ring *ring, uint64_t address)
{
    uint64_t entries;

    if (!ring->head)
        return TBD_GUARD_NONE;
    entries = filled_entries(ring);
    if (ring->is_protected && address - ring->protected_at < ring->protected_bytes)
        return TBD_GUARD_ENTRIES;
    if (address - entries < filled_entries_bytes(ring) + TBD_PAGE_SIZE)
        return TBD_GUARD_ENTRIES;
    if (address - records_end(ring) < TBD_PAGE_SIZE)
        return TBD_GUARD_OPERANDS;
    return TBD_GUARD_NONE;
}

uint64_t tbd_ring_records_end_sigsafe(const struct tbd_ring *ring)
{
    return records_end(ring);
}

/* A signal handler may interrupt turn() or the function below.  So this notes the slot, and they
 * clear the flag first.  At worst an area is accessible while the flag is set, which costs one
 * needless system call. */
void tbd_ring_protect_sigsafe(struct tbd_ring *ring)
{
    if (ring->is_protected)
        return;
    ring->protected_at = filled_entries(ring);
    ring->protected_bytes = filled_entries_bytes(ring);
    ring->is_protected = true;
    tbd_sys_mprotect(ring->protected_at, ring->protected_bytes, PROT_NONE);
}

void tbd_ring_unprotect_sigsafe(struct tbd_ring *ring)
{
    uint64_t at = ring->protected_at, bytes = ring->protected_bytes;

    if (!ring->is_protected)
        return;
    ring->is_protected = false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    tbd_sys_mprotect(at, bytes, TBD_PROT_RW);
}

void tbd_ring_move_record_sigsafe(struct tbd_ring *ring, uint64_t *entry_next,
                                  uint64_t *operand_next, uint32_t record_bytes)
{
    uint32_t *entry = (uint32_t *)(*entry_next - 4);
    const uint8_t *record = (const uint8_t *)*operand_next;
    uint8_t copy[TBD_RECORD_MAX_BYTES];
    uint32_t id;

    tbd_ring_unprotect_sigsafe(ring);
    if (record_bytes > sizeof(copy))
        record_bytes = sizeof(copy);
    id = *entry;
    memcpy(copy, record, record_bytes);
    *entry = 0;
    *entry_next -= 4;
    turn(ring, entry_next, operand_next, 0);
    memcpy((uint8_t *)*operand_next, copy, record_bytes);
    __atomic_store_n((uint32_t *)*entry_next, id, __ATOMIC_RELEASE);
    *entry_next += 4;
}

/* Defined length of the record of the block entered last; 0: it has none. */
static uint32_t last_record_bytes(const struct tbd_ring *ring, const struct tbd_thread *thread)
{
    const struct tbd_stream_head *head = ring->head;
    const struct tbd_block_def *defs =
        (const struct tbd_block_def *)((const uint8_t *)head + head->defs_offset);
    uint32_t id = *(const uint32_t *)(thread->entry_next - 4);

    return (ring->counting && !ring->aside) || ring->omits_records || id == 0 ||
                   id > head->def_count
               ? 0
               : defs[id - 1].operand_bytes;
}

void tbd_ring_shorten_record(struct tbd_ring *ring, struct tbd_thread *thread,
                             uint32_t record_bytes)
{
    uint32_t bytes = last_record_bytes(ring, thread);

    if (record_bytes < bytes)
        memset((uint8_t *)thread->operand_next - bytes + record_bytes, 0, bytes - record_bytes);
}

void tbd_ring_close_record_sigsafe(struct tbd_ring *ring, struct tbd_thread *thread,
                                   uint32_t record_bytes)
{
    uint32_t bytes = last_record_bytes(ring, thread);

    if (thread->operand_next + bytes > records_end(ring))
        tbd_ring_move_record_sigsafe(ring, &thread->entry_next, &thread->operand_next,
                                     record_bytes);
    if (record_bytes < bytes)
        memset((uint8_t *)thread->operand_next + record_bytes, 0, bytes - record_bytes);
    thread->operand_next += bytes;
}
