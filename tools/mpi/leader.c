// SPDX-License-Identifier: MIT
/* leader.c - see leader.h */
#include "leader.h"

#include "shard_run.h"
#include "shard_table.h"

#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rank {
    int64_t shard; /* 0: none */
    double heard, began;
    int fd; /* of the bytes so far; -1: none */
    bool is_dead, is_dismissed, asks;
};

struct leader {
    const struct tbd_rank_options *options;
    struct tbd_shard_table table;
    struct rank *ranks; /* owned */
    int rank_count;
    struct tbd_shard_run own;
};

static void report(const struct leader *leader, int64_t shard, int rank, double began, int fd)
{
    if (leader->options->report)
        fprintf(stderr, "tbdq-mpi: shard %" PRId64 " rank %d seconds %.4f bytes %lld\n", shard,
                rank, tbd_rank_now() - began, (long long)lseek(fd, 0, SEEK_END));
}

/* ---- its own shards ---- */

static void work_here(struct leader *leader)
{
    struct tbd_shard_run *own = &leader->own;
    int64_t shard;
    int status;

    if (own->pid != 0) {
        if (!tbd_shard_run_has_ended(own, &status))
            return;
        report(leader, own->shard, 0, own->began, own->fd);
        tbd_shard_table_end(&leader->table, own->shard, 0, status, own->fd);
        close(own->fd);
    }
    shard = tbd_shard_table_next(&leader->table);
    if (shard == 0)
        return;
    tbd_shard_table_give(&leader->table, shard, 0);
    if (!tbd_shard_run_begin(own, leader->options, shard))
        tbd_shard_table_end(&leader->table, shard, 0, TBD_EXIT_SYSTEM + 1, -1);
}

/* ---- the others ---- */

/* `shard` 0 or TBD_SHARD_LEAVE: there are no more. */
static void give(struct leader *leader, int number, int64_t shard)
{
    struct rank *rank = &leader->ranks[number];

    rank->asks = false;
    rank->shard = shard;
    rank->began = rank->heard = tbd_rank_now();
    rank->is_dismissed = shard <= 0;
    if (shard > 0)
        tbd_shard_table_give(&leader->table, shard, number);
    MPI_Send(&shard, 1, MPI_INT64_T, number, TBD_TAG_GIVE, MPI_COMM_WORLD);
}

static void take_bytes(struct rank *rank, const char *bytes, int count)
{
    if (rank->fd < 0)
        rank->fd = tbd_shard_run_file();
    if (rank->fd >= 0 && write(rank->fd, bytes, (size_t)count) != count) {
        close(rank->fd);
        rank->fd = -1;
    }
}

static void take_done(struct leader *leader, int number, const int64_t done[2])
{
    struct rank *rank = &leader->ranks[number];

    if (done[0] >= 1 && done[0] <= leader->table.count && done[1] >= 0 && done[1] < 256) {
        report(leader, done[0], number, rank->began, rank->fd);
        tbd_shard_table_end(&leader->table, done[0], number, (int)done[1], rank->fd);
    }
    if (rank->fd >= 0)
        close(rank->fd);
    rank->fd = -1;
    rank->shard = 0;
}

static void take_message(struct leader *leader, const MPI_Status *status)
{
    static char piece[TBD_PIECE_BYTES];
    struct rank *rank = &leader->ranks[status->MPI_SOURCE];
    int64_t done[2];
    int count = 0;

    MPI_Get_count(status, MPI_BYTE, &count);
    if (count > (int)sizeof(piece) ||
        MPI_Recv(piece, count, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return;
    rank->heard = tbd_rank_now();
    rank->is_dead = false;
    if (status->MPI_TAG == TBD_TAG_ASK)
        rank->asks = true;
    else if (status->MPI_TAG == TBD_TAG_BYTES)
        take_bytes(rank, piece, count);
    if (status->MPI_TAG != TBD_TAG_DONE || count != (int)sizeof(done))
        return;
    memcpy(done, piece, sizeof(done));
    take_done(leader, status->MPI_SOURCE, done);
}

static bool listen_once(struct leader *leader)
{
    MPI_Status status;
    int there = 0;

    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS ||
        !there)
        return false;
    take_message(leader, &status);
    return true;
}

static void lose(struct leader *leader, int number)
{
    struct rank *rank = &leader->ranks[number];

    rank->is_dead = true;
    fprintf(stderr, "tbdq-mpi: rank %d is not heard of any more%s\n", number,
            rank->shard != 0 ? "; others take its shard" : "");
    if (rank->shard != 0)
        tbd_shard_table_take_back(&leader->table, rank->shard, number);
    rank->shard = 0;
}

/* What a rank gets that asks for another shard when there are no more: only when all wait for it is it known whether one is lost, for which
 * MPI_Finalize() would wait for ever.  False: not yet. */
static bool is_time_to_leave(const struct leader *leader, int64_t *out_shard)
{
    *out_shard = 0;
    if (leader->table.left != 0 && !leader->table.is_wrong)
        return false;
    for (int i = 1; i < leader->rank_count; i++) {
        const struct rank *rank = &leader->ranks[i];

        if (!rank->asks && !rank->is_dead && !rank->is_dismissed)
            return false;
        if (rank->is_dead)
            *out_shard = TBD_SHARD_LEAVE;
    }
    return true;
}

static void look_after(struct leader *leader)
{
    for (int i = 1; i < leader->rank_count; i++) {
        struct rank *rank = &leader->ranks[i];
        int64_t shard = tbd_shard_table_next(&leader->table);

        if (rank->asks && (shard != 0 || is_time_to_leave(leader, &shard)))
            give(leader, i, shard);
        if (!rank->is_dead && !rank->is_dismissed && !rank->asks &&
            tbd_rank_now() - rank->heard >= leader->options->patience)
            lose(leader, i);
    }
}

static bool are_all_gone(const struct leader *leader)
{
    for (int i = 1; i < leader->rank_count; i++)
        if (!leader->ranks[i].is_dead && !leader->ranks[i].is_dismissed)
            return false;
    return true;
}

static void run_shards(struct leader *leader)
{
    const struct tbd_shard_table *table = &leader->table;

    while (leader->own.pid != 0 || (table->left != 0 && !table->is_wrong) ||
           !are_all_gone(leader)) {
        bool is_busy = listen_once(leader);

        work_here(leader);
        look_after(leader);
        if (!is_busy)
            tbd_rank_rest();
    }
}

int tbd_leader_run(const struct tbd_rank_options *options, int ranks, bool *out_lost)
{
    struct leader leader = { .options = options, .rank_count = ranks };
    int status;

    leader.ranks = calloc((size_t)ranks, sizeof(*leader.ranks));
    if (leader.ranks == NULL || !tbd_shard_table_init(&leader.table, options->shards)) {
        fprintf(stderr, "tbdq-mpi: cannot begin: %s\n", strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, TBD_EXIT_SYSTEM);
    }
    for (int i = 0; i < ranks; i++) {
        leader.ranks[i].fd = -1;
        leader.ranks[i].heard = tbd_rank_now();
    }
    run_shards(&leader);
    status = leader.table.is_wrong ? TBD_EXIT_USAGE : tbd_shard_table_unite(&leader.table);
    for (int i = 1; i < ranks; i++)
        *out_lost |= leader.ranks[i].is_dead;
    tbd_shard_table_free(&leader.table);
    free(leader.ranks);
    return status;
}
