// SPDX-License-Identifier: MIT
/* unlinked_files.c - see unlinked_files.h
 *
 * Only the beginning of a large file is sent: this matters only for the last window of a killed
 * program, which is not worth a gigabyte.  Of deleted files native play needs more, because nobody can copy them: its
 * replays execute what is there. */
#include "hooks/memory/unlinked_files.h"

#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/recording.h"

#define MOST_BYTES (4ull << 20)
#define MOST_MUCH  (256ull << 20)
/* File times may be some milliseconds late. */
#define SECOND 1000000000ull

/* struct stat in words of 8 bytes. */
enum { STAT_LINKS = 2, STAT_MODE = 3, STAT_SIZE = 6, STAT_MODIFIED = 11, STAT_WORDS = 18 };

static bool is_recent(const uint64_t *stat)
{
    if ((stat[STAT_MODE] & S_IFMT) != S_IFREG)
        return false;
    return !stat[STAT_LINKS] || stat[STAT_MODIFIED] * SECOND + stat[STAT_MODIFIED + 1] + SECOND >=
                                    tbd_recording.realtime_ns;
}

static bool is_wanted(const struct tbd_msg_region *map)
{
    return tbd_recording_has_pages() && !(map->flags & TBD_REGION_SHARED) && map->prot & PROT_READ;
}

/* Up to the file's end.  Pages that were written in this window have been in the trace since the mapping could be
 * written. */
static void send_up_to(struct tbd_thread *thread, uint64_t start, uint64_t bytes)
{
    for (uint64_t at = start; at < start + bytes; at += TBD_PAGE_SIZE)
        if (!tbd_pages_is_changed(&tbd_memory.pages, at) &&
            !tbd_window_send_first(&tbd_recording.ring, thread, &tbd_memory.pages, at))
            return;
}

static void send_much(struct tbd_thread *thread, uint64_t start, uint64_t bytes)
{
    send_up_to(thread, start, bytes < MOST_MUCH ? bytes : MOST_MUCH);
    if (bytes > MOST_MUCH)
        tbd_recording_note(1, "of %lu MB of a mapped file that changes, the first %lu are recorded",
                           bytes >> 20, (unsigned long)(MOST_MUCH >> 20));
}

static void send(struct tbd_thread *thread, uint64_t start, uint64_t bytes)
{
    send_up_to(thread, start, bytes < MOST_BYTES ? bytes : MOST_BYTES);
}

static void send_unlinked(struct tbd_thread *thread, uint64_t start, uint64_t bytes)
{
    if (tbd_memory.pages.omits_stores)
        send_much(thread, start, bytes);
    else
        send(thread, start, bytes);
}

static bool has_copy(const struct tbd_msg_region *map)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++) {
        const struct tbd_msg_region *other = &regions->table[i].map;

        if (other->prot & PROT_EXEC && other->inode == map->inode && other->device == map->device)
            return true;
    }
    return false;
}

static bool may_be_written(const struct tbd_msg_region *map)
{
    return tbd_memory.pages.omits_stores && map->inode && map->prot & PROT_WRITE &&
           is_wanted(map) && !has_copy(map);
}

/* Sends what a range has of files that may be written, and with `all` of every file. */
static void send_range(struct tbd_thread *thread, uint64_t start, uint64_t end, bool all)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;
        uint64_t from = map->start > start ? map->start : start;
        uint64_t bytes = (map->end < end ? map->end : end) - from;

        if (may_be_written(map))
            send_much(thread, from, bytes);
        else if (all && map->inode && is_wanted(map))
            send(thread, from, bytes);
    }
}

void tbd_written_files_send(struct tbd_thread *thread, uint64_t start, uint64_t end)
{
    send_range(thread, start, end, false);
}

/* As /proc/self/maps says it; a file that is there may have such a name as well. */
static bool is_unlinked(const struct tbd_mapped_region *region)
{
    static const char end[] = " (deleted)";
    size_t length = strlen(region->path), end_length = sizeof(end) - 1;

    return region->map.inode && !(region->map.map_flags & MAP_SHARED) && length > end_length &&
           memcmp(region->path + length - end_length, end, end_length) == 0;
}

void tbd_unlinked_files_send_mapped(struct tbd_thread *thread)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;

        if (is_unlinked(&regions->table[i]) && is_wanted(map))
            send_unlinked(thread, map->start, map->end - map->start);
    }
}

void tbd_unlinked_files_send(struct tbd_thread *thread, const struct tbd_msg_region *map, int fd)
{
    uint64_t stat[STAT_WORDS];
    uint64_t bytes;

    if (!is_wanted(map) ||
        tbd_sys_failed(tbd_sys3(__NR_fstat, (uint64_t)(unsigned)fd, tbd_sys_pointer(stat), 0)) ||
        !is_recent(stat) || stat[STAT_SIZE] <= map->file_offset)
        return;
    bytes = stat[STAT_SIZE] - map->file_offset;
    bytes = bytes < map->end - map->start ? bytes : map->end - map->start;
    if (stat[STAT_LINKS])
        send(thread, map->start, bytes);
    else
        send_unlinked(thread, map->start, bytes);
}

void tbd_unlinked_files_send_again(struct tbd_thread *thread, uint64_t start, uint64_t end)
{
    send_range(thread, start, end, true);
}
