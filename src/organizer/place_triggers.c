// SPDX-License-Identifier: MIT
/* place_triggers.c - see place_triggers.h */
#include "organizer/place_triggers.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

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

static bool run(const char *path, char **argv)
{
    int status = 0;
    pid_t child;

    if (posix_spawn(&child, path, NULL, NULL, argv, environ) != 0)
        return false;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) != 127;
}

/* NAME=VALUE, to be freed; NULL: there is no value, or no memory. */
static char *setting(const char *name, const char *value)
{
    char *text = NULL;

    return value && asprintf(&text, "%s=%s", name, value) >= 0 ? text : NULL;
}

/* `set --stream-fd N [EXTRA] PID [trigger=TEXT] [parts=TEXT]` */
static bool run_tool(int stream_fd, pid_t pid, char *extra, const char *triggers, const char *parts)
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
    done = find_tool(path, sizeof(path)) && run(path, argv);
    free(settings[0]);
    free(settings[1]);
    return done;
}

void tbd_place_triggers(int stream_fd, pid_t pid, const char *triggers, const char *parts)
{
    if (!run_tool(stream_fd, pid, NULL, triggers, parts))
        fprintf(stderr,
                "tbd: tbd-probe does not run: there are no triggers, and no functions as parts\n"
                "tbd: hint: it must be beside tbd-organizer\n");
}

void tbd_place_triggers_again(int stream_fd, pid_t pid, const char *parts)
{
    static char again[] = "--again";

    (void)run_tool(stream_fd, pid, again, NULL, parts); /* if it does not run, it has been said */
}
