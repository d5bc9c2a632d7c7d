// SPDX-License-Identifier: MIT
/* operands.c - see operands.h
 *
 * OPERANDS-3  `lent` bits and `references` change under `lock`; the rest of an area is its
 *     borrower's.
 * OPERANDS-4  An area that is not lent uses at most KEPT_MOST bytes of memory.  (not checked: only
 *     the kernel knows) */
#include "replay/operands.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/layout.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AREAS_MOST 8u
#define KEPT_MOST  ((size_t)64 << 20)

struct page_run {
    size_t start, end;
};

struct tbd_operand_area {
    struct tbd_areas *areas;
    uint8_t *bytes;
    size_t used;
    struct page_run *owned; /* in pages; from malloc */
    size_t owned_count, owned_capacity;
    size_t owned_end; /* end of the last one */
    uint32_t index;
    bool is_lent;
};

struct tbd_areas {
    pthread_mutex_t lock;
    struct tbd_stream_areas where;
    unsigned references; /* one of the maker, and one for each lent area */
    int fd;
    uint8_t *bytes;
    struct tbd_operand_area list[AREAS_MOST];
};

struct tbd_areas *tbd_areas_new(int fd, const struct tbd_stream_areas *where)
{
    struct tbd_areas *areas = where->count ? calloc(1, sizeof(*areas)) : NULL;

    if (!areas)
        return NULL;
    areas->where = *where;
    areas->references = 1;
    if (areas->where.count > AREAS_MOST)
        areas->where.count = AREAS_MOST;
    areas->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    areas->bytes = areas->fd < 0
                       ? MAP_FAILED
                       : mmap(NULL, areas->where.count * where->stride, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_NORESERVE, areas->fd, (off_t)where->offset);
    if (areas->bytes == MAP_FAILED) {
        if (areas->fd >= 0)
            close(areas->fd);
        free(areas);
        return NULL;
    }
    pthread_mutex_init(&areas->lock, NULL);
    for (uint32_t i = 0; i < areas->where.count; i++)
        areas->list[i] = (struct tbd_operand_area){ .areas = areas,
                                                    .index = i,
                                                    .bytes = areas->bytes + i * where->stride };
    return areas;
}

/* Releases the lock, too. */
static void release_locked(struct tbd_areas *areas)
{
    unsigned left = --areas->references;

    pthread_mutex_unlock(&areas->lock);
    if (left)
        return;
    for (uint32_t i = 0; i < areas->where.count; i++)
        free(areas->list[i].owned);
    munmap(areas->bytes, areas->where.count * areas->where.stride);
    close(areas->fd);
    pthread_mutex_destroy(&areas->lock);
    free(areas);
}

void tbd_areas_free(struct tbd_areas *areas)
{
    if (!areas)
        return;
    pthread_mutex_lock(&areas->lock);
    release_locked(areas);
}

struct tbd_operand_area *tbd_area_take(struct tbd_areas *areas)
{
    struct tbd_operand_area *found = NULL;

    if (!areas)
        return NULL;
    pthread_mutex_lock(&areas->lock);
    for (uint32_t i = 0; i < areas->where.count && !found; i++)
        if (!areas->list[i].is_lent)
            found = &areas->list[i];
    if (found) {
        found->is_lent = true;
        areas->references++;
        TBD_INVARIANT("OPERANDS-3", areas->references <= areas->where.count + 1);
        TBD_INVARIANT("OPERANDS-2", found->owned_count == 0 && found->owned_end == 0);
    }
    pthread_mutex_unlock(&areas->lock);
    return found;
}

/* Drops private copies, so that the process' memory is visible again (OPERANDS-2). */
static void disown(struct tbd_operand_area *area)
{
    for (size_t i = 0; i < area->owned_count; i++)
        madvise(area->bytes + area->owned[i].start, area->owned[i].end - area->owned[i].start,
                MADV_DONTNEED);
    area->owned_count = area->owned_end = 0;
}

static void shrink(const struct tbd_operand_area *area)
{
    const struct tbd_areas *areas = area->areas;

    if (area->used > KEPT_MOST)
        fallocate(areas->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(areas->where.offset + area->index * areas->where.stride + KEPT_MOST),
                  (off_t)(areas->where.stride - KEPT_MOST));
}

void tbd_area_give(struct tbd_operand_area *area)
{
    struct tbd_areas *areas = area ? area->areas : NULL;

    if (!areas)
        return;
    disown(area);
    shrink(area);
    area->used = 0;
    pthread_mutex_lock(&areas->lock);
    area->is_lent = false;
    release_locked(areas);
}

uint8_t *tbd_area_bytes(const struct tbd_operand_area *area)
{
    return area->bytes;
}

size_t tbd_area_capacity(const struct tbd_operand_area *area)
{
    return area->areas->where.bytes;
}

uint32_t tbd_area_index(const struct tbd_operand_area *area)
{
    return area->index;
}

static bool note_run(struct tbd_operand_area *area, size_t start, size_t end)
{
    struct page_run *last = area->owned_count ? &area->owned[area->owned_count - 1] : NULL;

    if (last && last->start <= start && start <= last->end) {
        last->end = last->end > end ? last->end : end;
    } else {
        if (!tbd_array_grow(&area->owned, area->owned_count, &area->owned_capacity,
                            sizeof(*area->owned)))
            return false;
        area->owned[area->owned_count++] = (struct page_run){ start, end };
    }
    area->owned_end = area->owned_end > end ? area->owned_end : end;
    return true;
}

bool tbd_area_own(struct tbd_operand_area *area, size_t from, size_t bytes)
{
    size_t start = from & ~(TBD_PAGE_SIZE - 1);
    size_t end = (from + bytes + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);

    TBD_INVARIANT("OPERANDS-1", area->is_lent && from + bytes <= area->areas->where.bytes);
    if (!note_run(area, start, end))
        return false;
    /* The first write to a page of a private mapping copies it.  This write changes nothing, and
     * needs no read before.  clang makes a read of __atomic_fetch_or(.., 0, ..). */
    for (size_t at = start; at < end; at += TBD_PAGE_SIZE)
        __asm__ volatile("lock orb $0, %0" : "+m"(area->bytes[at]));
    return true;
}

void tbd_area_more(struct tbd_operand_area *area, size_t from, const uint8_t *written, size_t bytes)
{
    size_t owned = area->owned_end > from ? area->owned_end - from : 0;

    area->used = from + bytes;
    if (owned)
        memcpy(area->bytes + from, written, owned < bytes ? owned : bytes);
}
