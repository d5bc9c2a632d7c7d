// SPDX-License-Identifier: MIT
/* channel_order.c - see channel_order.h
 *
 * A call that returned before another one was made comes before it.  Calls of two threads or two
 * processes during which neither is known to have ended may have moved their bytes in either order. */
#include "query/channels/channel_order.h"

#include "base/array.h"

#include <stdlib.h>

static struct tbd_channel_track *track_of(struct tbd_channel_tracks *tracks, uint32_t process,
                                          uint32_t thread)
{
    for (size_t i = 0; i < tracks->count; i++) {
        if (tracks->tracks[i].process == process && tracks->tracks[i].thread == thread)
            return &tracks->tracks[i];
    }
    if (tracks->count == TBD_CHANNEL_TRACKS_MAX)
        return NULL;
    tracks->tracks[tracks->count] =
        (struct tbd_channel_track){ .process = process, .thread = thread };
    return &tracks->tracks[tracks->count++];
}

enum tbd_status tbd_channel_tracks_make(const struct tbd_descriptors *all, uint32_t channel,
                                        bool is_write, const struct tbd_fd_transfer *also,
                                        struct tbd_channel_tracks *out)
{
    bool counts_empty = all->channels[channel].is_messages;

    *out = (struct tbd_channel_tracks){ .all = all };
    for (size_t i = 0; i < all->transfer_count; i++) {
        const struct tbd_fd_transfer *item = &all->transfers[i];
        struct tbd_channel_track *track;

        if (item->channel != channel || item->is_write != is_write)
            continue;
        if (item != also && (item->peeks || (item->bytes == 0 && !counts_empty)))
            continue;
        track = track_of(out, item->process, item->thread);
        if (track == NULL) {
            out->is_too_many = true;
            return TBD_OK;
        }
        if (!tbd_array_grow(&track->items, track->count, &track->capacity, sizeof(*track->items)))
            return TBD_NOMEM;
        track->items[track->count++] = item;
    }
    return TBD_OK;
}

void tbd_channel_tracks_free(struct tbd_channel_tracks *tracks)
{
    for (size_t i = 0; i < tracks->count; i++)
        free(tracks->tracks[i].items);
    *tracks = (struct tbd_channel_tracks){ .all = NULL };
}

size_t tbd_channel_may_be_next(const struct tbd_channel_tracks *tracks, const uint32_t *next,
                               uint32_t *out)
{
    size_t count = 0;

    for (uint32_t i = 0; i < tracks->count; i++) {
        const struct tbd_fd_transfer *item;
        bool may = next[i] < tracks->tracks[i].count;

        item = may ? tracks->tracks[i].items[next[i]] : NULL;
        for (uint32_t k = 0; may && k < tracks->count; k++) {
            const struct tbd_fd_transfer *other;

            if (k == i || next[k] >= tracks->tracks[k].count)
                continue;
            other = tracks->tracks[k].items[next[k]];
            may = !tbd_descriptors_precedes(tracks->all, other->process, other->order,
                                            item->process, item->began_order);
        }
        if (may)
            out[count++] = i;
    }
    return count;
}
