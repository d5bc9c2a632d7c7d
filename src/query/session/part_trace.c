// SPDX-License-Identifier: MIT
/* part_trace.c - see part_trace.h
 *
 * Such traces are kept below `cache` of the recording's folder, as FROM-TO.windows, a few of them. */
#include "query/session/part_trace.h"

#include "base/open_file.h"
#include "format/files/file.h"
#include "format/files/trace_remove.h"
#include "format/trace/trace_handle.h"
#include "replay/native/count_stops.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CACHE     "cache"
#define SUFFIX    ".windows"
#define KEPT_MOST 3u

bool tbd_part_find(struct tbd_counted_part *part, const char *path)
{
    const struct tbd_trace_info *info;
    struct tbd_trace *trace;
    bool is_found;

    if (tbd_trace_open_summary(path, &trace, NULL) != TBD_OK)
        return false;
    info = tbd_trace_info(trace);
    *part = (struct tbd_counted_part){ .windows = tbd_trace_window_count(trace), .home = -1 };
    part->dropped = part->windows != 0 ? tbd_trace_window(trace, 0)->number : 0;
    is_found = info->counts_stops && info->finished && !info->is_foreign &&
               info->damage_count == 0 && part->windows != 0 &&
               strlen(tbd_trace_path(trace)) < sizeof(part->path);
    snprintf(part->path, sizeof(part->path), "%s", tbd_trace_path(trace));
    tbd_trace_close(trace);
    return is_found;
}

/* ---- those that are kept ---- */

static bool read_name(const char *name, uint32_t *from, uint32_t *to)
{
    int end = 0;

    return sscanf(name, "%" SCNu32 "-%" SCNu32 SUFFIX "%n", from, to, &end) == 2 && end != 0 &&
           name[end] == '\0';
}

/* Takes the windows of one that has those of *part. */
static bool find_kept(int cache, struct tbd_counted_part *part)
{
    DIR *dir = tbd_dir_list(cache, ".");
    struct dirent *entry;
    bool found = false;

    while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
        uint32_t from, to;

        found = read_name(entry->d_name, &from, &to) && from <= part->from && to >= part->to &&
                to <= part->windows;
        if (found) {
            part->from = from;
            part->to = to;
        }
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

/* Those whose windows *part has, and more than are worth their space. */
static void remove_others(int cache, const struct tbd_counted_part *part)
{
    DIR *dir = tbd_dir_list(cache, ".");
    struct dirent *entry;
    unsigned kept = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        uint32_t from, to;

        if (!read_name(entry->d_name, &from, &to) || (from == part->from && to == part->to))
            continue;
        if ((from >= part->from && to <= part->to) || ++kept >= KEPT_MOST)
            (void)!tbd_trace_remove(cache, entry->d_name);
    }
    if (dir != NULL)
        closedir(dir);
}

/* ---- making one ---- */

static enum tbd_status make(const struct tbd_counted_part *part, unsigned workers, int cache,
                            const char *name, struct tbd_error *why)
{
    char root[4096], unfinished[64];
    struct tbd_stops_part wanted = { .from = part->from, .to = part->to, .root = root };
    struct tbd_count_stops how = { .path = part->path, .workers = workers, .part = &wanted };
    enum tbd_status status;

    snprintf(unfinished, sizeof(unfinished), "%d.counting", (int)getpid());
    if ((size_t)snprintf(root, sizeof(root), "%s/" CACHE "/%s", part->path, unfinished) >=
        sizeof(root))
        return TBD_NOTFOUND;
    (void)!tbd_trace_remove(cache, unfinished);
    status = tbd_count_stops_part(&how, why);
    if (status == TBD_OK && renameat(cache, unfinished, cache, name) != 0)
        status = TBD_IO;
    if (status == TBD_OK)
        remove_others(cache, part);
    else
        (void)!tbd_trace_remove(cache, unfinished);
    return status;
}

/* Both folders exist: the recording is this user's. */
static int open_cache(int home)
{
    if (tbd_dir_make_folder(home, CACHE) != TBD_OK)
        return -1;
    return tbd_open_folder_below(home, CACHE);
}

/* The times of the counted windows. */
static enum tbd_status take_times(struct tbd_counted_part *part, struct tbd_trace *trace)
{
    const struct tbd_window_summary *first = tbd_trace_window(trace, part->from);
    const struct tbd_window_summary *after = tbd_trace_window(trace, part->to);

    if (first == NULL || tbd_trace_window_count(trace) != part->windows)
        return TBD_CORRUPT;
    part->first = first->first_time;
    part->end = after == NULL ? UINT64_MAX : after->first_time;
    return TBD_OK;
}

static enum tbd_status open_made(const char *made, struct tbd_counted_part *part,
                                 struct tbd_trace **out, struct tbd_error *why)
{
    enum tbd_status status = tbd_trace_open(made, out, why);

    if (status == TBD_OK)
        status = tbd_trace_info(*out)->damage_count != 0 ? TBD_CORRUPT : take_times(part, *out);
    if (status == TBD_OK)
        return TBD_OK;
    tbd_trace_close(*out);
    *out = NULL;
    return status;
}

/* One that was kept, and is damaged, is made again. */
static enum tbd_status open_in(struct tbd_counted_part *part, unsigned workers, int cache,
                               struct tbd_trace **out, struct tbd_error *why)
{
    char name[64], made[4096];
    bool is_kept = find_kept(cache, part);
    enum tbd_status status;

    snprintf(name, sizeof(name), "%" PRIu32 "-%" PRIu32 SUFFIX, part->from, part->to);
    if ((size_t)snprintf(made, sizeof(made), "%s/" CACHE "/%s/" TBD_STOPS_PART_NAME, part->path,
                         name) >= sizeof(made))
        return TBD_NOTFOUND;
    if (is_kept && open_made(made, part, out, why) == TBD_OK)
        return TBD_OK;
    if (is_kept)
        (void)!tbd_trace_remove(cache, name);
    status = make(part, workers, cache, name, why);
    return status == TBD_OK ? open_made(made, part, out, why) : status;
}

enum tbd_status tbd_part_open(struct tbd_counted_part *part, unsigned workers,
                              struct tbd_trace **out, struct tbd_error *why)
{
    enum tbd_status status = TBD_IO;
    int cache;

    *out = NULL;
    part->home = tbd_dir_open(part->path);
    cache = part->home < 0 ? -1 : open_cache(part->home);
    if (cache >= 0) {
        status = open_in(part, workers, cache, out, why);
        close(cache);
    }
    if (status != TBD_OK)
        tbd_part_close(part);
    return status;
}

void tbd_part_close(struct tbd_counted_part *part)
{
    if (part->home >= 0)
        close(part->home);
    part->home = -1;
}

bool tbd_part_has(struct tbd_counted_part *part, uint32_t window)
{
    if (part == NULL || (window >= part->from && window < part->to))
        return true;
    __atomic_store_n(window < part->from ? &part->wants_before : &part->wants_after, true,
                     __ATOMIC_RELAXED);
    return false;
}
