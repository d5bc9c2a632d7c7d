// SPDX-License-Identifier: MIT
/* ring_reach.c - stretches of a thread's entries (dump_rings.h)
 *
 * A dump has a thread's newest entries as they are, and may have hundreds of times as many before them, condensed
 * (format/stream/condensed.h).  All that is made of entries takes memory for each; so a stretch is looked at. */
#include "query/rings/dump_rings.h"

#include <stdlib.h>
#include <string.h>

#define REACH (2u << 20) /* entries before and after the one that is asked for */

/* The newest ones keep their steps: what is computed from them may be kept for long. */
static void leave(struct tbd_rings_thread *thread)
{
    if (thread->after == 0)
        thread->newest.walked = thread->walked;
    else
        tbd_rings_free_steps(&thread->walked);
    thread->walked = (struct tbd_rings_walked){ .steps = NULL };
    free(thread->reached);
    thread->reached = NULL;
}

static void reach_newest(struct tbd_rings_thread *thread)
{
    leave(thread);
    thread->entries = thread->newest.entries;
    thread->count = thread->newest.count;
    thread->walked = thread->newest.walked;
    thread->newest.walked = (struct tbd_rings_walked){ .steps = NULL };
    thread->after = 0;
}

/* Entries [first, end) of all that the thread has, the oldest being 0. */
static enum tbd_status reach_older(struct tbd_rings *ring, struct tbd_rings_thread *thread,
                                   uint64_t first, uint64_t end)
{
    uint64_t condensed = (end < thread->older ? end : thread->older) - first;
    uint32_t *entries = malloc((end - first) * sizeof(*entries));
    enum tbd_status status = TBD_NOMEM;

    if (entries != NULL)
        status = tbd_crash_older(&ring->dump, (uint32_t)(thread - ring->threads), first, condensed,
                                 entries);
    if (status != TBD_OK) {
        free(entries);
        return status;
    }
    memcpy(entries + condensed, thread->newest.entries,
           (end - first - condensed) * sizeof(*entries));
    leave(thread);
    thread->entries = thread->reached = entries;
    thread->count = end - first;
    thread->after = thread->older + thread->newest.count - end;
    return TBD_OK;
}

enum tbd_status tbd_rings_reach(struct tbd_rings *ring, struct tbd_rings_thread *thread,
                                uint64_t back)
{
    uint64_t all = thread->older + thread->newest.count, at, end;

    if (back == 0 || back > all)
        return TBD_NOTFOUND;
    if (tbd_rings_has(thread, back) && (thread->after == 0 || back > thread->newest.count))
        return TBD_OK;
    if (back <= thread->newest.count) {
        reach_newest(thread);
        return TBD_OK;
    }
    at = all - back;
    end = all - at > REACH ? at + REACH : all - 1; /* one at least is after it */
    return reach_older(ring, thread, at > REACH ? at - REACH : 0, end);
}

enum tbd_status tbd_rings_find_older(const struct tbd_rings *ring,
                                     const struct tbd_rings_thread *thread, const bool *wanted,
                                     uint64_t *back)
{
    uint64_t all = thread->older + thread->newest.count;
    uint64_t at = *back < all ? all - *back : 0;
    enum tbd_status status =
        tbd_crash_find_older(&ring->dump, (uint32_t)(thread - ring->threads), wanted, &at);

    if (status == TBD_OK)
        *back = all - at;
    return status;
}
