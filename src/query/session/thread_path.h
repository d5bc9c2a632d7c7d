// SPDX-License-Identifier: MIT
/* thread_path.h - the blocks that one thread entered, in order, with the calls and returns that end them
 *
 * For commands that walk along the program from a position: the part around it is kept, and grows as it is asked for, twice as much
 * each time. */
#ifndef TBD_QUERY_THREAD_PATH_H
#define TBD_QUERY_THREAD_PATH_H

#include "query/session/session.h"

enum tbd_path_end { TBD_PATH_GOES_ON = 0, TBD_PATH_CALLS, TBD_PATH_RETURNS };

struct tbd_path_block {
    uint64_t time;
    uint64_t slot;    /* CALLS: where the return address goes; RETURNS: where it lies */
    uint64_t handles; /* a signal handler's first block: where its return address lies; else 0 */
    uint32_t id;
    uint32_t insns; /* how many of its instructions ran, or began to */
    enum tbd_path_end end;
};

struct tbd_path {
    struct tbd_session *session;   /* borrowed */
    struct tbd_path_block *blocks; /* owned */
    size_t count;
    uint64_t from, to; /* the times that `blocks` covers: [from, to) */
    uint64_t chunk;    /* how many times are taken next */
    uint32_t thread;
};

void tbd_path_start(struct tbd_path *path, struct tbd_session *session, uint32_t thread,
                    uint64_t time);
void tbd_path_free(struct tbd_path *path);

/* The thread's block entered at `time`, or the first one after it; the last one before `time`.
 * TBD_NOTFOUND: there is none.  *out is borrowed until the next call. */
TBD_MUST_CHECK enum tbd_status tbd_path_from(struct tbd_path *path, uint64_t time,
                                             const struct tbd_path_block **out);
TBD_MUST_CHECK enum tbd_status tbd_path_before(struct tbd_path *path, uint64_t time,
                                               const struct tbd_path_block **out);

#endif
