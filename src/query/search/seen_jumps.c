// SPDX-License-Identifier: MIT
/* seen_jumps.c - see seen_jumps.h */
#include "query/search/seen_jumps.h"

#include <pthread.h>
#include <stdlib.h>

struct tbd_seen_jumps {
    pthread_mutex_t lock;
    uint64_t all[TBD_SEEN_MOST];
    size_t count;
    uint32_t windows;
    uint32_t searched
        []; /* by window: 1 + the number of places with which it was searched; 0: it was not */
};

struct tbd_seen_jumps *tbd_seen_jumps_new(uint32_t windows)
{
    struct tbd_seen_jumps *jumps =
        calloc(1, sizeof(*jumps) + (size_t)windows * sizeof(jumps->searched[0]));

    if (jumps == NULL)
        return NULL;
    pthread_mutex_init(&jumps->lock, NULL);
    jumps->windows = windows;
    return jumps;
}

void tbd_seen_jumps_free(struct tbd_seen_jumps *jumps)
{
    if (jumps == NULL)
        return;
    pthread_mutex_destroy(&jumps->lock);
    free(jumps);
}

size_t tbd_seen_jumps_count(struct tbd_seen_jumps *jumps)
{
    size_t count;

    if (jumps == NULL)
        return 0;
    pthread_mutex_lock(&jumps->lock);
    count = jumps->count;
    pthread_mutex_unlock(&jumps->lock);
    return count;
}

size_t tbd_seen_jumps_get(struct tbd_seen_jumps *jumps, uint64_t out[TBD_SEEN_MOST])
{
    size_t count;

    if (jumps == NULL)
        return 0;
    pthread_mutex_lock(&jumps->lock);
    count = jumps->count;
    for (size_t i = 0; i < count; i++)
        out[i] = jumps->all[i];
    pthread_mutex_unlock(&jumps->lock);
    return count;
}

bool tbd_seen_jumps_add(struct tbd_seen_jumps *jumps, uint64_t pc)
{
    bool is_there = false, has_space;

    pthread_mutex_lock(&jumps->lock);
    for (size_t i = 0; i < jumps->count; i++)
        is_there |= jumps->all[i] == pc;
    has_space = is_there || jumps->count < TBD_SEEN_MOST;
    if (!is_there && has_space)
        jumps->all[jumps->count++] = pc;
    pthread_mutex_unlock(&jumps->lock);
    return has_space;
}

void tbd_seen_jumps_mark(struct tbd_seen_jumps *jumps, uint32_t window, size_t count)
{
    uint32_t *searched = &jumps->searched[window];

    pthread_mutex_lock(&jumps->lock);
    if (*searched == 0 || *searched > count + 1)
        *searched = (uint32_t)count + 1;
    pthread_mutex_unlock(&jumps->lock);
}

bool tbd_seen_jumps_take_stale(struct tbd_seen_jumps *jumps, uint8_t *stale)
{
    bool has_some = false;

    pthread_mutex_lock(&jumps->lock);
    for (uint32_t i = 0; i < jumps->windows; i++) {
        stale[i] = jumps->searched[i] != 0 && jumps->searched[i] <= jumps->count;
        has_some |= stale[i];
        if (stale[i])
            jumps->searched[i] = 0;
    }
    pthread_mutex_unlock(&jumps->lock);
    return has_some;
}
