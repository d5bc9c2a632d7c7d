// SPDX-License-Identifier: MIT
/* shard_run.h - a tbdq that asks one shard */
#ifndef TBD_MPI_SHARD_RUN_H
#define TBD_MPI_SHARD_RUN_H

#include "ranks.h"

#include <stdint.h>
#include <sys/types.h>

struct tbd_shard_run {
    pid_t pid; /* 0: none */
    int64_t shard;
    double began;
    int fd; /* what it prints */
};

/* Starts tbdq with these words before the user's, printing to `out`; 0: it cannot. */
pid_t tbd_shard_run_tbdq(char *const *first, char *const *words, int out);
/* A file without a name; -1: there is none. */
int tbd_shard_run_file(void);
/* False: it cannot be started, and nothing is open. */
bool tbd_shard_run_begin(struct tbd_shard_run *run, const struct tbd_rank_options *options,
                         int64_t shard);
/* True: it has ended, with *out_status; 128 and more: a signal ended it. */
bool tbd_shard_run_has_ended(struct tbd_shard_run *run, int *out_status);

#endif
