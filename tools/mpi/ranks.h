// SPDX-License-Identifier: MIT
/* ranks.h - what rank 0 and the others say to each other, and what both know
 *
 *     worker  --ASK-->  rank 0  --GIVE shard | 0, TBD_SHARD_LEAVE: no more-->  worker
 *     worker  --ALIVE ... BYTES ... DONE {shard, status}-->  rank 0 */
#ifndef TBD_MPI_RANKS_H
#define TBD_MPI_RANKS_H

#include <stdbool.h>
#include <time.h>

enum { TBD_TAG_ASK = 1, TBD_TAG_GIVE, TBD_TAG_ALIVE, TBD_TAG_BYTES, TBD_TAG_DONE };
enum { TBD_EXIT_USAGE = 2, TBD_EXIT_SYSTEM = 4 }; /* of tbdq; more than the last: a signal ended it */

#define TBD_SHARD_LEAVE (-1) /* a rank is lost: leave without waiting for it */
#define TBD_PIECE_BYTES (1 << 20) /* of a message with bytes, at most */

struct tbd_rank_options {
    long shards; /* 0: by the number of ranks */
    double patience;
    bool report;
    char **words; /* for tbdq */
};

/* Seconds, since some moment. */
static inline double tbd_rank_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void tbd_rank_rest(void)
{
    const struct timespec idle = { 0, 1000000 };

    nanosleep(&idle, NULL);
}

#endif
