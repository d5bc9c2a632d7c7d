// SPDX-License-Identifier: MIT
/* processors.c - see processors.h
 *
 * PROCESSORS-1  What cannot be read is no limit. (not checked: test_processors does) */
#include "base/processors.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS     "/sys/fs/cgroup"
#define PATH_BYTES 4096
/* CPU_SETSIZE is less than large machines have. */
#define PROCESSORS_MAX 8192

/* The control group of this process, below GROUPS; "" is the root. */
static bool own_group(char path[PATH_BYTES])
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_BYTES];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file))
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = 0;
            strcpy(path, line[4] ? line + 3 : "");
            found = true;
        }
    if (file)
        fclose(file);
    return found;
}

/* cpu.max has two numbers of microseconds: processor time, and the period in which it may be used.  Rounded up. */
static uint64_t limit_of(const char *group)
{
    char path[PATH_BYTES + 64];
    unsigned long long time = 0, period = 0;
    FILE *file;
    int count;

    snprintf(path, sizeof(path), GROUPS "%s/cpu.max", group);
    file = fopen(path, "re");
    if (!file)
        return UINT64_MAX;
    count = fscanf(file, "%llu %llu", &time, &period); /* "max" is no number, and no limit */
    fclose(file);
    return count == 2 && period ? time / period + (time % period != 0) : UINT64_MAX;
}

/* Keeps PROCESSORS-1. */
static uint64_t limit_of_groups(void)
{
    char group[PATH_BYTES], *slash = group;
    uint64_t least = UINT64_MAX, limit;

    if (!own_group(group))
        return least;
    while (slash) {
        limit = limit_of(group);
        if (limit < least)
            least = limit;
        slash = strrchr(group, '/');
        if (slash)
            *slash = 0;
    }
    return least;
}

static unsigned allowed_processors(void)
{
    cpu_set_t *set = CPU_ALLOC(PROCESSORS_MAX);
    int count = 0;

    if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(PROCESSORS_MAX), set) == 0)
        count = CPU_COUNT_S(CPU_ALLOC_SIZE(PROCESSORS_MAX), set);
    CPU_FREE(set);
    return count < 1 ? 1 : (unsigned)count;
}

unsigned tbd_processors(void)
{
    const char *text = getenv("TBD_PROCESSORS");
    long assumed = text ? strtol(text, NULL, 10) : 0;
    unsigned allowed;
    uint64_t limit;

    if (assumed >= 1 && assumed <= PROCESSORS_MAX)
        return (unsigned)assumed;
    allowed = allowed_processors();
    limit = limit_of_groups();
    if (limit == 0)
        return 1;
    return limit < allowed ? (unsigned)limit : allowed;
}
