// SPDX-License-Identifier: MIT
/* worker.h - a rank other than 0: asks shards, one after the other */
#ifndef TBD_MPI_WORKER_H
#define TBD_MPI_WORKER_H

#include "ranks.h"

/* Returns when rank 0 has no more; *out_lost: a rank is gone, and would be waited for. */
void tbd_worker_run(const struct tbd_rank_options *options, bool *out_lost);

#endif
