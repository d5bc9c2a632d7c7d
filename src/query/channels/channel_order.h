// SPDX-License-Identifier: MIT
/* channel_order.h - the transfers of a channel, by the threads that made them, and which may be next */
#ifndef TBD_QUERY_CHANNEL_ORDER_H
#define TBD_QUERY_CHANNEL_ORDER_H

#include "query/channels/descriptors.h"

#define TBD_CHANNEL_TRACKS_MAX 32u

/* One thread's transfers in one direction, in order. */
struct tbd_channel_track {
    uint32_t process, thread;
    const struct tbd_fd_transfer **items; /* owned; borrowed from the descriptors */
    size_t count, capacity;
};

struct tbd_channel_tracks {
    const struct tbd_descriptors *all; /* borrowed */
    struct tbd_channel_track tracks[TBD_CHANNEL_TRACKS_MAX];
    size_t count;
    bool is_too_many;
};

/* Those that move bytes, and `also`, which may be NULL.  Free the tracks in any case. */
TBD_MUST_CHECK enum tbd_status tbd_channel_tracks_make(const struct tbd_descriptors *all,
                                                       uint32_t channel, bool is_write,
                                                       const struct tbd_fd_transfer *also,
                                                       struct tbd_channel_tracks *out);
void tbd_channel_tracks_free(struct tbd_channel_tracks *tracks);

/* The tracks whose next transfer, after next[], no other transfer that is left must come before; their
 * number. */
size_t tbd_channel_may_be_next(const struct tbd_channel_tracks *tracks, const uint32_t *next,
                               uint32_t *out);

#endif
