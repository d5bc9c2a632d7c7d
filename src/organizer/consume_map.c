// SPDX-License-Identifier: MIT
/* consume_map.c - a stream's memory, mapped, and its head
 *
 * Invariants
 * CONSUME_MAP-1  Sizes and offsets of the stream are read once, checked against the file's size,
 *     and kept in the consumer: what the producer writes into the head later changes nothing. */
#include "organizer/consume_private.h"

#include "base/assert.h"
#include "base/copy_once.h"
#include "format/files/file.h"
#include "organizer/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static size_t page_up(size_t bytes)
{
    return (bytes + GUARD_BYTES - 1) & ~(size_t)(GUARD_BYTES - 1);
}

bool tbd_stream_fits(uint64_t offset, uint64_t count, uint64_t element, uint64_t limit)
{
    uint64_t bytes;

    return !__builtin_mul_overflow(count, element, &bytes) && offset <= limit &&
           bytes <= limit - offset;
}

static bool areas_fit(const struct tbd_stream_head *head, uint64_t size)
{
    return head->area_bytes % GUARD_BYTES == 0 && head->area_bytes < size &&
           head->areas_offset % GUARD_BYTES == 0 &&
           tbd_stream_fits(head->areas_offset, head->area_count, head->area_bytes + GUARD_BYTES,
                           size);
}

static enum tbd_status take_head(struct tbd_consumer *c, struct tbd_error *why)
{
    struct tbd_stream_head head;

    tbd_copy_once(&head, c->head, sizeof(head));
    if (head.magic != TBD_STREAM_MAGIC)
        return tbd_error_set(why, TBD_BADMAGIC, "stream", 0, "the magic number is wrong");
    if (head.version != TBD_STREAM_VERSION)
        return tbd_error_set(why, TBD_UNSUPPORTED, "stream", 8, "version %u", head.version);
    if (head.chunk_count < 2 || head.chunk_count > TBD_STREAM_MAX_CHUNKS ||
        head.chunk_stride != TBD_CHUNK_STRIDE || head.defs_offset % 8 || head.heap_offset % 8 ||
        head.chunks_offset % 4096 || head.def_capacity >> 30 || head.total_bytes > c->size ||
        !tbd_stream_fits(head.defs_offset, head.def_capacity, sizeof(struct tbd_block_def),
                         c->size) ||
        !tbd_stream_fits(head.heap_offset, head.heap_capacity, 1, c->size) ||
        !tbd_stream_fits(head.chunks_offset, head.chunk_count, TBD_CHUNK_STRIDE, c->size) ||
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
    TBD_INVARIANT("CONSUME_MAP-1",
                  c->chunks_offset + (uint64_t)c->chunk_count * TBD_CHUNK_STRIDE <= c->size);
    return TBD_OK;
}

/* Aligned for large pages (warm.h). */
static void *map_aligned(int fd, size_t bytes)
{
    size_t reserved = bytes + TBD_LARGE_PAGE;
    uint8_t *start =
        mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

enum tbd_status tbd_consumer_map(struct tbd_consumer *c, int fd, struct tbd_error *why)
{
    struct stat st;
    void *at;

    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK); /* fine if it cannot be sealed */
    if (fstat(fd, &st) || (size_t)st.st_size < sizeof(*c->head))
        return tbd_error_set(why, TBD_TRUNCATED, "stream", 0, "it has no head");
    at = map_aligned(fd, (size_t)st.st_size);
    if (at == MAP_FAILED)
        return tbd_error_set(why, errno == ENOMEM ? TBD_NOMEM : TBD_SYSTEM, "stream", 0,
                             "cannot map it: %s", strerror(errno));
    c->bytes = at;
    c->size = (size_t)st.st_size;
    c->head = at;
    return take_head(c, why);
}

void tbd_consumer_unmap(struct tbd_consumer *c)
{
    if (c->bytes)
        munmap(c->bytes, c->size);
}
