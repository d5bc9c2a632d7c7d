// SPDX-License-Identifier: MIT
/* warm.c - see warm.h */
#include "organizer/warm.h"

#include "base/linux.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SMALL_PAGE 4096u
#define AT_ONCE    (4 * TBD_LARGE_PAGE) /* each call waits once for all processors */

struct tbd_warmer {
    pthread_t thread;
    uint8_t *start; /* multiples of TBD_LARGE_PAGE */
    uint8_t *end;
    uint32_t must_stop;
    uint32_t is_done;
};

/* A large page is collapsed from small ones: at least one must be present. */
static bool collapse(uint8_t *start, uint8_t *end)
{
    for (uint8_t *at = start; at < end; at += TBD_LARGE_PAGE)
        if (madvise(at, SMALL_PAGE, MADV_POPULATE_WRITE))
            return false;
    return !madvise(start, (size_t)(end - start), MADV_COLLAPSE);
}

static void *warm(void *context)
{
    struct tbd_warmer *warmer = context;
    uint8_t *at = warmer->start;

    while (at < warmer->end && !__atomic_load_n(&warmer->must_stop, __ATOMIC_RELAXED)) {
        uint8_t *next = (size_t)(warmer->end - at) > AT_ONCE ? at + AT_ONCE : warmer->end;

        if (!collapse(at, next))
            break;
        at = next;
    }
    __atomic_store_n(&warmer->is_done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static uint8_t *align_up(uint8_t *at)
{
    return at + -(uintptr_t)at % TBD_LARGE_PAGE;
}

struct tbd_warmer *tbd_warmer_start(uint8_t *start, uint8_t *end)
{
    struct tbd_warmer *warmer;
    uint8_t *from = align_up(start);
    uint8_t *to = end - (uintptr_t)end % TBD_LARGE_PAGE;

    if (from >= to)
        return NULL;
    warmer = malloc(sizeof(*warmer));
    if (!warmer)
        return NULL;
    *warmer = (struct tbd_warmer){ .start = from, .end = to };
    if (pthread_create(&warmer->thread, NULL, warm, warmer)) {
        free(warmer);
        return NULL;
    }
    return warmer;
}

bool tbd_warmer_is_done(const struct tbd_warmer *warmer)
{
    return __atomic_load_n(&warmer->is_done, __ATOMIC_ACQUIRE);
}

void tbd_warmer_free(struct tbd_warmer *warmer)
{
    if (!warmer)
        return;
    __atomic_store_n(&warmer->must_stop, 1, __ATOMIC_RELAXED);
    pthread_join(warmer->thread, NULL);
    free(warmer);
}
