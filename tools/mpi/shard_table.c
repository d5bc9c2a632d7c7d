// SPDX-License-Identifier: MIT
/* shard_table.c - see shard_table.h */
#include "shard_table.h"

#include "shard_run.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 3 /* of a shard whose tbdq was killed */

static bool make_folder(char *out, size_t bytes)
{
    const char *parent = getenv("TMPDIR");

    return snprintf(out, bytes, "%s/tbdq-mpi-XXXXXX", parent == NULL ? "/tmp" : parent) <
               (int)bytes &&
           mkdtemp(out) != NULL;
}

static void answer_path(const struct tbd_shard_table *table, int64_t shard, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s/%08" PRId64, table->folder, shard);
}

bool tbd_shard_table_init(struct tbd_shard_table *table, long count)
{
    *table = (struct tbd_shard_table){ .count = count, .left = count };
    table->all = calloc((size_t)count, sizeof(*table->all));
    if (table->all == NULL)
        return false;
    for (long i = 0; i < count; i++)
        table->all[i].owner = -1;
    if (make_folder(table->folder, sizeof(table->folder)))
        return true;
    free(table->all);
    return false;
}

void tbd_shard_table_free(struct tbd_shard_table *table)
{
    char path[PATH_MAX + 32];

    for (long i = 0; i < table->count; i++) {
        answer_path(table, i + 1, path, sizeof(path));
        (void)unlink(path);
    }
    rmdir(table->folder);
    free(table->all);
}

/* ---- who has which ---- */

static bool is_free(const struct tbd_shard_state *shard)
{
    return !shard->is_done && shard->owner < 0;
}

int64_t tbd_shard_table_next(struct tbd_shard_table *table)
{
    if (table->is_wrong)
        return 0;
    while (table->free_from < table->count && !is_free(&table->all[table->free_from]))
        table->free_from++;
    return table->free_from < table->count ? table->free_from + 1 : 0;
}

void tbd_shard_table_give(struct tbd_shard_table *table, int64_t shard, int owner)
{
    table->all[shard - 1].owner = owner;
}

void tbd_shard_table_take_back(struct tbd_shard_table *table, int64_t shard, int owner)
{
    struct tbd_shard_state *state = &table->all[shard - 1];

    if (state->is_done || state->owner != owner)
        return;
    state->owner = -1;
    if (table->free_from > shard - 1)
        table->free_from = shard - 1;
}

/* ---- answers ---- */

static bool copy_file(int from, const char *path)
{
    static char piece[TBD_PIECE_BYTES];
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

/* Keeps SHARD_TABLE-1.  A killed tbdq is tried again; if that does not help the shard is missing, and `unite` says so. */
void tbd_shard_table_end(struct tbd_shard_table *table, int64_t shard, int owner, int status,
                         int fd)
{
    struct tbd_shard_state *state = &table->all[shard - 1];
    char path[PATH_MAX + 32];

    if (state->is_done || state->owner != owner)
        return;
    state->tries++;
    if (status == TBD_EXIT_USAGE)
        table->is_wrong = true;
    answer_path(table, shard, path, sizeof(path));
    state->is_done = (status <= TBD_EXIT_SYSTEM && fd >= 0 && copy_file(fd, path)) ||
                     state->tries >= TRIES || status == TBD_EXIT_USAGE;
    table->left -= state->is_done;
    tbd_shard_table_take_back(table, shard, owner);
}

/* The answers that are there; NULL without memory. */
static char **answer_paths(const struct tbd_shard_table *table, size_t *out_count)
{
    char **paths = calloc((size_t)table->count + 1, sizeof(*paths));
    char path[PATH_MAX + 32];

    *out_count = 0;
    for (long i = 0; paths != NULL && i < table->count; i++) {
        answer_path(table, i + 1, path, sizeof(path));
        if (access(path, R_OK) == 0)
            paths[(*out_count)++] = strdup(path);
    }
    return paths;
}

int tbd_shard_table_unite(const struct tbd_shard_table *table)
{
    char name[] = "unite";
    char *first[] = { name, NULL };
    size_t count;
    char **paths = answer_paths(table, &count);
    pid_t pid = count == 0 ? 0 : tbd_shard_run_tbdq(first, paths, STDOUT_FILENO);
    int status = TBD_EXIT_SYSTEM << 8;

    if (pid != 0)
        waitpid(pid, &status, 0);
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    return WIFEXITED(status) ? WEXITSTATUS(status) : TBD_EXIT_SYSTEM;
}
