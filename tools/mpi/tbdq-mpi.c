// SPDX-License-Identifier: MIT
/* tbdq-mpi.c - mpirun -n N tbdq-mpi [OPTION...] TBDQ-ARGUMENT...: one question, by many processes on many machines
 *
 * Rank 0 gives the shards of the run (`tbdq --shard K/M`) to whoever asks for one (leader.h), itself too, collects their answers
 * in files (shard_table.h), and has `tbdq unite` print the answer.  The others ask shards (worker.h).  Each shard is asked by a
 * tbdq of its own (shard_run.h), so nothing here knows traces, and tbdq knows nothing of MPI
 * (docs/adr/025-shards-and-a-process-for-each.md). */
#include "leader.h"
#include "worker.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARDS_EACH 8 /* as many shards for each rank, unless --shards says otherwise */

static int usage(FILE *out)
{
    fputs(
        "usage: mpirun -n N tbdq-mpi [--shards M] [--patience SECONDS] [--report] TBDQ-ARGUMENT...\n\n"
        "  --shards M          parts of the run (default: 8 for each rank)\n"
        "  --patience SECONDS  a rank that is not heard of for so long is gone (default 10)\n"
        "  --report            say which rank had which shard, for how long\n"
        "  --help, --version\n\n"
        "The arguments are those of tbdq: options and a question that takes --shard.\n",
        out);
    return out == stdout ? 0 : TBD_EXIT_USAGE;
}

/* -1: go on; otherwise the exit status. */
static int read_options(char **argv, struct tbd_rank_options *options, bool speaks)
{
    *options = (struct tbd_rank_options){ .patience = 10 };
    for (; *argv != NULL && strncmp(*argv, "--", 2) == 0; argv++) {
        if (strcmp(*argv, "--report") == 0) {
            options->report = true;
        } else if (strcmp(*argv, "--shards") == 0 && argv[1] != NULL) {
            options->shards = strtol(*++argv, NULL, 10);
            if (options->shards < 1 || options->shards > 1000000)
                return usage(stderr);
        } else if (strcmp(*argv, "--patience") == 0 && argv[1] != NULL) {
            options->patience = strtod(*++argv, NULL);
            if (!(options->patience >= 1))
                return usage(stderr);
        } else if (strcmp(*argv, "--help") == 0) {
            return speaks ? usage(stdout) : 0;
        } else if (strcmp(*argv, "--version") == 0) {
            if (speaks)
                puts("tbdq-mpi " TBD_VERSION);
            return 0;
        } else {
            break; /* an option of tbdq */
        }
    }
    options->words = argv;
    return *argv == NULL ? speaks ? usage(stderr) : TBD_EXIT_USAGE : -1;
}

int main(int argc, char **argv)
{
    struct tbd_rank_options options;
    int rank = 0, ranks = 1, status;
    bool has_lost = false;

    if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return TBD_EXIT_SYSTEM;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    status = read_options(argv + 1, &options, rank == 0);
    if (options.shards == 0)
        options.shards = (long)ranks * SHARDS_EACH;
    if (status < 0 && rank == 0)
        status = tbd_leader_run(&options, ranks, &has_lost);
    else if (status < 0) {
        tbd_worker_run(&options, &has_lost);
        status = 0;
    }
    if (has_lost) { /* MPI_Finalize() would wait for it */
        fflush(NULL);
        _exit(status);
    }
    MPI_Finalize();
    return status;
}
