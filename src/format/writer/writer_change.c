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

static enum tbd_status open_trace(struct tbd_writer *w, struct tbd_error *why)
{
    w->dir = tbd_dir_open(w->path);
    if (w->dir >= 0)
        w->header = tbd_open_below(w->dir, "header", O_RDONLY);
    if (w->header < 0)
        return tbd_error_set(why, TBD_NOTRACE, w->path, 0, "%s", strerror(errno));
    if (flock(w->header, LOCK_EX | LOCK_NB))
        return tbd_error_set(why, TBD_BUSY, w->path, 0,
                             "it is being recorded, or changed by somebody else");
    w->started = true;
    return open_index(w, why);
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
