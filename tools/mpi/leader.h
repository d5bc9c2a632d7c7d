// SPDX-License-Identifier: MIT
/* leader.h - rank 0: gives shards to whoever asks for one, itself too, and has the answer printed
 *
 * A rank that has not been heard of for the patience has lost its shard: another one gets it. */
#ifndef TBD_MPI_LEADER_H
#define TBD_MPI_LEADER_H

#include "ranks.h"

/* The exit status; *out_lost: a rank is gone, and would be waited for. */
int tbd_leader_run(const struct tbd_rank_options *options, int ranks, bool *out_lost);

#endif
