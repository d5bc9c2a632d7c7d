// SPDX-License-Identifier: MIT
/* probe_start.c - see probe_start.h */
#include "query/probe/probe_start.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIES  3000
#define TRY_NS 10000000L

/* `tbd` is beside this program. */
static _Noreturn void become_tbd(char **argv)
{
    char path[PATH_MAX], *slash;
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 5);

    if (length < 0)
        _exit(126);
    path[length] = '\0';
    slash = strrchr(path, '/');
    strcpy(slash + 1, "tbd");
    execv(path, argv);
    fprintf(stderr, "tbd probe: cannot run: %s: %s\n", path, strerror(errno));
    _exit(126);
}

static _Noreturn void become_armed(char **command)
{
    static char first[4][12] = { "tbd", "arm", "--wait=yes", "--" };
    size_t count = 0, at = 0;
    char **argv;

    while (command[count])
        count++;
    argv = calloc(count + 5, sizeof(*argv));
    if (!argv)
        _exit(126);
    for (; at < 4; at++)
        argv[at] = first[at];
    memcpy(argv + at, command, count * sizeof(*argv));
    become_tbd(argv);
}

static bool has_died(pid_t pid)
{
    siginfo_t info = { 0 };

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

bool tbd_probe_start_armed(char **command, pid_t *out, struct tbd_probe_client *client,
                           struct tbd_query_error *error)
{
    const struct timespec moment = { 0, TRY_NS };
    pid_t pid = fork();

    if (pid == 0)
        become_armed(command);
    if (pid < 0)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "cannot start: %s", strerror(errno));
    for (int i = 0; i < TRIES && !has_died(pid); i++) {
        struct tbd_query_error ignored = { 0 };

        *out = pid;
        if (tbd_client_connect(client, pid, &ignored))
            return true;
        nanosleep(&moment, NULL);
    }
    tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "the program is not armed");
    tbd_probe_end_armed(pid, true, 0);
    return false;
}

int tbd_probe_run_tbd(char **argv)
{
    int how = 0;
    pid_t pid = fork();

    if (pid == 0)
        become_tbd(argv);
    while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(how) ? WEXITSTATUS(how) : 126;
}

int tbd_probe_end_armed(pid_t pid, bool kills, int status)
{
    int how = 0;

    if (kills)
        kill(pid, SIGKILL);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
        ;
    if (status)
        return status;
    return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
}
