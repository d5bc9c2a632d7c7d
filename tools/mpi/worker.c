// SPDX-License-Identifier: MIT
/* worker.c - see worker.h */
#include "worker.h"

#include "shard_run.h"

#include <mpi.h>
#include <unistd.h>

#define ALIVE_SECONDS 0.25

static void send_bytes(int fd)
{
    static char piece[TBD_PIECE_BYTES];
    off_t at = 0;
    ssize_t got;

    while ((got = pread(fd, piece, sizeof(piece), at)) > 0) {
        MPI_Send(piece, (int)got, MPI_BYTE, 0, TBD_TAG_BYTES, MPI_COMM_WORLD);
        at += got;
    }
}

static int wait_alive(struct tbd_shard_run *run)
{
    double told = 0;
    int status;

    while (!tbd_shard_run_has_ended(run, &status)) {
        if (tbd_rank_now() - told > ALIVE_SECONDS) {
            MPI_Send(NULL, 0, MPI_BYTE, 0, TBD_TAG_ALIVE, MPI_COMM_WORLD);
            told = tbd_rank_now();
        }
        tbd_rank_rest();
    }
    return status;
}

void tbd_worker_run(const struct tbd_rank_options *options, bool *out_lost)
{
    int64_t shard = 0, done[2];
    struct tbd_shard_run run;

    for (;;) {
        MPI_Send(NULL, 0, MPI_BYTE, 0, TBD_TAG_ASK, MPI_COMM_WORLD);
        if (MPI_Recv(&shard, 1, MPI_INT64_T, 0, TBD_TAG_GIVE, MPI_COMM_WORLD, MPI_STATUS_IGNORE) !=
                MPI_SUCCESS ||
            shard <= 0) {
            *out_lost = shard == TBD_SHARD_LEAVE;
            return;
        }
        done[0] = shard;
        done[1] = TBD_EXIT_SYSTEM;
        if (tbd_shard_run_begin(&run, options, shard)) {
            done[1] = wait_alive(&run);
            send_bytes(run.fd);
            close(run.fd);
        }
        MPI_Send(done, 2, MPI_INT64_T, 0, TBD_TAG_DONE, MPI_COMM_WORLD);
    }
}
