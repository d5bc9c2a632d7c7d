// SPDX-License-Identifier: MIT
/* window_cache.c - see window_cache.h
 *
 * WINDOW_CACHE-1  A file appears under its name complete, by rename, or not at all. (not checked:
 *     test_window_cache does)
 * WINDOW_CACHE-2  The folder holds about `limit` bytes at most: before more is written, the files
 *     not used for longest go.
 * WINDOW_CACHE-3  Nothing is written when the disk is nearly full: the space is left to the
 *     recording.  (not checked: test_window_cache does)
 * WINDOW_CACHE-4  One question writes no more than `limit` bytes: one that needs more windows than
 *     fit keeps the first ones, and does not throw them out for the last ones.  Its answer is
 *     written all the same. */
#include "query/session/window_cache.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/open_file.h"
#include "format/files/file.h"
#include "format/merging/replayed_events.h"
#include "format/trace/trace_handle.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SPACE_MIN  (256ull << 20) /* left on the disk */
#define NAME_BYTES 64

struct tbd_window_cache {
    pthread_mutex_t lock;
    int trace;          /* the trace's directory; borrowed */
    struct tbd_dir dir; /* fd is -1: not open yet */
    bool is_off;        /* something went wrong */
    bool is_listed;     /* `total` is known */
    uint64_t limit;
    uint64_t total;   /* bytes in the folder, as far as this process knows */
    uint64_t written; /* by this process */
};

uint64_t tbd_window_cache_limit(const struct tbd_trace *trace)
{
    return tbd_cache_share(tbd_trace_info(trace)->budget);
}

struct tbd_window_cache *tbd_window_cache_new(const struct tbd_trace *trace, uint64_t limit)
{
    struct tbd_window_cache *cache = calloc(1, sizeof(*cache));

    if (cache == NULL)
        return NULL;
    cache->trace = tbd_trace_dir(trace).fd;
    cache->limit = limit != 0 ? limit : tbd_window_cache_limit(trace);
    cache->dir = (struct tbd_dir){ .fd = -1, .path = "cache" };
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void tbd_window_cache_free(struct tbd_window_cache *cache)
{
    if (cache == NULL)
        return;
    if (cache->dir.fd >= 0)
        close(cache->dir.fd);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* ---- what is there ---- */

/* Once open, it stays open. */
static bool open_existing_locked(struct tbd_window_cache *cache)
{
    if (cache->dir.fd < 0)
        cache->dir.fd = tbd_open_folder_below(cache->trace, "cache");
    return cache->dir.fd >= 0;
}

struct cached_file {
    char name[NAME_BYTES];
    uint64_t bytes;
    struct timespec used;
};

static int by_use(const void *a, const void *b)
{
    const struct cached_file *x = a, *y = b;

    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

/* All files, also other processes' and incomplete ones. NULL: none, or no memory. */
static struct cached_file *list_files(int folder, size_t *out_count, uint64_t *out_bytes)
{
    DIR *dir = tbd_dir_list(folder, ".");
    struct cached_file *files = NULL;
    struct dirent *entry;
    struct stat info;
    size_t capacity = 0;

    *out_count = 0;
    *out_bytes = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name);

        if (length >= NAME_BYTES ||
            fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode) ||
            !tbd_array_grow(&files, *out_count, &capacity, sizeof(*files)))
            continue;
        memcpy(files[*out_count].name, entry->d_name, length + 1);
        files[*out_count].bytes = (uint64_t)info.st_size;
        files[*out_count].used = info.st_mtim;
        *out_bytes += (uint64_t)info.st_size;
        ++*out_count;
    }
    if (dir != NULL)
        closedir(dir);
    return files;
}

/* Makes space for `more` bytes, and some to spare, so that this is not done for each window. */
static void make_space_locked(struct tbd_window_cache *cache, uint64_t more)
{
    uint64_t most = cache->limit - cache->limit / 8;
    struct cached_file *files;
    size_t count;

    files = list_files(cache->dir.fd, &count, &cache->total);
    if (files != NULL)
        qsort(files, count, sizeof(*files), by_use);
    for (size_t i = 0; i < count && cache->total + more > most; i++) {
        if (unlinkat(cache->dir.fd, files[i].name, 0) == 0)
            cache->total -= files[i].bytes;
    }
    free(files);
}

/* ---- writing ---- */

static bool open_folder_locked(struct tbd_window_cache *cache)
{
    size_t count;

    if (!open_existing_locked(cache) && tbd_dir_make_folder(cache->trace, "cache") == TBD_OK)
        (void)open_existing_locked(cache);
    if (cache->dir.fd < 0)
        return false;
    if (!cache->is_listed) {
        tbd_dir_clean(cache->dir.fd);
        free(list_files(cache->dir.fd, &count, &cache->total));
        cache->is_listed = true;
    }
    return true;
}

static bool has_space(const struct tbd_window_cache *cache, uint64_t bytes)
{
    struct statvfs disk;

    return fstatvfs(cache->dir.fd, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize >= SPACE_MIN + bytes;
}

static bool take_space_locked(struct tbd_window_cache *cache, uint64_t bytes)
{
    if (!open_folder_locked(cache) || !has_space(cache, bytes))
        return false;
    if (cache->total + bytes > cache->limit)
        make_space_locked(cache, bytes);
    if (cache->total + bytes > cache->limit)
        return false;
    cache->total += bytes;
    TBD_INVARIANT("WINDOW_CACHE-2", cache->total <= cache->limit);
    return true;
}

/* False: it makes no sense to try again. */
static bool reserve_locked(struct tbd_window_cache *cache, uint64_t bytes)
{
    if (cache->is_off || cache->written + bytes > cache->limit || !take_space_locked(cache, bytes))
        return false;
    cache->written += bytes;
    TBD_INVARIANT("WINDOW_CACHE-4", cache->written <= cache->limit);
    return true;
}

static bool reserve(struct tbd_window_cache *cache, uint64_t bytes)
{
    bool good;

    pthread_mutex_lock(&cache->lock);
    good = reserve_locked(cache, bytes);
    cache->is_off |= !good;
    pthread_mutex_unlock(&cache->lock);
    return good;
}

static bool write_file(struct tbd_window_cache *cache, const char *name,
                       const struct tbd_buffer *content)
{
    return tbd_dir_write(cache->dir.fd, name, content->bytes, content->used) == TBD_OK;
}

static bool is_off(struct tbd_window_cache *cache)
{
    bool off;

    pthread_mutex_lock(&cache->lock);
    off = cache->is_off;
    pthread_mutex_unlock(&cache->lock);
    return off;
}

void tbd_window_cache_put(struct tbd_window_cache *cache, const struct tbd_trace *trace,
                          const struct tbd_window *window)
{
    char name[NAME_BYTES];
    struct tbd_buffer content = { 0 };

    if (is_off(cache))
        return;
    tbd_raised_name(trace, window->index, name, sizeof(name));
    tbd_raised_put(trace, window, &content);
    if (!content.failed && reserve(cache, content.used) && !write_file(cache, name, &content)) {
        pthread_mutex_lock(&cache->lock);
        cache->is_off = true;
        pthread_mutex_unlock(&cache->lock);
    }
    tbd_buffer_free(&content);
}

void tbd_window_cache_keep(struct tbd_window_cache *cache, const char *name,
                           const struct tbd_buffer *content)
{
    bool good;

    pthread_mutex_lock(&cache->lock);
    good = content->used <= cache->limit / 8 && take_space_locked(cache, content->used);
    pthread_mutex_unlock(&cache->lock);
    if (good)
        (void)write_file(cache, name, content);
}

/* ---- reading ---- */

static bool open_to_read(struct tbd_window_cache *cache)
{
    bool good;

    pthread_mutex_lock(&cache->lock);
    good = open_existing_locked(cache);
    pthread_mutex_unlock(&cache->lock);
    return good;
}

static void mark_used(const struct tbd_window_cache *cache, const char *name)
{
    (void)utimensat(cache->dir.fd, name, NULL, AT_SYMLINK_NOFOLLOW);
}

bool tbd_window_cache_answer(struct tbd_window_cache *cache, const struct tbd_trace *trace,
                             struct tbd_answer *answer)
{
    char name[NAME_BYTES];

    if (!open_to_read(cache) || tbd_answer_load(trace, cache->dir, answer, NULL) != TBD_OK)
        return false;
    tbd_answer_name(answer->question, name, sizeof(name));
    mark_used(cache, name);
    return true;
}

struct tbd_window *tbd_window_cache_get(struct tbd_window_cache *cache, struct tbd_trace *trace,
                                        uint32_t index)
{
    char name[NAME_BYTES];
    struct tbd_window *window;

    tbd_raised_name(trace, index, name, sizeof(name));
    if (!open_to_read(cache) ||
        tbd_raised_load(trace, index, cache->dir, name, &window, NULL) != TBD_OK)
        return NULL;
    mark_used(cache, name);
    return window;
}
