// SPDX-License-Identifier: MIT
/* late_dump.c - see late_dump.h
 *
 * A collector whose program is dead ends by itself when the dump is written.  Nothing is asked of it. */
#include "query/triggers/late_dump.h"

#include "base/string.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 5, MOST_MS = 5000 };

static size_t read_file(const char *number, const char *name, char *out, size_t bytes)
{
    char path[64];
    FILE *file;
    size_t got;

    snprintf(path, sizeof(path), "/proc/%.16s/%s", number, name);
    file = fopen(path, "re");
    got = file ? fread(out, 1, bytes - 1, file) : 0;
    if (file)
        fclose(file);
    out[got] = '\0';
    return got;
}

/* In another namespace, numbers of processes are others. */
static bool is_of_our_numbers(const char *number)
{
    struct stat own, other;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%.16s/ns/pid", number);
    return stat(path, &other) == 0 && stat("/proc/self/ns/pid", &own) == 0 &&
           own.st_ino == other.st_ino;
}

/* "12 (any) name) Z parent group session terminal group flags ...": PF_EXITING of the kernel's sched.h, 4, is shown there. */
static bool is_exiting(const char *number)
{
    char text[512];
    const char *end =
        read_file(number, "stat", text, sizeof(text)) != 0 ? strrchr(text, ')') : NULL;
    unsigned flags = 0;
    char state = 'X';

    return !end || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2 ||
           state == 'Z' || state == 'X' || (flags & 4) != 0;
}

/* Whoever has sent SIGKILL need not wait until the other has noticed. */
static bool will_be_killed(const char *number)
{
    static const char name[] = "SigPnd:";
    char text[4096];
    const char *pending =
        read_file(number, "status", text, sizeof(text)) != 0 ? strstr(text, name) : NULL;

    return pending && strtoull(pending + sizeof(name) - 1, NULL, 16) >> (SIGKILL - 1) & 1;
}

static bool has_ended(unsigned long pid)
{
    char number[24];

    if (pid == 0 || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
        return pid != 0;
    snprintf(number, sizeof(number), "%lu", pid);
    return will_be_killed(number) || is_exiting(number);
}

static bool is_writing(const char *number)
{
    char name[32], line[8192];
    size_t got;
    bool has_rings = false;
    unsigned long pid = 0;

    if (read_file(number, "comm", name, sizeof(name)) == 0 ||
        strcmp(name, "tbd-organizer\n") != 0 || !is_of_our_numbers(number))
        return false;
    got = read_file(number, "cmdline", line, sizeof(line));
    for (size_t at = 0; at < got; at += strlen(line + at) + 1) {
        has_rings = has_rings || strcmp(line + at, "--crash") == 0;
        if (strcmp(line + at, "--pid") == 0 && at + sizeof("--pid") < got)
            pid = strtoul(line + at + sizeof("--pid"), NULL, 10);
    }
    return has_rings && has_ended(pid);
}

static bool is_any_writing(void)
{
    DIR *all = opendir("/proc");
    struct dirent *entry;
    struct stat info;
    bool found = false;

    while (all && !found && (entry = readdir(all)) != NULL)
        found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                fstatat(dirfd(all), entry->d_name, &info, 0) == 0 && info.st_uid == geteuid() &&
                is_writing(entry->d_name);
    if (all)
        closedir(all);
    return found;
}

void tbd_late_dump_await(void)
{
    const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };

    for (int waited = 0; waited < MOST_MS && is_any_writing(); waited += LOOK_MS)
        nanosleep(&pause, NULL);
}
