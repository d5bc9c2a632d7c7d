// SPDX-License-Identifier: MIT
/* writer.c - making a trace directory: all files except those of windows
 *
 * Invariants
 * WRITER-1  A file of a window exists under its name only when complete (tbd_dir_write); the index
 *     names a window only after its files exist; the block file holds a block before the index
 *     names a window with it. (not checked: test_crash lets each change of a file fail)
 * WRITER-2  index and blocks only grow, by whole records; a failed write is truncated away. (not
 *     checked: test_crash lets each change of a file fail)
 * WRITER-3  The file `reserve` takes some disk space until the end, so that the end record fits on
 *     a full disk. It is deleted earlier only if far more space is free, or if only a dump's window is
 *     still to be written. (not checked: test_crash
 *     lets each change of a file fail) */
#include "format/files/trace_remove.h"
#include "format/writer/trace_folder.h"
#include "format/writer/writer_private.h"

#include "base/open_file.h"
#include "format/files/file_names.h"
#include "format/files/modules.h"
#include "format/writer/toc_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define RESERVE_BYTES (64 << 10)
#define PLENTY_BYTES  ((uint64_t)1 << 30) /* nothing fills this in the little time that is left */
#define BATCH_BLOCKS  8u

/* ---- directories ---- */

/* Until the header has a lock (FORMAT-4).  Who looks at the directory has it for a moment, too (beginning.c). */
static void lock_directory(int dir)
{
    const struct timespec moment = { .tv_nsec = 1000000 };

    for (int i = 0; i < 20 && flock(dir, LOCK_EX | LOCK_NB); i++)
        nanosleep(&moment, NULL);
}

static enum tbd_status make_directory(struct tbd_writer *w, const char *program)
{
    struct tbd_trace_folder folder;
    enum tbd_status status = tbd_trace_folder_make(w->root, program, &folder);

    w->root_dir = folder.root_dir;
    w->dir = folder.dir;
    w->path = folder.path;
    if (status)
        return status;
    w->name = strrchr(w->path, '/') + 1;
    tbd_modules_clean(w->root_dir);
    lock_directory(
        w->dir); /* before there are windows: without the lock they are those of a dead organizer */
    if (mkdirat(w->dir, "windows", 0700) || mkdirat(w->dir, "modules", 0700))
        return tbd_dir_failure();
    return TBD_OK;
}

static enum tbd_status make_reserve(struct tbd_writer *w)
{
    int fd = openat(w->dir, "reserve", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    static const uint8_t zero[4096];
    enum tbd_status status = TBD_OK;

    if (fd < 0)
        return tbd_dir_failure();
    for (int i = 0; i < RESERVE_BYTES / 4096 && !status; i++)
        status = tbd_write_all(fd, zero, sizeof(zero));
    close(fd);
    w->has_reserve = true;
    return status;
}

static void remove_reserve(struct tbd_writer *w)
{
    unlinkat(w->dir, "reserve", 0);
    w->has_reserve = false;
}

enum tbd_status tbd_writer_new(const char *root, const char *program, struct tbd_writer **out,
                               struct tbd_error *why)
{
    struct tbd_writer *w = calloc(1, sizeof(*w));
    enum tbd_status status;

    *out = NULL;
    if (!w)
        return TBD_NOMEM;
    w->root_dir = w->dir = w->header = w->index = w->blocks = -1;
    w->root = strdup(root);
    if (getrandom(&w->id, sizeof(w->id), 0) != sizeof(w->id) || !w->id)
        w->id = 1;
    errno = 0;
    status = w->root ? make_directory(w, program) : TBD_NOMEM;
    if (!status)
        status = make_reserve(w);
    if (status) {
        tbd_error_set(why, status, w->path ? w->path : root, 0, "%s",
                      errno ? strerror(errno) : tbd_status_text(status));
        tbd_writer_free(w);
        return status;
    }
    *out = w;
    return TBD_OK;
}

void tbd_writer_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void remove_unstarted(struct tbd_writer *w)
{
    if (w->dir >= 0)
        (void)!tbd_trace_remove(w->root_dir, w->name);
}

const char *tbd_writer_path(const struct tbd_writer *w)
{
    return w->path;
}

int tbd_writer_dir(const struct tbd_writer *w)
{
    return w->dir;
}

/* ---- append-only files ---- */

enum tbd_status tbd_writer_append(int fd, off_t *size, const struct tbd_buffer *data)
{
    enum tbd_status status;

    if (data->failed)
        return TBD_NOMEM;
    status = tbd_write_all(fd, data->bytes, data->used);
    if (!status)
        *size += (off_t)data->used;
    else if (ftruncate(fd, *size) || lseek(fd, *size, SEEK_SET) < 0)
        status = TBD_IO;
    return status;
}

/* Writes CLOSED: without it, an index that was cut between two records looks like one whose writer
 * died.  Failure does no harm. */
static void put_closed(const struct tbd_writer *w)
{
    struct tbd_disk_closed closed = { .index_bytes = (uint64_t)w->index_bytes };
    struct tbd_buffer record = { 0 };
    int fd = tbd_open_below(w->dir, "header", O_WRONLY);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

    tbd_file_put_record(&record, TBD_REC_CLOSED, &closed, sizeof(closed));
    if (size >= 0)
        (void)!tbd_writer_append(fd, &size, &record);
    tbd_writer_close(fd);
    tbd_buffer_free(&record);
}

void tbd_writer_free(struct tbd_writer *w)
{
    if (!w)
        return;
    if (!w->started && w->path)
        remove_unstarted(w);
    if (w->has_changed && (!w->has_let_go || !tbd_writer_take_again(w, NULL)))
        put_closed(w);
    tbd_writer_close(w->index);
    tbd_writer_close(w->blocks);
    tbd_writer_close(w->header);
    tbd_writer_close(w->dir);
    tbd_writer_close(w->root_dir);
    tbd_buffer_free(&w->pending);
    if (w->spare)
        tbd_buffer_free(w->spare);
    free(w->spare);
    free(w->modules);
    free(w->path);
    free(w->root);
    free(w);
}

static enum tbd_status create_growing(struct tbd_writer *w, const char *name,
                                      enum tbd_file_kind kind, uint64_t needs, int *fd, off_t *size)
{
    struct tbd_buffer head = { 0 };
    enum tbd_status status;

    *fd = openat(w->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*fd < 0)
        return tbd_dir_failure();
    tbd_file_put_header(&head, kind, 0, w->id);
    tbd_file_need(&head, needs);
    status = tbd_writer_append(*fd, size, &head);
    tbd_buffer_free(&head);
    return status;
}

/* The file is locked before it gets its name, so that no reader sees a trace without the lock. */
static enum tbd_status create_header(struct tbd_writer *w, const struct tbd_buffer *content)
{
    struct tbd_new_file file;
    enum tbd_status status;

    if (content->failed)
        return TBD_NOMEM;
    status = tbd_new_file(w->dir, "header", &file);
    if (status)
        return status;
    status = flock(file.fd, LOCK_EX | LOCK_NB)
                 ? TBD_IO
                 : tbd_write_all(file.fd, content->bytes, content->used);
    if (status)
        tbd_new_file_drop(&file);
    else
        status = tbd_new_file_finish(&file);
    w->header = status ? -1 : file.fd;
    return status;
}

/* A forked child does not become `latest`: the user asked for the program.  A failure is no harm:
 * the trace has its name. */
static void set_latest(const struct tbd_writer *w, const void *payload, size_t bytes)
{
    struct tbd_msg_start start = { 0 };

    if (bytes >= sizeof(start))
        memcpy(&start, payload, sizeof(start));
    if (!(start.flags & TBD_START_FORKED))
        tbd_dir_set_latest(w->root_dir, w->name, start.realtime_ns);
}

static void put_head(struct tbd_buffer *out, const void *payload, size_t bytes,
                     const struct tbd_disk_config *config)
{
    tbd_file_put_record(out, TBD_REC_START, payload, bytes);
    tbd_file_put_record(out, TBD_REC_CONFIG, config, sizeof(*config));
}

enum tbd_status tbd_writer_start(struct tbd_writer *w, const void *payload, size_t bytes,
                                 const struct tbd_disk_config *config)
{
    uint64_t needs = config->flags & TBD_CONFIG_COUNT_LATER ? TBD_NEEDS_COUNTING : 0;
    struct tbd_buffer content = { 0 };
    struct tbd_msg_start start = { 0 };
    enum tbd_status status;

    if (bytes >= sizeof(start))
        memcpy(&start, payload, sizeof(start));
    needs |= start.flags & TBD_START_DUMP ? TBD_NEEDS_DUMP : 0;
    needs |= config->flags & TBD_CONFIG_COUNT_STOPS ? TBD_NEEDS_STOPS : 0;
    tbd_file_put_header(&content, TBD_FILE_HEADER, 0, w->id);
    tbd_file_need(&content, needs);
    put_head(&content, payload, bytes, config);
    put_head(&w->pending, payload, bytes, config); /* the index has a copy */
    status = create_growing(w, "index", TBD_FILE_INDEX, needs, &w->index, &w->index_bytes);
    if (!status)
        status = create_growing(w, "blocks", TBD_FILE_BLOCKS, 0, &w->blocks, &w->blocks_bytes);
    if (!status)
        status = create_header(w, &content);
    tbd_buffer_free(&content);
    if (status)
        return status;
    w->started = true;
    set_latest(w, payload, bytes);
    return TBD_OK;
}

/* ---- blocks ---- */

static void put_defs(struct tbd_buffer *out, const struct tbd_block_table *table, uint32_t first,
                     uint32_t last)
{
    size_t count = last - first + 1u;
    uint64_t ops_at = sizeof(struct tbd_disk_blocks) + count * sizeof(struct tbd_block_def);
    uint64_t code_at = ops_at;

    for (uint32_t id = first; id <= last; id++)
        code_at += tbd_block_table_get(table, id)->def.op_count * sizeof(struct tbd_op);
    for (uint32_t id = first; id <= last; id++) {
        struct tbd_block_def def = tbd_block_table_get(table, id)->def;

        def.ops_offset = ops_at;
        def.code_offset = code_at;
        ops_at += def.op_count * sizeof(struct tbd_op);
        code_at += def.code_bytes;
        tbd_buffer_put(out, &def, sizeof(def));
    }
}

static void put_batch(struct tbd_buffer *out, const struct tbd_block_table *table, uint32_t first,
                      uint32_t last)
{
    struct tbd_disk_blocks head = { first, last - first + 1 };
    size_t begin = tbd_file_begin_record(out, TBD_REC_BLOCKS);

    tbd_buffer_put(out, &head, sizeof(head));
    put_defs(out, table, first, last);
    for (uint32_t id = first; id <= last; id++) {
        const struct tbd_block *block = tbd_block_table_get(table, id);

        tbd_buffer_put(out, block->ops, block->def.op_count * sizeof(struct tbd_op));
    }
    for (uint32_t id = first; id <= last; id++) {
        const struct tbd_block *block = tbd_block_table_get(table, id);

        tbd_buffer_put(out, block->code, block->def.code_bytes);
    }
    tbd_file_finish_record(out, begin);
}

/* Records are small: damage to one affects only the windows that have its blocks. */
enum tbd_status tbd_writer_blocks(struct tbd_writer *w, const struct tbd_block_table *table,
                                  uint32_t first, uint32_t last)
{
    struct tbd_buffer out = { 0 };
    enum tbd_status status;

    if (last < first)
        return TBD_OK;
    for (uint32_t id = first; id <= last; id += BATCH_BLOCKS)
        put_batch(&out, table, id, last - id < BATCH_BLOCKS ? last : id + BATCH_BLOCKS - 1);
    status = tbd_writer_append(w->blocks, &w->blocks_bytes, &out);
    tbd_buffer_free(&out);
    if (!status)
        w->last_block = last;
    return status;
}

/* ---- index records ---- */

void tbd_writer_event(struct tbd_writer *w, enum tbd_record_type type,
                      const struct tbd_disk_when *when, const void *message, size_t bytes)
{
    size_t begin = tbd_file_begin_record(&w->pending, type);

    tbd_buffer_put(&w->pending, when, sizeof(*when));
    tbd_buffer_put(&w->pending, message, bytes);
    tbd_file_finish_record(&w->pending, begin);
}

void tbd_writer_records(struct tbd_writer *w, const struct tbd_buffer *records)
{
    tbd_buffer_put(&w->pending, records->bytes, records->used);
}

void tbd_writer_take_modules(struct tbd_writer *w, const struct tbd_kept_modules *kept)
{
    w->kept = kept;
}

static bool keep_module(const struct tbd_writer *w, const char *path, const char *name,
                        struct tbd_disk_module *disk)
{
    return (w->kept && tbd_modules_take(w->kept, w->dir, path, name, disk)) ||
           tbd_modules_keep(w->root_dir, w->dir, path, name, disk);
}

enum tbd_status tbd_writer_module(struct tbd_writer *w, const char *path, uint64_t inode,
                                  uint32_t device)
{
    struct tbd_disk_module disk = { .inode = inode, .device = device };
    struct tbd_disk_module *grown;
    char name[200];
    size_t begin;
    int number;

    for (size_t i = 0; i < w->module_count; i++)
        if (w->modules[i].inode == inode && w->modules[i].device == device)
            return TBD_OK;
    grown = realloc(w->modules, (w->module_count + 1) * sizeof(disk));
    if (!grown)
        return TBD_NOMEM;
    w->modules = grown;
    number = snprintf(name, sizeof(name), "%03zu-", w->module_count);
    w->modules[w->module_count++] = disk;
    tbd_plain_name(path, name + number, sizeof(name) - (size_t)number);
    if (!keep_module(w, path, name, &disk))
        return errno == ENOSPC || errno == EDQUOT ? TBD_NOSPACE : TBD_NOTFOUND;
    begin = tbd_file_begin_record(&w->pending, TBD_REC_MODULE);
    tbd_buffer_put(&w->pending, &disk, sizeof(disk));
    tbd_buffer_put(&w->pending, path, strlen(path) + 1);
    tbd_buffer_put(&w->pending, name, strlen(name) + 1);
    tbd_file_finish_record(&w->pending, begin);
    return TBD_OK;
}

enum tbd_status tbd_writer_flush(struct tbd_writer *w)
{
    enum tbd_status status = tbd_writer_append(w->index, &w->index_bytes, &w->pending);

    w->pending.used = 0;
    return status;
}

enum tbd_status tbd_writer_image(struct tbd_writer *w, const struct tbd_disk_base *base,
                                 const struct tbd_page_contents *pages, size_t count)
{
    const struct tbd_disk_base initial = { 0 };
    struct tbd_buffer out = { 0 };
    char name[32];
    enum tbd_status status = tbd_image_put(pages, count, w->id, &out);

    tbd_image_name(base ? base : &initial, name, sizeof(name));
    if (!status)
        status = tbd_dir_write(w->dir, name, out.bytes, out.used);
    tbd_buffer_free(&out);
    return status;
}

void tbd_writer_use_reserve(struct tbd_writer *w)
{
    if (w->has_reserve)
        remove_reserve(w);
}

/* WRITER-3.  Deleting a file may take longer than everything else at the end. */
void tbd_writer_expect_end(struct tbd_writer *w)
{
    struct statvfs disk;

    if (w->has_reserve && !fstatvfs(w->dir, &disk) &&
        disk.f_bavail * (uint64_t)disk.f_frsize >= PLENTY_BYTES)
        remove_reserve(w);
}

enum tbd_status tbd_writer_end(struct tbd_writer *w, const struct tbd_msg_end *end,
                               const char *text, const uint8_t *siginfo)
{
    enum tbd_status status;
    size_t begin;

    tbd_writer_use_reserve(w);
    begin = tbd_file_begin_record(&w->pending, TBD_REC_END);
    tbd_buffer_put(&w->pending, end, sizeof(*end));
    tbd_buffer_put(&w->pending, text, strlen(text) + 1);
    if (siginfo)
        tbd_buffer_put(&w->pending, siginfo, TBD_SIGINFO_BYTES);
    tbd_file_finish_record(&w->pending, begin);
    status = tbd_writer_flush(w);
    if (!status)
        put_closed(w);
    return status;
}
