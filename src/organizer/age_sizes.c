// SPDX-License-Identifier: MIT
/* age_sizes.c - what a growing trace takes on disk
 *
 * Windows are counted as they are added and changed (AGE-1, see age.c); other files are measured
 * now and then, more often near a limit. */
#include "organizer/age_private.h"

#include "format/files/file_names.h"
#include "format/merging/replayed_events.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Other files are measured again after this many windows, or when windows have taken this part of
 * the free space. */
#define MEASURE_WINDOWS 16u
#define MEASURE_SHARE   16u

uint64_t tbd_age_bytes(const struct tbd_age_limits *limits)
{
    uint64_t budget = limits->budget, keep = limits->keep_bytes;

    return !budget || (keep && keep < budget) ? keep : budget;
}

uint64_t tbd_age_window_bytes(const struct tbd_disk_window *window)
{
    return window->toc_bytes + window->trace_bytes + window->block_bytes;
}

/* Its stops, which are written before it is. */
uint64_t tbd_age_stops_bytes(const struct tbd_ager *ager, const struct tbd_disk_window *window)
{
    struct stat status;
    char name[64];

    if (!ager->limits.only_drops)
        return 0;
    tbd_stops_file_name(window->window, name, sizeof(name));
    return fstatat(tbd_writer_dir(ager->writer), name, &status, AT_SYMLINK_NOFOLLOW)
               ? 0
               : (uint64_t)status.st_size;
}

static uint64_t folder_bytes(int of, const char *folder, uint32_t *out_files)
{
    struct dirent *entry;
    struct stat status;
    uint64_t bytes = 0;
    DIR *dir = tbd_dir_list(of, folder);

    while (dir && (entry = readdir(dir)))
        if (strcmp(entry->d_name, "index") != 0 && strcmp(entry->d_name, "blocks") != 0 &&
            !fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
            S_ISREG(status.st_mode)) {
            bytes += (uint64_t)status.st_size;
            ++*out_files;
        }
    if (dir)
        closedir(dir);
    return bytes;
}

uint64_t tbd_ager_fixed_bytes(const struct tbd_ager *ager)
{
    return ager->other + ager->cache + ager->keys_expected + tbd_writer_bytes(ager->writer);
}

uint64_t tbd_ager_window_bytes(const struct tbd_ager *ager)
{
    return ager->levels[TBD_LEVEL_BITS].bytes + ager->levels[TBD_LEVEL_COUNTS].bytes +
           ager->levels[TBD_LEVEL_EVENTS].bytes;
}

uint64_t tbd_ager_total_bytes(const struct tbd_ager *ager)
{
    return tbd_ager_fixed_bytes(ager) + tbd_ager_window_bytes(ager);
}

void tbd_ager_measure_others_locked(struct tbd_ager *ager)
{
    int dir = tbd_writer_dir(ager->writer);
    uint32_t files = 0;
    uint64_t limit = tbd_age_bytes(&ager->limits);
    uint64_t other = folder_bytes(dir, ".", &files) + folder_bytes(dir, "modules", &files);

    ager->key_files = 0;
    ager->keys = folder_bytes(dir, "keys", &ager->key_files);
    other += ager->keys;
    ager->other = other;
    ager->cache = folder_bytes(dir, "cache", &files);
    if (ager->cache < tbd_cache_share(limit))
        ager->cache = tbd_cache_share(limit);
    ager->measured_bytes = tbd_ager_window_bytes(ager);
    ager->measured_windows = 0;
}

/* Is the limit far away, even if other files have grown as much as windows did? */
static bool is_far(const struct tbd_ager *ager, uint64_t limit)
{
    uint64_t total = tbd_ager_total_bytes(ager),
             grown = tbd_ager_window_bytes(ager) - ager->measured_bytes;

    return !limit || (total < limit && grown < (limit - total) / MEASURE_SHARE);
}

/* Measuring every file takes as long as writing a window, and everybody waits, as the lock is
 * taken. */
void tbd_ager_measure_if_near_locked(struct tbd_ager *ager)
{
    if (!ager->other || ++ager->measured_windows == MEASURE_WINDOWS ||
        tbd_ager_window_bytes(ager) < ager->measured_bytes || !is_far(ager, ager->limits.budget) ||
        !is_far(ager, ager->limits.keep_bytes))
        tbd_ager_measure_others_locked(ager);
}

void tbd_ager_count_window(struct tbd_ager *ager, const struct tbd_aged_window *window, int sign)
{
    struct tbd_aged_level *level =
        &ager->levels[window->disk.level < TBD_AGED_LEVELS ? window->disk.level : 0];

    level->bytes += (uint64_t)sign * window->bytes;
    level->count += (uint32_t)sign;
}

/* Each window is counted at its level. */
bool tbd_ager_windows_follow(const struct tbd_ager *ager)
{
    uint64_t bytes = 0;
    uint32_t counts[4] = { 0 };

    for (size_t i = 0; i < ager->count; i++) {
        bytes += ager->windows[i].bytes;
        counts[ager->windows[i].disk.level & 3]++;
    }
    return bytes == tbd_ager_window_bytes(ager) && counts[1] == ager->levels[1].count &&
           counts[2] == ager->levels[2].count && counts[3] == ager->levels[3].count;
}
