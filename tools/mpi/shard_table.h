// SPDX-License-Identifier: MIT
/* shard_table.h - rank 0's list of shards: who has which, and their answers as files
 *
 * SHARD_TABLE-1  A shard is done only when all bytes of a whole answer have come from the rank that owns it: what another one still
 *     sends, which had it before, is dropped. (not checked: it is about other processes) */
#ifndef TBD_MPI_SHARD_TABLE_H
#define TBD_MPI_SHARD_TABLE_H

#include "ranks.h"

#include <limits.h>
#include <stdint.h>

struct tbd_shard_state {
    int owner; /* rank; -1: nobody */
    int tries;
    bool is_done;
};

struct tbd_shard_table {
    struct tbd_shard_state *all; /* owned; by number - 1 */
    long count, left;            /* shards that are not done */
    long free_from;              /* before it all have an owner, or are done */
    char folder[PATH_MAX];       /* of the answers */
    bool is_wrong;               /* tbdq does not take the question */
};

/* False: it cannot, see errno. */
bool tbd_shard_table_init(struct tbd_shard_table *table, long count);
/* With the files. */
void tbd_shard_table_free(struct tbd_shard_table *table);

/* A shard without an owner; 0: there is none, or none is wanted. */
int64_t tbd_shard_table_next(struct tbd_shard_table *table);
void tbd_shard_table_give(struct tbd_shard_table *table, int64_t shard, int owner);
/* The owner is gone. */
void tbd_shard_table_take_back(struct tbd_shard_table *table, int64_t shard, int owner);
/* The owner's tbdq has ended with `status`, and has printed what is in `fd` (-1: nothing). */
void tbd_shard_table_end(struct tbd_shard_table *table, int64_t shard, int owner, int status,
                         int fd);
/* Prints the answer; the exit status. */
int tbd_shard_table_unite(const struct tbd_shard_table *table);

#endif
