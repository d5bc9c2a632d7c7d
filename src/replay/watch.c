// SPDX-License-Identifier: MIT
/* watch.c - see watch.h
 *
 * Limits are generous: the slowest known replays take a tenth of the time.  They end a process that
 * loops, sleeps, or fills memory. */
#include "replay/watch.h"

#include "replay/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK_MS     100
#define BASE_SECONDS 60    /* of processor time; half as many without any progress */
#define NS_PER_BLOCK 10000 /* of processor time, for each block entry */
#define PAUSE_MS     5000  /* after such a pause, tbdq itself was stopped */

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Counts as 0 if the clock cannot be read. */
static uint64_t used_ns(const struct tbd_process_watch *watch)
{
    struct timespec used;

    if (clock_gettime(watch->clock, &used))
        return 0;
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* TBD_REPLAY_SECONDS is for tests. */
static uint64_t base_seconds(void)
{
    const char *set = getenv("TBD_REPLAY_SECONDS");

    return set && *set ? strtoull(set, NULL, 10) : BASE_SECONDS;
}

/* Half of the machine's memory, or TBD_REPLAY_MEMORY megabytes (for tests). */
static uint64_t most_bytes(void)
{
    const char *set = getenv("TBD_REPLAY_MEMORY");
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    if (set && *set)
        return strtoull(set, NULL, 10) << 20;
    return pages > 0 && page > 0 ? (uint64_t)pages / 2 * (uint64_t)page : 0;
}

void tbd_watch_begin(struct tbd_process_watch *watch, pid_t pid, uint64_t blocks)
{
    if (watch->pid != pid)
        *watch = (struct tbd_process_watch){ .pid = pid, .most_bytes = most_bytes() };
    if (!watch->clock && clock_getcpuclockid(pid, &watch->clock))
        watch->clock = 0;
    watch->used_ns = used_ns(watch);
    watch->most_ns = watch->used_ns + base_seconds() * 1000000000 + blocks * NS_PER_BLOCK;
    watch->most_idle_ms = base_seconds() * 500;
    watch->idle_ms = now_ms();
    watch->next_ms = watch->idle_ms + CHECK_MS;
}

static uint64_t resident_bytes(const struct tbd_process_watch *watch)
{
    unsigned long size, resident = 0;
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)watch->pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static enum tbd_status check(struct tbd_process_watch *watch, uint64_t now, struct tbd_error *why)
{
    uint64_t used = used_ns(watch);

    if (used != watch->used_ns || now - watch->next_ms > PAUSE_MS)
        watch->idle_ms = now;
    watch->used_ns = used;
    watch->next_ms = now + CHECK_MS;
    if (used > watch->most_ns)
        return tbd_process_error(why, TBD_STUBDIED,
                                 "it takes more processor time than its window can");
    if (now - watch->idle_ms > watch->most_idle_ms)
        return tbd_process_error(why, TBD_STUBDIED, "no progress for %lu seconds",
                                 watch->most_idle_ms / 1000);
    if (watch->most_bytes && resident_bytes(watch) > watch->most_bytes)
        return tbd_process_error(why, TBD_STUBDIED, "it takes more than %lu MB of memory",
                                 watch->most_bytes >> 20);
    return TBD_OK;
}

enum tbd_status tbd_watch_check(struct tbd_process_watch *watch, struct tbd_error *why)
{
    uint64_t now = now_ms();

    return now < watch->next_ms ? TBD_OK : check(watch, now, why);
}
