// SPDX-License-Identifier: MIT
/* writer_change.c - changes of a written trace: files and index of a trace that has windows
 * (change.h)
 *
 * Used while it is recorded, and afterwards through tbd_writer_open(). */
#include "format/writer/writer_private.h"

#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Moves to the end of the index's last complete record: what follows was never finished. */
static enum tbd_status open_index(struct tbd_writer *w, struct tbd_error *why)
{
    struct tbd_record_view record;
    struct tbd_file file;
    enum tbd_status status =
        tbd_file_open((struct tbd_dir){ w->dir, w->path }, "index", TBD_FILE_INDEX, 0, &file, why);

    if (status)
        return status;
    w->id = tbd_file_header(&file)->trace_id;
    while (!(status = tbd_file_next(&file, &record, why)))
        ;
    w->index_bytes = (off_t)file.next;
    tbd_file_close(&file);
    if (status != TBD_NOTFOUND && status != TBD_TRUNCATED)
        return status;
    w->index = tbd_open_below(w->dir, "index", O_RDWR);
    if (w->index < 0 || ftruncate(w->index, w->index_bytes) ||
        lseek(w->index, w->index_bytes, SEEK_SET) < 0)
        return tbd_error_set(why, TBD_IO, w->path, 0, "index: %s", strerror(errno));
    return TBD_OK;
}

/* Readers hold the lock for a moment, to see whether anybody writes; who counts windows, for a window's change. */
#define LOCK_TRIES    50
#define LOCK_PAUSE_NS (10 * 1000 * 1000)

static enum tbd_status take_lock(const struct tbd_writer *w, struct tbd_error *why)
{
    const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };

    for (int i = 0; i < LOCK_TRIES; i++) {
        if (!flock(w->header, LOCK_EX | LOCK_NB))
            return TBD_OK;
        nanosleep(&pause, NULL);
    }
    return tbd_error_set(why, TBD_BUSY, w->path, 0,
                         "it is being recorded, or changed by somebody else");
}

static enum tbd_status open_trace(struct tbd_writer *w, struct tbd_error *why)
{
    enum tbd_status status;

    w->dir = tbd_dir_open(w->path);
    if (w->dir >= 0)
        w->header = tbd_open_below(w->dir, "header", O_RDONLY);
    if (w->header < 0)
        return tbd_error_set(why, TBD_NOTRACE, w->path, 0, "%s", strerror(errno));
    status = take_lock(w, why);
    w->started = true;
    return status ? status : open_index(w, why);
}

/* Is the index still the file with this name, and as long as it was? */
static bool is_index_as_before(const struct tbd_writer *w)
{
    int fd = tbd_open_below(w->dir, "index", O_RDONLY);
    struct stat now, before;
    bool is_same = fd >= 0 && !fstat(fd, &now) && !fstat(w->index, &before) &&
                   now.st_ino == before.st_ino && now.st_dev == before.st_dev &&
                   now.st_size == w->index_bytes;

    tbd_writer_close(fd);
    return is_same;
}

void tbd_writer_let_go(struct tbd_writer *w)
{
    (void)flock(w->header, LOCK_UN);
    w->has_let_go = true;
}

enum tbd_status tbd_writer_take_again(struct tbd_writer *w, struct tbd_error *why)
{
    enum tbd_status status = take_lock(w, why);

    if (status)
        return status;
    if (!is_index_as_before(w)) {
        tbd_writer_let_go(w);
        return tbd_error_set(why, TBD_BUSY, w->path, 0, "somebody else has changed it");
    }
    w->has_let_go = false;
    return TBD_OK;
}

enum tbd_status tbd_writer_open(const char *path, struct tbd_writer **out, struct tbd_error *why)
{
    struct tbd_writer *w = calloc(1, sizeof(*w));
    enum tbd_status status;

    *out = NULL;
    if (!w)
        return TBD_NOMEM;
    w->root_dir = w->dir = w->header = w->index = w->blocks = -1;
    w->started = w->is_reopened = true;
    w->path = strdup(path);
    status = w->path ? open_trace(w, why) : TBD_NOMEM;
    if (status) {
        tbd_writer_free(w);
        return status;
    }
    *out = w;
    return TBD_OK;
}

enum tbd_status tbd_writer_file(struct tbd_writer *w, const char *name,
                                const struct tbd_buffer *content)
{
    return content->failed ? TBD_NOMEM : tbd_dir_write(w->dir, name, content->bytes, content->used);
}

void tbd_writer_remove(struct tbd_writer *w, const char *name)
{
    tbd_dir_remove(w->dir, name);
}

/* The new file is open before it gets its name: later appends go to the right file. */
enum tbd_status tbd_writer_index(struct tbd_writer *w, const struct tbd_buffer *content)
{
    struct tbd_new_file file;
    enum tbd_status status = content->failed ? TBD_NOMEM : tbd_new_file(w->dir, "index", &file);

    if (status)
        return status;
    status = tbd_write_all(file.fd, content->bytes, content->used);
    if (status)
        tbd_new_file_drop(&file);
    else
        status = tbd_new_file_finish(&file);
    if (status)
        return status;
    tbd_writer_close(w->index);
    w->index = file.fd;
    w->index_bytes = (off_t)content->used;
    return TBD_OK;
}

uint64_t tbd_writer_bytes(const struct tbd_writer *w)
{
    return (uint64_t)(w->index_bytes + w->blocks_bytes);
}

uint64_t tbd_writer_index_bytes(const struct tbd_writer *w)
{
    return (uint64_t)w->index_bytes;
}

enum tbd_status tbd_writer_change(struct tbd_writer *w, const struct tbd_disk_change *change,
                                  const struct tbd_disk_shift *shifts,
                                  const struct tbd_buffer *pages)
{
    struct tbd_disk_when when = { .window = change->window.window };
    struct tbd_buffer out = { 0 };
    enum tbd_status status;
    size_t begin;

    if (pages->used) {
        begin = tbd_file_begin_record(&out, TBD_REC_PAGES);
        tbd_buffer_put(&out, &when, sizeof(when));
        tbd_buffer_put(&out, pages->bytes, pages->used);
        tbd_file_finish_record(&out, begin);
    }
    begin = tbd_file_begin_record(&out, TBD_REC_CHANGE);
    tbd_buffer_put(&out, change, sizeof(*change));
    if (change->count > 1)
        tbd_buffer_put(&out, shifts, change->count * sizeof(*shifts));
    tbd_file_finish_record(&out, begin);
    status = tbd_writer_append(w->index, &w->index_bytes, &out);
    w->has_changed |= w->is_reopened;
    tbd_buffer_free(&out);
    return status;
}
