// SPDX-License-Identifier: MIT
/* channels.h - the writes that carried the bytes of a read, in this process or in another one
 *
 * The n-th byte that is read from a pipe is the n-th byte that was written to it, so counting finds the
 * write.  Where several processes or threads may have written at the same time, the bytes decide,
 * if only one order of the writes gives what was read.  What was found is compared with what was
 * read in any case.  When it cannot be known, the answer says why, in one line. */
#ifndef TBD_QUERY_CHANNELS_H
#define TBD_QUERY_CHANNELS_H

#include "query/session/session.h"

#define TBD_CHANNEL_PIECES_MAX 6u

struct tbd_channels;

/* Bytes in a writer's memory, just before the call that wrote them. */
struct tbd_channel_piece {
    uint32_t process;
    uint32_t thread;
    struct tbd_position at; /* of the call's instruction */
    uint64_t number;        /* of the system call */
    uint64_t address, bytes;
};

struct tbd_channel_answer {
    const char *kind; /* "a pipe"; NULL: no bytes from a channel were read there */
    struct tbd_channel_piece pieces[TBD_CHANNEL_PIECES_MAX]; /* in the order of the bytes */
    size_t count;
    char refusal[256]; /* why nothing was found; may be set without `kind` */
};

/* Reads the logs of all processes that were recorded together with `session`, which must outlive it. */
TBD_MUST_CHECK enum tbd_status tbd_channels_open(struct tbd_session *session,
                                                 struct tbd_channels **out);
void tbd_channels_close(struct tbd_channels *channels); /* NULL is fine */

/* What all processes did with their descriptors (descriptors.h); borrowed. */
struct tbd_descriptors;
const struct tbd_descriptors *tbd_channels_descriptors(const struct tbd_channels *channels);
/* The process of the session that it was opened with. */
uint32_t tbd_channels_own(const struct tbd_channels *channels);
uint32_t tbd_channels_pid(const struct tbd_channels *channels, uint32_t process);
const char *tbd_channels_trace(const struct tbd_channels *channels, uint32_t process);
/* The process's session, opened at the first use; borrowed. */
TBD_MUST_CHECK enum tbd_status tbd_channels_session(struct tbd_channels *channels, uint32_t process,
                                                    struct tbd_session **out);
/* The next session after `process` - 1 that was opened beside the own one; NULL: there is none. */
struct tbd_session *tbd_channels_opened(const struct tbd_channels *channels, uint32_t *process);

/* Where the bytes came from that the system call at `time` put into the process's memory. */
TBD_MUST_CHECK enum tbd_status tbd_channels_find(struct tbd_channels *channels, uint32_t process,
                                                 uint64_t time, uint64_t address, uint64_t bytes,
                                                 struct tbd_channel_answer *out);

#endif
