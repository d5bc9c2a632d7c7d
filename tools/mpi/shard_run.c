// SPDX-License-Identifier: MIT
/* shard_run.c - see shard_run.h */
#include "shard_run.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

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

pid_t tbd_shard_run_tbdq(char *const *first, char *const *words, int out)
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

int tbd_shard_run_file(void)
{
    FILE *file = tmpfile();
    int fd = file == NULL ? -1 : dup(fileno(file));

    if (file != NULL)
        fclose(file);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

bool tbd_shard_run_begin(struct tbd_shard_run *run, const struct tbd_rank_options *options,
                         int64_t shard)
{
    char quiet[] = "-q", workers[] = "-j1", shards[] = "--shard", number[48];
    char *first[] = { quiet, workers, shards, number, NULL };

    snprintf(number, sizeof(number), "%" PRId64 "/%ld", shard, options->shards);
    *run = (struct tbd_shard_run){ .shard = shard,
                                   .began = tbd_rank_now(),
                                   .fd = tbd_shard_run_file() };
    if (run->fd >= 0)
        run->pid = tbd_shard_run_tbdq(first, options->words, run->fd);
    if (run->pid == 0 && run->fd >= 0)
        close(run->fd);
    return run->pid != 0;
}

bool tbd_shard_run_has_ended(struct tbd_shard_run *run, int *out_status)
{
    int status;

    if (waitpid(run->pid, &status, WNOHANG) != run->pid)
        return false;
    *out_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run->pid = 0;
    return true;
}
