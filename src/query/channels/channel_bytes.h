// SPDX-License-Identifier: MIT
/* channel_bytes.h - the bytes that a call moved: where they lay in memory, and what they were */
#ifndef TBD_QUERY_CHANNEL_BYTES_H
#define TBD_QUERY_CHANNEL_BYTES_H

#include "query/session/session.h"
#include "query/channels/descriptors.h"

struct tbd_bytes_span {
    uint64_t address, bytes;
};

/* Where the bytes of a call lie, in order: memory that the caller frees. */
struct tbd_bytes_layout {
    struct tbd_bytes_span *spans; /* owned */
    size_t count;
};

/* The position of the call's instruction, where the program has not made the call yet. */
TBD_MUST_CHECK enum tbd_status tbd_bytes_position(struct tbd_session *session,
                                                  const struct tbd_fd_transfer *transfer,
                                                  struct tbd_position *out);
/* Only the bytes that were moved. */
TBD_MUST_CHECK enum tbd_status tbd_bytes_layout(struct tbd_session *session,
                                                const struct tbd_fd_transfer *transfer,
                                                struct tbd_bytes_layout *out);
/* Where byte `offset` of the call lies, and how many of the next ones follow it there. */
bool tbd_bytes_place(const struct tbd_bytes_layout *layout, uint64_t offset,
                     struct tbd_bytes_span *out);
/* The first of the bytes in [address, address + bytes) that the call moved, as an offset in the call, and
 * how many follow. */
bool tbd_bytes_find(const struct tbd_bytes_layout *layout, uint64_t address, uint64_t bytes,
                    uint64_t *out_offset, uint64_t *out_bytes);

/* What a write has written: [offset, offset + bytes) of the call. */
TBD_MUST_CHECK enum tbd_status tbd_bytes_written(struct tbd_session *session,
                                                 const struct tbd_fd_transfer *transfer,
                                                 uint64_t offset, uint8_t *out, size_t bytes);
/* All that a read has read, from the log; the caller frees it.  TBD_NOTKEPT: the log does not have it. */
TBD_MUST_CHECK enum tbd_status
tbd_bytes_read(struct tbd_session *session, const struct tbd_fd_transfer *transfer, uint8_t **out);

#endif
