// SPDX-License-Identifier: MIT
/* writer.c - making a trace directory
 *
 * Invariants
 * K1  A file of a window exists under its name only when complete (tbd_write_file); the index names
 *     a window only after its files exist; the block file holds a block before the index names a
 *     window with it.
 * K2  index and blocks only grow, by whole records; a write that fails is cut off again.
 * K3  `reserve` holds some disk space until the end, so that a full disk still takes the end
 *     record. */
#include "format/writer.h"

#include "format/file.h"
#include "format/modules.h"
#include "format/packed.h"
#include "format/toc_write.h"
#include "format/trace_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESERVE_BYTES (64 << 10)
#define BATCH_BLOCKS 8u

struct tbd_writer {
    char *root;
    char *path;
    char *name; /* borrowed: last part of path */
    uint64_t id;
    int root_dir;
    int dir;
    int header; /* locked while we live */
    int index;
    int blocks;
    off_t index_bytes;
    off_t blocks_bytes;
    uint32_t last_block;
    struct tbd_buffer pending; /* records for the index */
    struct tbd_disk_module *modules;
    size_t module_count;
    bool started;
    bool is_reopened; /* tbd_writer_open() */
    bool has_changed; /* ... and the index is longer since */
};

/* ---- directories ---- */

static int make_parents(const char *path)
{
    char part[4096];

    snprintf(part, sizeof(part), "%s", path);
    for (char *at = part + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = 0;
        if (mkdir(part, 0700) && errno != EEXIST)
            return -1;
        *at = '/';
    }
    return mkdir(part, 0700) && errno != EEXIST ? -1 : 0;
}

/* A name that is one path component and does not hide. */
static void plain_name(const char *program, char *out, size_t bytes)
{
    const char *slash = strrchr(program, '/');

    snprintf(out, bytes, "%s", slash ? slash + 1 : program);
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < ' ' || *at == '/' || (at == out && (*at == '.' || *at == '-')))
            *at = '_';
    if (!*out)
        snprintf(out, bytes, "program");
}

static unsigned long highest_number(const char *root, const char *name)
{
    size_t length = strlen(name);
    unsigned long highest = 0;
    struct dirent *entry;
    DIR *dir = opendir(root);

    while (dir && (entry = readdir(dir))) {
        unsigned long n;
        char *end;

        if (strncmp(entry->d_name, name, length) != 0 || entry->d_name[length] != '-')
            continue;
        n = strtoul(entry->d_name + length + 1, &end, 10);
        if (!*end && n > highest)
            highest = n;
    }
    if (dir)
        closedir(dir);
    return highest;
}

static enum tbd_status make_directory(struct tbd_writer *w, const char *program)
{
    unsigned long n;
    char name[128];

    plain_name(program, name, sizeof(name));
    if (make_parents(w->root))
        return TBD_IO;
    for (n = highest_number(w->root, name) + 1;; n++) {
        if (asprintf(&w->path, "%s/%s-%lu", w->root, name, n) < 0) {
            w->path = NULL;
            return TBD_NOMEM;
        }
        if (!mkdir(w->path, 0700))
            break;
        free(w->path);
        w->path = NULL;
        if (errno != EEXIST)
            return errno == ENOSPC || errno == EDQUOT ? TBD_NOSPACE : TBD_IO;
    }
    w->name = strrchr(w->path, '/') + 1;
    w->root_dir = open(w->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tbd_modules_clean(w->root_dir);
    w->dir = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->dir < 0 || mkdirat(w->dir, "windows", 0700) || mkdirat(w->dir, "modules", 0700))
        return errno == ENOSPC || errno == EDQUOT ? TBD_NOSPACE : TBD_IO;
    return TBD_OK;
}

static enum tbd_status make_reserve(struct tbd_writer *w)
{
    int fd = openat(w->dir, "reserve", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    static const uint8_t zero[4096];
    enum tbd_status status = TBD_OK;

    if (fd < 0)
        return errno == ENOSPC || errno == EDQUOT ? TBD_NOSPACE : TBD_IO;
    for (int i = 0; i < RESERVE_BYTES / 4096 && !status; i++)
        status = tbd_write_all(fd, zero, sizeof(zero));
    close(fd);
    return status;
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

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void remove_unstarted(struct tbd_writer *w)
{
    static const char *const names[] = { "reserve", "index", "blocks", "header", "header.part",
                                         "image" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlinkat(w->dir, names[i], 0);
    unlinkat(w->dir, "windows", AT_REMOVEDIR);
    unlinkat(w->dir, "modules", AT_REMOVEDIR);
    rmdir(w->path);
}

const char *tbd_writer_path(const struct tbd_writer *w)
{
    return w->path;
}

/* ---- append-only files ---- */

static enum tbd_status append(int fd, off_t *size, const struct tbd_buffer *data)
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

/* So that an index that is cut off between two records does not look like one whose writer died.  Without it
 * nothing is wrong. */
static void put_closed(const struct tbd_writer *w)
{
    struct tbd_disk_closed closed = { .index_bytes = (uint64_t)w->index_bytes };
    struct tbd_buffer record = { 0 };
    int fd = openat(w->dir, "header", O_WRONLY | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

    tbd_file_put_record(&record, TBD_REC_CLOSED, &closed, sizeof(closed));
    if (size >= 0)
        (void)append(fd, &size, &record);
    close_fd(fd);
    tbd_buffer_free(&record);
}

void tbd_writer_free(struct tbd_writer *w)
{
    if (!w)
        return;
    if (!w->started && w->path)
        remove_unstarted(w);
    if (w->has_changed)
        put_closed(w);
    close_fd(w->index);
    close_fd(w->blocks);
    close_fd(w->header);
    close_fd(w->dir);
    close_fd(w->root_dir);
    tbd_buffer_free(&w->pending);
    free(w->modules);
    free(w->path);
    free(w->root);
    free(w);
}

static enum tbd_status create_growing(struct tbd_writer *w, const char *name,
                                      enum tbd_file_kind kind, int *fd, off_t *size)
{
    struct tbd_buffer head = { 0 };
    enum tbd_status status;

    *fd = openat(w->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*fd < 0)
        return errno == ENOSPC || errno == EDQUOT ? TBD_NOSPACE : TBD_IO;
    tbd_file_put_header(&head, kind, 0, w->id);
    status = append(*fd, size, &head);
    tbd_buffer_free(&head);
    return status;
}

/* The lock is on the file before it gets its name, so that nobody sees a trace without. */
static enum tbd_status create_header(struct tbd_writer *w, const struct tbd_buffer *content)
{
    enum tbd_status status;

    if (content->failed)
        return TBD_NOMEM;
    w->header = openat(w->dir, "header.part", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (w->header < 0)
        return errno == ENOSPC || errno == EDQUOT ? TBD_NOSPACE : TBD_IO;
    if (flock(w->header, LOCK_EX | LOCK_NB))
        return TBD_IO;
    status = tbd_write_all(w->header, content->bytes, content->used);
    if (!status && renameat(w->dir, "header.part", w->dir, "header"))
        status = TBD_IO;
    return status;
}

static void link_latest(const struct tbd_writer *w)
{
    char temporary[4200];
    char latest[4200];

    snprintf(temporary, sizeof(temporary), "%s/.latest-%d", w->root, getpid());
    snprintf(latest, sizeof(latest), "%s/latest", w->root);
    unlink(temporary);
    if (symlink(w->name, temporary) || rename(temporary, latest))
        unlink(temporary);
}

/* What was asked for is the program, not the last of its processes. */
static bool is_forked(const void *payload, size_t bytes)
{
    struct tbd_msg_start start;

    if (bytes < sizeof(start))
        return false;
    memcpy(&start, payload, sizeof(start));
    return start.flags & TBD_START_FORKED;
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
    struct tbd_buffer content = { 0 };
    enum tbd_status status;

    tbd_file_put_header(&content, TBD_FILE_HEADER, 0, w->id);
    put_head(&content, payload, bytes, config);
    put_head(&w->pending, payload, bytes, config); /* the index has a copy */
    status = create_growing(w, "index", TBD_FILE_INDEX, &w->index, &w->index_bytes);
    if (!status)
        status = create_growing(w, "blocks", TBD_FILE_BLOCKS, &w->blocks, &w->blocks_bytes);
    if (!status)
        status = create_header(w, &content);
    tbd_buffer_free(&content);
    if (status)
        return status;
    w->started = true;
    if (!is_forked(payload, bytes))
        link_latest(w);
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

/* Small records: damage to one costs the windows that have its blocks. */
enum tbd_status tbd_writer_blocks(struct tbd_writer *w, const struct tbd_block_table *table,
                                  uint32_t first, uint32_t last)
{
    struct tbd_buffer out = { 0 };
    enum tbd_status status;

    if (last < first)
        return TBD_OK;
    for (uint32_t id = first; id <= last; id += BATCH_BLOCKS)
        put_batch(&out, table, id, last - id < BATCH_BLOCKS ? last : id + BATCH_BLOCKS - 1);
    status = append(w->blocks, &w->blocks_bytes, &out);
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

void tbd_writer_module(struct tbd_writer *w, const char *path, uint64_t inode, uint32_t device)
{
    struct tbd_disk_module disk = { .inode = inode, .device = device };
    struct tbd_disk_module *grown;
    char name[200];
    size_t begin;
    int number;

    for (size_t i = 0; i < w->module_count; i++)
        if (w->modules[i].inode == inode && w->modules[i].device == device)
            return;
    grown = realloc(w->modules, (w->module_count + 1) * sizeof(disk));
    if (!grown)
        return;
    w->modules = grown;
    number = snprintf(name, sizeof(name), "%03zu-", w->module_count);
    w->modules[w->module_count++] = disk;
    plain_name(path, name + number, sizeof(name) - (size_t)number);
    if (!tbd_modules_keep(w->root_dir, w->dir, path, name, &disk))
        return;
    begin = tbd_file_begin_record(&w->pending, TBD_REC_MODULE);
    tbd_buffer_put(&w->pending, &disk, sizeof(disk));
    tbd_buffer_put(&w->pending, path, strlen(path) + 1);
    tbd_buffer_put(&w->pending, name, strlen(name) + 1);
    tbd_file_finish_record(&w->pending, begin);
}

static enum tbd_status flush_pending(struct tbd_writer *w)
{
    enum tbd_status status = append(w->index, &w->index_bytes, &w->pending);

    w->pending.used = 0;
    return status;
}

enum tbd_status tbd_writer_image(struct tbd_writer *w, const struct tbd_page_contents *pages,
                                 size_t count)
{
    struct tbd_buffer out = { 0 };
    enum tbd_status status = tbd_image_put(pages, count, w->id, &out);

    if (!status)
        status = tbd_write_file(w->dir, "image", out.bytes, out.used);
    tbd_buffer_free(&out);
    return status;
}

/* ---- windows ---- */

static enum tbd_status write_window_file(struct tbd_writer *w, uint32_t window, const char *suffix,
                                         struct tbd_buffer *content, uint64_t *out_bytes)
{
    enum tbd_status status = TBD_NOMEM;
    char name[64];

    tbd_toc_name(window, 1, suffix, name, sizeof(name));
    if (!content->failed)
        status = tbd_write_file(w->dir, name, content->bytes, content->used);
    *out_bytes = content->used;
    content->used = 0;
    return status;
}

static void remove_window_files(struct tbd_writer *w, uint32_t window)
{
    static const char *const suffixes[] = { "toc", "trace", "blocks" };
    char name[64];

    for (size_t i = 0; i < 3; i++) {
        tbd_toc_name(window, 1, suffixes[i], name, sizeof(name));
        unlinkat(w->dir, name, 0);
    }
}

static enum tbd_status write_files(struct tbd_writer *w, const struct tbd_window *window,
                                   const struct tbd_buffer *coded,
                                   struct tbd_disk_window *disk, struct tbd_buffer *for_index)
{
    struct tbd_toc_content toc = { .window = window, .disk = disk, .trace_id = w->id,
                                   .level = disk->level };
    struct tbd_buffer out = { 0 };
    enum tbd_status status = tbd_toc_put(&toc, &out, for_index);

    if (!status)
        status = write_window_file(w, window->number, "toc", &out, &disk->toc_bytes);
    if (!status && disk->level == 3) {
        tbd_packed_put_records(&out, window, coded, w->id);
        status = write_window_file(w, window->number, "trace", &out, &disk->trace_bytes);
    }
    if (!status && disk->level == 3) {
        tbd_packed_put_entries(&out, window, w->id);
        status = write_window_file(w, window->number, "blocks", &out, &disk->block_bytes);
    }
    tbd_buffer_free(&out);
    return status;
}

enum tbd_status tbd_writer_put_window(struct tbd_writer *w, const struct tbd_window *window,
                                      const struct tbd_window_summary *counts,
                                      const struct tbd_buffer *coded,
                                      struct tbd_window_files *out)
{
    struct tbd_buffer for_index = { 0 };
    enum tbd_status status;
    char folder[64];

    *out = (struct tbd_window_files){
        .disk = { .window = window->number, .level = counts->level, .complete = window->complete,
                  .first_time = window->first_time, .blocks = window->blocks,
                  .stores = counts->stores, .calls = counts->calls, .returns = counts->returns,
                  .syscalls = counts->syscalls, .specials = counts->specials,
                  .signals = counts->signals },
    };
    snprintf(folder, sizeof(folder), "windows/%u", window->number / 1000);
    if (mkdirat(w->dir, folder, 0700) && errno != EEXIST)
        return errno == ENOSPC || errno == EDQUOT ? TBD_NOSPACE : TBD_IO;
    status = write_files(w, window, coded, &out->disk, &for_index);
    if (status) {
        tbd_buffer_free(&for_index);
        remove_window_files(w, window->number);
        return status;
    }
    out->pages = for_index.bytes;
    out->pages_bytes = for_index.used;
    return TBD_OK;
}

/* Does a pending record speak of a window behind this one? */
static bool is_of_later(const struct tbd_record *head, const uint8_t *payload, uint32_t window)
{
    struct tbd_disk_when when;

    switch (head->type) {
    case TBD_REC_REGION:
    case TBD_REC_UNMAP:
    case TBD_REC_NOTE:
    case TBD_REC_PAGES:
    case TBD_REC_THREAD:
    case TBD_REC_RAN:
        memcpy(&when, payload, sizeof(when));
        return when.window > window;
    default:
        return false;
    }
}

/* Windows are joined before the ones in front of them are committed.  What the index says of a window comes just
 * before its WINDOW record: whoever rewrites the index knows only of windows that it names. */
static void take_later(struct tbd_writer *w, uint32_t window, struct tbd_buffer *later)
{
    struct tbd_buffer now = { 0 };
    struct tbd_record head;

    for (size_t at = 0, bytes; at < w->pending.used; at += bytes) {
        const uint8_t *record = w->pending.bytes + at;

        memcpy(&head, record, sizeof(head));
        bytes = (sizeof(head) + head.bytes + 7) & ~(size_t)7;
        tbd_buffer_put(is_of_later(&head, record + sizeof(head), window) ? later : &now, record,
                       bytes);
    }
    now.failed |= w->pending.failed || later->failed;
    tbd_buffer_free(&w->pending);
    w->pending = now;
}

enum tbd_status tbd_writer_commit_window(struct tbd_writer *w, struct tbd_window_files *files)
{
    struct tbd_disk_when when = { .window = files->disk.window };
    struct tbd_buffer later = { 0 };
    enum tbd_status status;

    take_later(w, files->disk.window, &later);
    files->disk.highest_id = w->last_block;
    tbd_writer_event(w, TBD_REC_PAGES, &when, files->pages, files->pages_bytes);
    tbd_file_put_record(&w->pending, TBD_REC_WINDOW, &files->disk, sizeof(files->disk));
    free(files->pages);
    files->pages = NULL;
    status = flush_pending(w);
    tbd_buffer_free(&w->pending);
    w->pending = later;
    if (status)
        remove_window_files(w, files->disk.window);
    return status;
}

void tbd_writer_segment(const struct tbd_writer *w, struct tbd_key_segment *segment)
{
    struct tbd_buffer out = { 0 };
    char name[64];

    tbd_key_segment_name(segment, name, sizeof(name));
    tbd_key_segment_encode(segment, w->id, &out);
    (void)mkdirat(w->dir, "keys", 0700);
    if (!out.failed)
        (void)!tbd_write_file(w->dir, name, out.bytes, out.used);
    tbd_buffer_free(&out);
}

/* ---- changes of what is written ---- */

/* Onto the end of the index's last complete record: what is behind it was never finished. */
static enum tbd_status open_index(struct tbd_writer *w, struct tbd_error *why)
{
    struct tbd_record_view record;
    struct tbd_file file;
    enum tbd_status status = tbd_file_open(w->path, "index", TBD_FILE_INDEX, 0, &file, why);

    if (status)
        return status;
    w->id = tbd_file_header(&file)->trace_id;
    while (!(status = tbd_file_next(&file, &record, why)))
        ;
    w->index_bytes = (off_t)file.next;
    tbd_file_close(&file);
    if (status != TBD_NOTFOUND && status != TBD_TRUNCATED)
        return status;
    w->index = openat(w->dir, "index", O_RDWR | O_CLOEXEC);
    if (w->index < 0 || ftruncate(w->index, w->index_bytes) ||
        lseek(w->index, w->index_bytes, SEEK_SET) < 0)
        return tbd_error_set(why, TBD_IO, w->path, 0, "index: %s", strerror(errno));
    return TBD_OK;
}

static enum tbd_status open_trace(struct tbd_writer *w, struct tbd_error *why)
{
    w->dir = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->dir >= 0)
        w->header = openat(w->dir, "header", O_RDONLY | O_CLOEXEC);
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
    return content->failed ? TBD_NOMEM
                           : tbd_write_file(w->dir, name, content->bytes, content->used);
}

void tbd_writer_remove(struct tbd_writer *w, const char *name)
{
    if (unlinkat(w->dir, name, 0) && errno == EISDIR)
        unlinkat(w->dir, name, AT_REMOVEDIR);
}

/* The new file is open before it gets its name: what is appended from then on goes to the right
 * one. */
enum tbd_status tbd_writer_index(struct tbd_writer *w, const struct tbd_buffer *content)
{
    static const char temporary[] = "index.part";
    enum tbd_status status = content->failed ? TBD_NOMEM : TBD_OK;
    int fd = -1;

    if (!status) {
        fd = openat(w->dir, temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        status = fd < 0 ? TBD_IO : tbd_write_all(fd, content->bytes, content->used);
    }
    if (!status && renameat(w->dir, temporary, w->dir, "index"))
        status = TBD_IO;
    if (status) {
        close_fd(fd);
        unlinkat(w->dir, temporary, 0);
        return status;
    }
    close_fd(w->index);
    w->index = fd;
    w->index_bytes = (off_t)content->used;
    return TBD_OK;
}

uint64_t tbd_writer_bytes(const struct tbd_writer *w)
{
    return (uint64_t)(w->index_bytes + w->blocks_bytes);
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
    status = append(w->index, &w->index_bytes, &out);
    w->has_changed |= w->is_reopened;
    tbd_buffer_free(&out);
    return status;
}

enum tbd_status tbd_writer_end(struct tbd_writer *w, const struct tbd_msg_end *end,
                               const char *text)
{
    enum tbd_status status;
    size_t begin;

    unlinkat(w->dir, "reserve", 0);
    begin = tbd_file_begin_record(&w->pending, TBD_REC_END);
    tbd_buffer_put(&w->pending, end, sizeof(*end));
    tbd_buffer_put(&w->pending, text, strlen(text) + 1);
    tbd_file_finish_record(&w->pending, begin);
    status = flush_pending(w);
    if (!status)
        put_closed(w);
    return status;
}
