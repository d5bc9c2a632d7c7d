// SPDX-License-Identifier: MIT
/* channels_private.h - what channels.c and file_writes.c share */
#ifndef TBD_QUERY_CHANNELS_PRIVATE_H
#define TBD_QUERY_CHANNELS_PRIVATE_H

#include "query/channels/channels.h"
#include "query/channels/descriptors.h"

struct tbd_channels {
    struct tbd_descriptors all;
    struct tbd_session **sessions; /* by process; all but the own one are owned */
};

/* A part of what was read, in a write. */
struct tbd_channel_part {
    const struct tbd_fd_transfer *write;
    uint64_t offset, bytes;
};

/* Nothing was found, for this reason. */
__attribute__((format(printf, 2, 3))) void tbd_channel_refuse(struct tbd_channel_answer *answer,
                                                              const char *format, ...);
/* Are `bytes` bytes from `at` on in the write those of `expected`?  TBD_NOTFOUND: they are others, or cannot be
 * known. */
TBD_MUST_CHECK enum tbd_status tbd_channel_compare(struct tbd_channels *channels,
                                                   const struct tbd_fd_transfer *write, uint64_t at,
                                                   const uint8_t *expected, uint64_t bytes);
/* Appends the places of the part in the writer's memory to the answer, as far as there is space. */
TBD_MUST_CHECK enum tbd_status tbd_channel_put_part(struct tbd_channels *channels,
                                                    const struct tbd_channel_part *part,
                                                    struct tbd_channel_answer *answer);

#endif
