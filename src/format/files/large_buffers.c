// SPDX-License-Identifier: MIT
/* large_buffers.c - see large_buffers.h
 *
 * Each buffer's size is stored before it.  Sizes grow in steps of an eighth to a quarter, so that
 * one window's buffers fit the next window.  The buffer given back last is taken first: it may
 * still be in the caches, and fewest buffers are in use.  A buffer that is too small is not
 * replaced but *stretched*: it keeps its pages, and only the added ones are new.  Where it is known that
 * bytes will be written, their pages are *made ready* at once: a fault for each costs more than the page.
 *
 * LARGE_BUFFERS-1  At most `kept_most` bytes, in KEPT_COUNT buffers, are kept while they are not in
 *     use, in the order in which they were given back. */
#include "format/files/large_buffers.h"

#include "base/open_file.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define HEAD_BYTES    64u
#define KEPT_COUNT    32u
#define KEPT_MOST     ((size_t)512 << 20)
#define LEAST_BYTES   ((size_t)64 << 10)
#define WASTE_MOST    4u                /* a buffer this many times too large is not taken */
#define STRETCH_LEAST ((size_t)1 << 20) /* below, copying is cheaper than changing page tables */
#define STRETCH_MOST  2u                /* a buffer this many times too small is not stretched */
#define READY_LEAST   ((size_t)16 << 10)
#define READY_STEP    ((size_t)256 << 10) /* of an array: at most this is made for nothing */

/* The thread sanitizer does not follow mremap: what two threads write to different buffers, one after
 * the other at the same address, it would take for a race. */
#ifdef __SANITIZE_THREAD__
#define CAN_STRETCH false
#else
#define CAN_STRETCH true
#endif

struct large_buffer {
    size_t bytes; /* of the whole buffer */
    size_t ready; /* its first bytes, which surely have pages; a multiple of READY_LEAST */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct large_buffer *kept[KEPT_COUNT];
static size_t kept_count, kept_bytes, kept_most = KEPT_MOST;

static struct large_buffer *head_of(const void *buffer)
{
    return (struct large_buffer *)((uintptr_t)buffer - HEAD_BYTES);
}

/* The size of a whole buffer with this many usable bytes; 0: too many. */
static size_t piece_bytes(size_t bytes)
{
    size_t step = LEAST_BYTES / 4, whole;

    if (bytes > SIZE_MAX / 4)
        return 0;
    whole = bytes + HEAD_BYTES < LEAST_BYTES ? LEAST_BYTES : bytes + HEAD_BYTES;
    while (step * 8 <= whole)
        step *= 2;
    return (whole + step - 1) & ~(step - 1);
}

static struct large_buffer *take_kept_locked(size_t at)
{
    struct large_buffer *buffer = kept[at];

    memmove(&kept[at], &kept[at + 1], (kept_count - at - 1) * sizeof(*kept));
    kept_count--;
    kept_bytes -= buffer->bytes;
    return buffer;
}

/* The smallest buffer that is large enough; else the largest, if it is worth stretching.  NULL:
 * none. */
static struct large_buffer *find_kept_locked(size_t bytes)
{
    size_t best = KEPT_COUNT, largest = KEPT_COUNT;

    for (size_t i = 0; i < kept_count; i++) {
        if (kept[i]->bytes >= bytes && kept[i]->bytes / WASTE_MOST <= bytes &&
            (best == KEPT_COUNT || kept[i]->bytes <= kept[best]->bytes))
            best = i;
        if (kept[i]->bytes < bytes && kept[i]->bytes >= STRETCH_LEAST &&
            kept[i]->bytes >= bytes / STRETCH_MOST &&
            (largest == KEPT_COUNT || kept[i]->bytes >= kept[largest]->bytes))
            largest = i;
    }
    if (best == KEPT_COUNT)
        best = largest;
    return best == KEPT_COUNT ? NULL : take_kept_locked(best);
}

static struct large_buffer *make(size_t bytes)
{
    struct large_buffer *buffer =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (buffer == MAP_FAILED)
        return NULL;
    (void)madvise(buffer, bytes, MADV_HUGEPAGE); /* fine where there are none */
    buffer->bytes = bytes;
    buffer->ready = 0;
    return buffer;
}

/* Before the first `bytes` bytes are written.  Without it, or where the kernel does not know it, they fault. */
static void make_ready(struct large_buffer *buffer, size_t bytes)
{
    size_t from = buffer->ready, to = (bytes + READY_LEAST - 1) & ~(READY_LEAST - 1);

    if (to > buffer->bytes)
        to = buffer->bytes;
    if (to <= from)
        return;
    (void)madvise((uint8_t *)buffer + from, to - from, MADV_POPULATE_WRITE);
    buffer->ready = to;
}

/* The same buffer, larger.  NULL: not possible, and it stays as it is. */
static struct large_buffer *stretch(struct large_buffer *buffer, size_t bytes)
{
    struct large_buffer *larger =
        CAN_STRETCH ? mremap(buffer, buffer->bytes, bytes, MREMAP_MAYMOVE) : MAP_FAILED;

    if (larger == MAP_FAILED)
        return NULL;
    larger->bytes = bytes;
    return larger;
}

static void unmap(struct large_buffer *buffer)
{
    munmap(buffer, buffer->bytes);
}

void *tbd_large_buffer_take(size_t bytes)
{
    size_t whole = piece_bytes(bytes);
    struct large_buffer *buffer, *larger;

    if (!whole || whole > tbd_memory_most())
        return NULL;
    pthread_mutex_lock(&lock);
    buffer = find_kept_locked(whole);
    pthread_mutex_unlock(&lock);
    if (buffer && buffer->bytes < whole) {
        larger = stretch(buffer, whole);
        if (!larger)
            unmap(buffer);
        buffer = larger;
    }
    if (!buffer)
        buffer = make(whole);
    return buffer ? (uint8_t *)buffer + HEAD_BYTES : NULL;
}

size_t tbd_large_buffer_bytes(const void *buffer)
{
    return head_of(buffer)->bytes - HEAD_BYTES;
}

void *tbd_large_buffer_grow(void *buffer, size_t used, size_t bytes)
{
    size_t whole = piece_bytes(bytes);
    struct large_buffer *larger = NULL;
    void *grown;

    if (buffer && tbd_large_buffer_bytes(buffer) >= bytes)
        return buffer;
    if (buffer && whole && used >= STRETCH_LEAST)
        larger = stretch(head_of(buffer), whole);
    if (larger)
        return (uint8_t *)larger + HEAD_BYTES;
    grown = tbd_large_buffer_take(bytes);
    if (!grown || !buffer)
        return grown;
    tbd_large_buffer_ready(grown, used);
    memcpy(grown, buffer, used);
    tbd_large_buffer_give(buffer);
    return grown;
}

void tbd_large_buffer_give(void *buffer)
{
    struct large_buffer *head = buffer ? head_of(buffer) : NULL;
    bool is_kept;

    if (!head)
        return;
    pthread_mutex_lock(&lock);
    is_kept = kept_count < KEPT_COUNT && kept_bytes + head->bytes <= kept_most;
    if (is_kept) {
        kept[kept_count++] = head;
        kept_bytes += head->bytes;
    }
    TBD_INVARIANT("LARGE_BUFFERS-1", kept_count <= KEPT_COUNT && kept_bytes <= kept_most);
    pthread_mutex_unlock(&lock);
    if (!is_kept)
        unmap(head);
}

void tbd_large_buffers_keep(size_t bytes)
{
    struct large_buffer *dropped[KEPT_COUNT];
    size_t count = 0;

    pthread_mutex_lock(&lock);
    kept_most = bytes < KEPT_MOST ? bytes : KEPT_MOST;
    while (kept_bytes > kept_most)
        dropped[count++] = take_kept_locked(0);
    pthread_mutex_unlock(&lock);
    while (count)
        unmap(dropped[--count]);
}

void tbd_large_buffer_ready(void *buffer, size_t bytes)
{
    make_ready(head_of(buffer), bytes + HEAD_BYTES);
}

/* The bytes that an array may use now.  More are made ready when it needs them. */
static size_t ready_bytes(void *array, size_t needed)
{
    size_t all = tbd_large_buffer_bytes(array), ready;

    tbd_large_buffer_ready(array, needed < READY_STEP ? 2 * needed : needed + READY_STEP);
    ready = head_of(array)->ready - HEAD_BYTES;
    return ready < all ? ready : all;
}

/* Space for `needed` elements, of which the first `count` are there. */
static bool make_space(void **array, size_t count, size_t needed, size_t *capacity, size_t element)
{
    void *grown = *array;
    size_t bytes;

    if (needed <= *capacity)
        return true;
    if (__builtin_mul_overflow(2 * needed, element, &bytes))
        return false;
    if (grown == NULL || tbd_large_buffer_bytes(grown) < needed * element)
        grown = tbd_large_buffer_grow(grown, count * element, bytes);
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = ready_bytes(grown, needed * element) / element;
    return true;
}

bool tbd_large_array_grow(void *array, size_t count, size_t *capacity, size_t element)
{
    return make_space(array, count, count + 1, capacity, element);
}

bool tbd_large_array_append(void *array, size_t *count, size_t *capacity, size_t element,
                            const void *more, size_t more_count)
{
    void **at = array;

    if (more_count == 0)
        return true;
    if (!make_space(at, *count, *count + more_count, capacity, element))
        return false;
    memcpy((uint8_t *)*at + *count * element, more, more_count * element);
    *count += more_count;
    return true;
}
