// SPDX-License-Identifier: MIT
/* tbdq-mpi.c - mpirun -n N tbdq-mpi [OPTION...] TBDQ-ARGUMENT...: one question, by many processes on many machines
 *
 * Rank 0 gives the shards of the run (`tbdq --shard K/M`) to whoever asks for one, itself too, collects their answers in files,
 * and has `tbdq unite` print the answer. Each shard is asked by a tbdq of its own, so nothing here knows traces, and tbdq knows
 * nothing of MPI (docs/adr/025-shards-and-a-process-for-each.md).
 *
 *     worker  --ASK-->  rank 0  --GIVE shard | 0: no more-->  worker
 *     worker  --ALIVE ... BYTES ... DONE {shard, status}-->  rank 0
 *
 * TBDQ_MPI-1  A shard counts as done only when all bytes of a whole answer have come from the rank that has it. A rank that has not
 *     been heard of for the patience has lost its shard: another one gets it, and what the first one may still send is dropped. (not checked: it is
 *     about other processes) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TAG_ASK = 1, TAG_GIVE, TAG_ALIVE, TAG_BYTES, TAG_DONE };
enum { EXIT_USAGE = 2, EXIT_TRACE = 3, EXIT_SYSTEM = 4 };

#define PIECE_BYTES   (1 << 20)
#define IDLE_NS       1000000
#define ALIVE_SECONDS 0.25
#define TRIES         3 /* of a shard whose tbdq was killed */
#define SHARDS_EACH   8 /* as many shards for each rank, unless --shards says otherwise */

extern char **environ;

struct rank_options {
    long shards; /* 0: by the number of ranks */
    double patience;
    bool report;
    char **words; /* for tbdq */
};

/* A tbdq at work. */
struct tbdq_run {
    pid_t pid; /* 0: none */
    int64_t shard;
    double began;
    int fd; /* what it prints */
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void rest(void)
{
    struct timespec idle = { 0, IDLE_NS };

    nanosleep(&idle, NULL);
}

/* ---- tbdq ---- */

/* The one beside this program; else the shell's. */
static char *tbdq_path(void)
{
    static char path[PATH_MAX], by_name[] = "tbdq";
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 8);

    if (length > 0) {
        path[length] = '\0';
        strcpy(strrchr(path, '/') + 1, "tbdq");
        if (access(path, X_OK) == 0)
            return path;
    }
    return by_name;
}

/* Starts tbdq with these words before the user's, printing to `out`; 0: it cannot. */
static pid_t start_tbdq(char *const *first, char *const *words, int out)
{
    size_t before = 0, count = 0;
    posix_spawn_file_actions_t actions;
    char **argv;
    pid_t pid = 0;

    while (first[before] != NULL)
        before++;
    while (words[count] != NULL)
        count++;
    argv = calloc(before + count + 2, sizeof(*argv));
    if (argv == NULL || posix_spawn_file_actions_init(&actions) != 0) {
        free(argv);
        return 0;
    }
    argv[0] = tbdq_path();
    memcpy(argv + 1, first, before * sizeof(*argv));
    memcpy(argv + 1 + before, words, count * sizeof(*argv));
    if (out != STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0)
        pid = 0;
    posix_spawn_file_actions_destroy(&actions);
    free(argv);
    return pid;
}

/* A file without a name. */
static int open_unnamed(void)
{
    FILE *file = tmpfile();
    int fd = file == NULL ? -1 : dup(fileno(file));

    if (file != NULL)
        fclose(file);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

static bool begin_child(struct tbdq_run *child, const struct rank_options *options, int64_t shard)
{
    char quiet[] = "-q", workers[] = "-j1", shards[] = "--shard", number[48];
    char *first[] = { quiet, workers, shards, number, NULL };

    snprintf(number, sizeof(number), "%" PRId64 "/%ld", shard, options->shards);
    *child = (struct tbdq_run){ .shard = shard, .began = now_s(), .fd = open_unnamed() };
    if (child->fd >= 0)
        child->pid = start_tbdq(first, options->words, child->fd);
    if (child->pid == 0 && child->fd >= 0)
        close(child->fd);
    return child->pid != 0;
}

/* True: it has ended, with *out_status; 128 and more: a signal ended it. */
static bool has_ended(struct tbdq_run *child, int *out_status)
{
    int status;

    if (waitpid(child->pid, &status, WNOHANG) != child->pid)
        return false;
    *out_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    child->pid = 0;
    return true;
}

/* ---- a worker ---- */

static void send_bytes(int fd)
{
    static char piece[PIECE_BYTES];
    off_t at = 0;
    ssize_t got;

    while ((got = pread(fd, piece, sizeof(piece), at)) > 0) {
        MPI_Send(piece, (int)got, MPI_BYTE, 0, TAG_BYTES, MPI_COMM_WORLD);
        at += got;
    }
}

static int wait_alive(struct tbdq_run *child)
{
    double told = 0;
    int status;

    while (!has_ended(child, &status)) {
        if (now_s() - told > ALIVE_SECONDS) {
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ALIVE, MPI_COMM_WORLD);
            told = now_s();
        }
        rest();
    }
    return status;
}

static void work(const struct rank_options *options)
{
    int64_t shard = 0, done[2];
    struct tbdq_run child;

    for (;;) {
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ASK, MPI_COMM_WORLD);
        if (MPI_Recv(&shard, 1, MPI_INT64_T, 0, TAG_GIVE, MPI_COMM_WORLD, MPI_STATUS_IGNORE) !=
                MPI_SUCCESS ||
            shard == 0)
            return;
        done[0] = shard;
        done[1] = EXIT_SYSTEM;
        if (begin_child(&child, options, shard)) {
            done[1] = wait_alive(&child);
            send_bytes(child.fd);
            close(child.fd);
        }
        MPI_Send(done, 2, MPI_INT64_T, 0, TAG_DONE, MPI_COMM_WORLD);
    }
}

/* ---- rank 0 ---- */

struct shard {
    int owner; /* rank; -1: nobody */
    int tries;
    bool is_done;
};

struct rank {
    int64_t shard; /* 0: none */
    double heard, began;
    int fd; /* of the bytes so far; -1: none */
    bool is_dead, is_dismissed, asks;
};

struct master {
    const struct rank_options *options;
    struct shard *shards; /* by number - 1 */
    struct rank *ranks;
    int rank_count;
    long left; /* shards that are not done */
    char folder[PATH_MAX];
    bool is_wrong; /* tbdq does not take the question */
    struct tbdq_run own;
};

static void shard_path(const struct master *m, int64_t shard, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s/%08" PRId64, m->folder, shard);
}

/* 0: there is none. */
static int64_t next_shard(const struct master *m)
{
    for (long i = 0; i < m->options->shards; i++)
        if (!m->shards[i].is_done && m->shards[i].owner < 0)
            return i + 1;
    return 0;
}

static bool copy_file(int from, const char *path)
{
    static char piece[PIECE_BYTES];
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    off_t at = 0;
    ssize_t got;
    bool good = to >= 0;

    while (good && (got = pread(from, piece, sizeof(piece), at)) != 0) {
        good = got > 0 && write(to, piece, (size_t)got) == got;
        at += got;
    }
    if (to >= 0)
        close(to);
    if (!good)
        unlink(path);
    return good;
}

/* Keeps TBDQ_MPI-1.  A killed tbdq is tried again; if that does not help the shard is missing, and `unite` says so. */
static void end_shard(struct master *m, int64_t number, int rank, int status, int fd)
{
    struct shard *shard = &m->shards[number - 1];
    char path[PATH_MAX + 32];

    if (shard->is_done || shard->owner != rank)
        return;
    shard->owner = -1;
    shard->tries++;
    if (status == EXIT_USAGE)
        m->is_wrong = true;
    shard_path(m, number, path, sizeof(path));
    shard->is_done = (status <= EXIT_SYSTEM && fd >= 0 && copy_file(fd, path)) ||
                     shard->tries >= TRIES || status == EXIT_USAGE;
    m->left -= shard->is_done;
}

static void report(const struct master *m, int64_t shard, int rank, double began, int fd)
{
    if (m->options->report)
        fprintf(stderr, "tbdq-mpi: shard %" PRId64 " rank %d seconds %.4f bytes %lld\n", shard,
                rank, now_s() - began, (long long)lseek(fd, 0, SEEK_END));
}

/* ---- rank 0: its own shards ---- */

static void work_here(struct master *m)
{
    int64_t shard;
    int status;

    if (m->own.pid != 0) {
        if (!has_ended(&m->own, &status))
            return;
        report(m, m->own.shard, 0, m->own.began, m->own.fd);
        end_shard(m, m->own.shard, 0, status, m->own.fd);
        close(m->own.fd);
    }
    shard = m->is_wrong ? 0 : next_shard(m);
    if (shard == 0)
        return;
    m->shards[shard - 1].owner = 0;
    if (!begin_child(&m->own, m->options, shard))
        end_shard(m, shard, 0, EXIT_SYSTEM + 1, -1);
}

/* ---- rank 0: the others ---- */

static void give(struct master *m, int number, int64_t shard)
{
    struct rank *rank = &m->ranks[number];

    rank->asks = false;
    rank->shard = shard;
    rank->began = rank->heard = now_s();
    rank->is_dismissed = shard == 0;
    if (shard != 0)
        m->shards[shard - 1].owner = number;
    MPI_Send(&shard, 1, MPI_INT64_T, number, TAG_GIVE, MPI_COMM_WORLD);
}

static void take_bytes(struct rank *rank, const char *bytes, int count)
{
    if (rank->fd < 0)
        rank->fd = open_unnamed();
    if (rank->fd >= 0 && write(rank->fd, bytes, (size_t)count) != count) {
        close(rank->fd);
        rank->fd = -1;
    }
}

static void take_done(struct master *m, int number, const int64_t done[2])
{
    struct rank *rank = &m->ranks[number];

    if (done[0] >= 1 && done[0] <= m->options->shards && done[1] >= 0 && done[1] < 256) {
        report(m, done[0], number, rank->began, rank->fd);
        end_shard(m, done[0], number, (int)done[1], rank->fd);
    }
    if (rank->fd >= 0)
        close(rank->fd);
    rank->fd = -1;
    rank->shard = 0;
}

static void take_message(struct master *m, const MPI_Status *status)
{
    static char piece[PIECE_BYTES];
    struct rank *rank = &m->ranks[status->MPI_SOURCE];
    int count = 0;

    MPI_Get_count(status, MPI_BYTE, &count);
    if (count > (int)sizeof(piece) ||
        MPI_Recv(piece, count, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return;
    rank->heard = now_s();
    rank->is_dead = false;
    switch (status->MPI_TAG) {
    case TAG_ASK: rank->asks = true; break;
    case TAG_BYTES: take_bytes(rank, piece, count); break;
    case TAG_DONE:
        if (count == 2 * (int)sizeof(int64_t)) {
            int64_t done[2];

            memcpy(done, piece, sizeof(done));
            take_done(m, status->MPI_SOURCE, done);
        }
        break;
    default: break; /* TAG_ALIVE */
    }
}

static bool listen_once(struct master *m)
{
    MPI_Status status;
    int there = 0;

    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS ||
        !there)
        return false;
    take_message(m, &status);
    return true;
}

static void look_after(struct master *m)
{
    for (int i = 1; i < m->rank_count; i++) {
        struct rank *rank = &m->ranks[i];
        int64_t shard = m->is_wrong ? 0 : next_shard(m);

        if (rank->asks && (shard != 0 || m->left == 0 || m->is_wrong))
            give(m, i, shard);
        if (rank->is_dead || rank->is_dismissed || now_s() - rank->heard < m->options->patience)
            continue;
        rank->is_dead = true;
        fprintf(stderr, "tbdq-mpi: rank %d is not heard of any more%s\n", i,
                rank->shard != 0 ? "; others take its shard" : "");
        if (rank->shard != 0 && m->shards[rank->shard - 1].owner == i)
            m->shards[rank->shard - 1].owner = -1;
        rank->shard = 0;
    }
}

static bool are_all_gone(const struct master *m)
{
    for (int i = 1; i < m->rank_count; i++)
        if (!m->ranks[i].is_dead && !m->ranks[i].is_dismissed)
            return false;
    return true;
}

static void run_shards(struct master *m)
{
    while (m->own.pid != 0 || (m->left != 0 && !m->is_wrong) || !are_all_gone(m)) {
        bool busy = listen_once(m);

        work_here(m);
        look_after(m);
        if (!busy)
            rest();
    }
}

/* ---- the answer ---- */

static int unite(const struct master *m)
{
    char name[] = "unite";
    char *first[] = { name, NULL };
    char **files = calloc((size_t)m->options->shards + 1, sizeof(*files));
    char path[PATH_MAX + 32];
    size_t count = 0;
    int status = EXIT_SYSTEM << 8;
    pid_t pid;

    for (long i = 0; files != NULL && i < m->options->shards; i++) {
        shard_path(m, i + 1, path, sizeof(path));
        if (access(path, R_OK) == 0)
            files[count++] = strdup(path);
    }
    pid = count == 0 ? 0 : start_tbdq(first, files, STDOUT_FILENO);
    if (pid != 0)
        waitpid(pid, &status, 0);
    for (size_t i = 0; i < count; i++) {
        unlink(files[i]);
        free(files[i]);
    }
    free(files);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SYSTEM;
}

static bool make_folder(char *out, size_t bytes)
{
    const char *parent = getenv("TMPDIR");

    return snprintf(out, bytes, "%s/tbdq-mpi-XXXXXX", parent == NULL ? "/tmp" : parent) <
               (int)bytes &&
           mkdtemp(out) != NULL;
}

/* The exit status; *out_lost: a rank is gone, and would be waited for. */
static int lead(const struct rank_options *options, int rank_count, bool *out_lost)
{
    struct master m = { .options = options, .rank_count = rank_count, .left = options->shards };
    int status = EXIT_SYSTEM;

    m.shards = calloc((size_t)options->shards, sizeof(*m.shards));
    m.ranks = calloc((size_t)rank_count, sizeof(*m.ranks));
    if (m.shards == NULL || m.ranks == NULL || !make_folder(m.folder, sizeof(m.folder))) {
        fprintf(stderr, "tbdq-mpi: cannot begin: %s\n", strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, EXIT_SYSTEM);
    }
    for (long i = 0; i < options->shards; i++)
        m.shards[i].owner = -1;
    for (int i = 0; i < rank_count; i++) {
        m.ranks[i].fd = -1;
        m.ranks[i].heard = now_s();
    }
    run_shards(&m);
    status = m.is_wrong ? EXIT_USAGE : unite(&m);
    for (int i = 1; i < rank_count; i++)
        *out_lost |= m.ranks[i].is_dead;
    rmdir(m.folder);
    free(m.shards);
    free(m.ranks);
    return status;
}

/* ---- main ---- */

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
    return out == stdout ? 0 : EXIT_USAGE;
}

/* -1: go on; otherwise the exit status. */
static int read_options(char **argv, struct rank_options *options, bool speaks)
{
    *options = (struct rank_options){ .patience = 10 };
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
    return *argv == NULL ? speaks ? usage(stderr) : EXIT_USAGE : -1;
}

int main(int argc, char **argv)
{
    struct rank_options options;
    int rank = 0, ranks = 1, status;
    bool has_lost = false;

    if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return EXIT_SYSTEM;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    status = read_options(argv + 1, &options, rank == 0);
    if (options.shards == 0)
        options.shards = (long)ranks * SHARDS_EACH;
    if (status < 0 && rank == 0)
        status = lead(&options, ranks, &has_lost);
    else if (status < 0) {
        work(&options);
        status = 0;
    }
    if (has_lost) { /* MPI_Finalize() would wait for it */
        fflush(NULL);
        _exit(status);
    }
    MPI_Finalize();
    return status;
}
