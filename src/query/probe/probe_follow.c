// SPDX-License-Identifier: MIT
/* probe_follow.c - see probe_follow.h */
#include "query/probe/probe_follow.h"

#include "query/probe/probe_client.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG         4
#define AWAIT_MS        3000
#define FIELD_ARG_START 48

/* Where the program's arguments begin (proc(5), stat): another place after each execve.  0: not known. */
static uint64_t read_mark(pid_t pid)
{
    char path[64], line[4096] = "";
    FILE *stat;
    char *at;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    stat = fopen(path, "re");
    if (stat && !fgets(line, sizeof(line), stat))
        line[0] = '\0';
    if (stat)
        fclose(stat);
    at = strrchr(line, ')');
    for (int field = 2; at && field < FIELD_ARG_START; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

void tbd_follow_begin(struct tbd_follower *follower, pid_t pid)
{
    *follower = (struct tbd_follower){ .pid = pid, .listener = -1, .connection = -1 };
    follower->mark = read_mark(pid);
}

static void stop_listening(struct tbd_follower *follower)
{
    if (follower->listener >= 0)
        close(follower->listener);
    follower->listener = -1;
}

void tbd_follow_listen(struct tbd_follower *follower)
{
    struct tbd_query_error ignored = { 0 };
    struct sockaddr_un address;
    socklen_t length = 0;

    if (!tbd_client_address(follower->pid, true, &address, &length, &ignored))
        return;
    follower->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (follower->listener >= 0 &&
        (bind(follower->listener, (struct sockaddr *)&address, length) != 0 ||
         listen(follower->listener, BACKLOG) != 0))
        stop_listening(follower);
}

bool tbd_follow_executes(struct tbd_follower *follower)
{
    uint64_t now = read_mark(follower->pid), before = follower->mark;

    if (now)
        follower->mark = now;
    return before && now && now != before;
}

bool tbd_follow_program(const struct tbd_follower *follower, char *out, size_t bytes)
{
    char path[64];
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/exe", (int)follower->pid);
    length = readlink(path, out, bytes - 1);
    if (length >= 0)
        out[length] = '\0';
    return length >= 0;
}

/* Its environment has the library: it will say that it waits. */
static bool is_under_tbd(pid_t pid)
{
    char path[64], *word = NULL;
    size_t capacity = 0;
    bool found = false;
    FILE *words;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    words = fopen(path, "re");
    while (words && !found && getdelim(&word, &capacity, '\0', words) > 0)
        found = strncmp(word, "LD_PRELOAD=", 11) == 0 && strstr(word, "libtbd") != NULL;
    if (words)
        fclose(words);
    free(word);
    return found;
}

bool tbd_follow_await(struct tbd_follower *follower)
{
    struct pollfd wanted = { .fd = follower->listener, .events = POLLIN };

    if (follower->listener >= 0 && is_under_tbd(follower->pid) && poll(&wanted, 1, AWAIT_MS) > 0)
        follower->connection = accept4(follower->listener, NULL, NULL, SOCK_CLOEXEC);
    stop_listening(follower);
    return follower->connection >= 0;
}

void tbd_follow_go_on(struct tbd_follower *follower)
{
    if (follower->connection >= 0)
        close(follower->connection);
    follower->connection = -1;
}

void tbd_follow_end(struct tbd_follower *follower)
{
    tbd_follow_go_on(follower);
    stop_listening(follower);
}
