// SPDX-License-Identifier: MIT
/* feed.c - see feed.h
 *
 * FEED-1  A chunk's slot is its number modulo their count: it is written to after the consumer has given back the
 *     chunk that had it before. (not checked: wait_for_slot() waits for that) */
#include "replay/native/feed.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHUNKS        8u
#define MOST_BLOCKS   (1u << 20)
#define HEAP_BYTES    (1ull << 30)
#define WAIT_NS       100000000
#define MOST_OPERANDS (TBD_OPERANDS_BYTES - TBD_MESSAGE_MAX_BYTES)

struct tbd_feed {
    int fd;
    struct tbd_stream_head *head;
    uint8_t *bytes;
    const struct tbd_block_table *table;
    uint64_t time;
    uint32_t number; /* of the open chunk */
    uint32_t entries, operands;
    bool is_open;
};

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + 4095) & ~4095ull;
}

static void lay_out(struct tbd_stream_head *head, const struct tbd_feed_start *start)
{
    *head = (struct tbd_stream_head){ .magic = TBD_STREAM_MAGIC,
                                      .version = TBD_STREAM_VERSION,
                                      .chunk_count = CHUNKS,
                                      .def_capacity = MOST_BLOCKS,
                                      .chunk_stride = TBD_CHUNK_STRIDE,
                                      .heap_capacity = HEAP_BYTES,
                                      .window_blocks = start->window_blocks,
                                      .hook_set = start->hook_set,
                                      .pid = (uint32_t)getpid(),
                                      .flags = TBD_STREAM_ONLY_COUNTS | TBD_STREAM_OWN_CODE };
    head->defs_offset = page_up(sizeof(*head));
    head->heap_offset = head->defs_offset + page_up(MOST_BLOCKS * sizeof(struct tbd_block_def));
    head->chunks_offset = head->heap_offset + HEAP_BYTES;
    head->areas_offset = head->chunks_offset + CHUNKS * TBD_CHUNK_STRIDE;
    head->total_bytes = head->areas_offset;
}

enum tbd_status tbd_feed_new(const struct tbd_feed_start *start, struct tbd_feed **out)
{
    struct tbd_feed *feed = calloc(1, sizeof(*feed));
    struct tbd_stream_head head;

    *out = NULL;
    if (!feed)
        return TBD_NOMEM;
    lay_out(&head, start);
    feed->table = start->table;
    feed->time = start->first_time;
    feed->fd = memfd_create("tbd-feed", MFD_CLOEXEC);
    feed->bytes = MAP_FAILED;
    if (feed->fd >= 0 && !ftruncate(feed->fd, (off_t)head.total_bytes))
        feed->bytes = mmap(NULL, head.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, feed->fd, 0);
    if (feed->bytes == MAP_FAILED) {
        feed->bytes = NULL;
        tbd_feed_free(feed);
        return TBD_SYSTEM;
    }
    feed->head = (struct tbd_stream_head *)(void *)feed->bytes;
    *feed->head = head;
    *out = feed;
    return TBD_OK;
}

void tbd_feed_free(struct tbd_feed *feed)
{
    if (!feed)
        return;
    if (feed->bytes)
        munmap(feed->bytes, feed->head->total_bytes);
    if (feed->fd >= 0)
        close(feed->fd);
    free(feed);
}

int tbd_feed_fd(const struct tbd_feed *feed)
{
    return feed->fd;
}

/* ---- blocks ---- */

bool tbd_feed_blocks(struct tbd_feed *feed, uint32_t last)
{
    struct tbd_stream_head *head = feed->head;

    for (uint32_t id = head->def_count + 1; id <= last; id++) {
        const struct tbd_block *block = tbd_block_table_get(feed->table, id);
        uint64_t ops_at = (head->heap_used + 7) & ~7ull;
        struct tbd_block_def *out;
        uint64_t code_at;

        if (!block)
            return false;
        code_at = ops_at + block->def.op_count * sizeof(struct tbd_op);
        if (id > MOST_BLOCKS || code_at + block->def.code_bytes > HEAP_BYTES)
            return false;
        out = (struct tbd_block_def *)(void *)(feed->bytes + head->defs_offset) + (id - 1);
        *out = block->def;
        out->ops_offset = ops_at;
        out->code_offset = code_at;
        if (block->def.op_count)
            memcpy(feed->bytes + head->heap_offset + ops_at, block->ops, code_at - ops_at);
        if (block->def.code_bytes)
            memcpy(feed->bytes + head->heap_offset + code_at, block->code, block->def.code_bytes);
        __atomic_store_n(&head->heap_used, code_at + block->def.code_bytes, __ATOMIC_RELEASE);
        __atomic_store_n(&head->def_count, id, __ATOMIC_RELEASE);
    }
    return true;
}

/* ---- chunks ---- */

static uint8_t *slot_of(const struct tbd_feed *feed)
{
    return feed->bytes + feed->head->chunks_offset + (feed->number % CHUNKS) * TBD_CHUNK_STRIDE;
}

/* Waits until the slot is free (FEED-1).  False: the organizer has given up. */
static bool wait_for_slot(struct tbd_feed *feed)
{
    struct tbd_stream_head *head = feed->head;
    struct timespec most = { 0, WAIT_NS };

    for (;;) {
        uint32_t released = __atomic_load_n(&head->released, __ATOMIC_ACQUIRE);

        if (feed->number - released < CHUNKS)
            return true;
        if (tbd_feed_failure(feed))
            return false;
        syscall(SYS_futex, &head->released, FUTEX_WAIT, released, &most, NULL, 0);
    }
}

static bool open_chunk(struct tbd_feed *feed)
{
    if (feed->is_open)
        return true;
    if (!wait_for_slot(feed))
        return false;
    feed->head->chunks[feed->number % CHUNKS] = (struct tbd_chunk){ .first_time = feed->time,
                                                                    .entry_count = TBD_COUNT_OPEN,
                                                                    .slot = feed->number % CHUNKS };
    feed->entries = feed->operands = 0;
    feed->is_open = true;
    return true;
}

static void publish(struct tbd_feed *feed, uint32_t flags)
{
    struct tbd_chunk *chunk = &feed->head->chunks[feed->number % CHUNKS];

    chunk->operand_bytes = feed->operands;
    chunk->flags = flags;
    __atomic_store_n(&chunk->entry_count, feed->entries, __ATOMIC_RELEASE);
    feed->number++;
    feed->is_open = false;
    __atomic_store_n(&feed->head->published, feed->number, __ATOMIC_RELEASE);
    syscall(SYS_futex, &feed->head->published, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

bool tbd_feed_message(struct tbd_feed *feed, const struct tbd_message *head, const void *payload)
{
    struct tbd_msg_passed passed;
    uint8_t *slot;

    if (feed->is_open &&
        (feed->operands >= MOST_OPERANDS || (feed->entries + 1) * 4 >= TBD_ENTRIES_BYTES))
        publish(feed, 0);
    if (!open_chunk(feed))
        return false;
    slot = slot_of(feed);
    memcpy(slot + TBD_ENTRIES_BYTES + 4096 + feed->operands, head, sizeof(*head));
    if (head->bytes)
        memcpy(slot + TBD_ENTRIES_BYTES + 4096 + feed->operands + sizeof(*head), payload,
               head->bytes);
    feed->operands += (uint32_t)sizeof(*head) + head->bytes;
    ((uint32_t *)(void *)slot)[feed->entries++] = TBD_ENTRY_MESSAGE | head->kind;
    if (head->kind == TBD_MSG_PASSED && head->bytes >= sizeof(passed)) {
        memcpy(&passed, payload, sizeof(passed));
        feed->time += passed.blocks;
    }
    return true;
}

uint64_t tbd_feed_time(const struct tbd_feed *feed)
{
    return feed->time;
}

bool tbd_feed_end_window(struct tbd_feed *feed)
{
    if (!open_chunk(feed))
        return false;
    publish(feed, TBD_CHUNK_ENDS_WINDOW);
    return true;
}

const char *tbd_feed_failure(const struct tbd_feed *feed)
{
    uint32_t state = __atomic_load_n(&feed->head->organizer_state, __ATOMIC_ACQUIRE);

    return state == TBD_ORGANIZER_FAILED ? feed->head->failure : NULL;
}

void tbd_feed_end(struct tbd_feed *feed, bool executed)
{
    if (feed->is_open)
        publish(feed, 0);
    if (executed)
        __atomic_store_n(&feed->head->engine_lock, FUTEX_OWNER_DIED, __ATOMIC_RELEASE);
    __atomic_store_n(&feed->head->engine_state, executed ? TBD_ENGINE_EXEC : TBD_ENGINE_ENDED,
                     __ATOMIC_RELEASE);
    syscall(SYS_futex, &feed->head->published, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
