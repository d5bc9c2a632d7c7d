// SPDX-License-Identifier: MIT
/* place_triggers.c - see place_triggers.h */
#include "organizer/place_triggers.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP_MS = 20 };

extern char **environ;

/* The tool that looks again whenever a byte comes, and keeps what it has read of the modules. */
static struct finder {
    pid_t pid; /* 0: there is none */
    int fd;    /* a socket */
} finder;

/* Beside this program. */
static bool find_tool(char *path, size_t bytes)
{
    static const char tool[] = "tbd-probe";
    ssize_t length = readlink("/proc/self/exe", path, bytes - sizeof(tool));
    char *slash;

    if (length <= 0)
        return false;
    path[length] = '\0';
    slash = strrchr(path, '/');
    if (!slash)
        return false;
    strcpy(slash + 1, tool);
    return true;
}

/* ---- the tool, once or as long as somebody asks it ---- */

static void await_end(pid_t child, int *status)
{
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
}

static bool run(const char *path, char **argv)
{
    int status = 0;
    pid_t child;

    if (posix_spawn(&child, path, NULL, NULL, argv, environ) != 0)
        return false;
    await_end(child, &status);
    return WIFEXITED(status) && WEXITSTATUS(status) != 127;
}

static void end_finder(void)
{
    int status;

    if (!finder.pid)
        return;
    close(finder.fd);
    kill(finder.pid, SIGKILL); /* our child, not waited for: nobody else has its number */
    await_end(finder.pid, &status);
    finder = (struct finder){ 0 };
}

/* Its stdin is a socket that it reads and answers. */
static bool start(const char *path, char **argv)
{
    posix_spawn_file_actions_t actions;
    int ends[2];
    bool done;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    done = posix_spawn(&finder.pid, path, &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    finder.fd = ends[0];
    if (!done)
        close(ends[0]);
    if (!done)
        finder.pid = 0;
    return done;
}

/* NAME=VALUE, to be freed; NULL: there is no value, or no memory. */
static char *setting(const char *name, const char *value)
{
    char *text = NULL;

    return value && asprintf(&text, "%s=%s", name, value) >= 0 ? text : NULL;
}

/* `set --stream-fd N [EXTRA] PID [trigger=TEXT] [parts=TEXT]` */
static bool with_tool(bool (*use)(const char *path, char **argv), int stream_fd, pid_t pid,
                      char *extra, const char *triggers, const char *parts)
{
    char path[PATH_MAX], fd[16], number[16];
    static char set[] = "set", option[] = "--stream-fd";
    char *settings[2] = { setting("trigger", triggers), setting("parts", parts) };
    char *argv[8] = { set, option, fd };
    unsigned count = 3;
    bool done;

    snprintf(fd, sizeof(fd), "%d", stream_fd);
    snprintf(number, sizeof(number), "%d", (int)pid);
    if (extra)
        argv[count++] = extra;
    argv[count++] = number;
    for (unsigned i = 0; i < 2; i++)
        if (settings[i])
            argv[count++] = settings[i];
    done = find_tool(path, sizeof(path)) && use(path, argv);
    free(settings[0]);
    free(settings[1]);
    return done;
}

void tbd_place_triggers(int stream_fd, pid_t pid, const char *triggers, const char *parts)
{
    if (!with_tool(run, stream_fd, pid, NULL, triggers, parts))
        fprintf(stderr,
                "tbd: tbd-probe does not run: there are no triggers, and no functions as parts\n"
                "tbd: hint: it must be beside tbd-organizer\n");
}

/* ---- looking again ---- */

static bool send_byte(void)
{
    const uint8_t look = 1;

    return finder.pid && send(finder.fd, &look, 1, MSG_NOSIGNAL) == 1;
}

/* One that nobody has asked for a while has ended. */
static bool ask_finder(int stream_fd, pid_t pid, const char *parts)
{
    static char again[] = "--again";

    if (send_byte())
        return true;
    end_finder();
    return with_tool(start, stream_fd, pid, again, NULL, parts) && send_byte();
}

/* 1: it has answered, 0: not yet, -1: it has ended. */
static int await_answer(void)
{
    struct pollfd fd = { .fd = finder.fd, .events = POLLIN };
    uint8_t answer;
    int ready = poll(&fd, 1, STEP_MS);

    if (ready <= 0)
        return ready == 0 || errno == EINTR ? 0 : -1;
    return recv(finder.fd, &answer, 1, 0) == 1 ? 1 : -1;
}

bool tbd_place_triggers_again(int stream_fd, pid_t pid, const char *parts,
                              bool (*is_interrupted)(void *context), void *context)
{
    int answer = 0;

    if (!ask_finder(stream_fd, pid, parts))
        return true; /* that it does not run has been said */
    while (answer == 0 && !is_interrupted(context))
        answer = await_answer();
    if (answer != 1)
        end_finder();
    return answer != 0;
}

void tbd_place_triggers_end(void)
{
    end_finder();
}
