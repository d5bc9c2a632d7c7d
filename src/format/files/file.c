// SPDX-License-Identifier: MIT
/* file.c - files of records: checked reading and writing
 *
 * Invariants
 * FILE-1  No byte of a mapped file is used before its offset was checked against the file's size.
 *     (not checked: it is what decoding checks of its input)
 * FILE-2  A file that others may change is copied before it is checked: what was checked stays what
 *     it was, and cutting the file short does no harm.  One that only this user may change is
 *     mapped; if it is cut short then, cut_files.h says so. (not checked: test_trace_dir does) */
#include "format/files/file.h"

#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum tbd_status tbd_error_set(struct tbd_error *why, enum tbd_status status, const char *file,
                              uint64_t offset, const char *format, ...)
{
    size_t length = strlen(file);
    va_list args;

    if (!why)
        return status;
    why->status = status;
    why->offset = offset;
    if (length < sizeof(why->file))
        snprintf(why->file, sizeof(why->file), "%s", file);
    else
        snprintf(why->file, sizeof(why->file), "...%s", file + length - (sizeof(why->file) - 4));
    va_start(args, format);
    vsnprintf(why->detail, sizeof(why->detail), format, args);
    va_end(args);
    return status;
}

static uint64_t record_checksum(const struct tbd_record *head, const void *payload)
{
    return XXH3_64bits_withSeed(payload, head->bytes,
                                XXH3_64bits(head, offsetof(struct tbd_record, checksum)));
}

/* ---- reading ---- */

/* Keeps FILE-2. */
static enum tbd_status read_copy(int fd, struct tbd_file *out)
{
    uint8_t *at;

    if (out->size > tbd_memory_most())
        return TBD_NOMEM;
    at = mmap(NULL, out->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return TBD_NOMEM;
    out->bytes = at;
    for (size_t done = 0; done < out->size;) {
        ssize_t got = pread(fd, at + done, out->size - done, (off_t)done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) { /* an error, or it was cut short since fstat() */
            tbd_file_close(out);
            return TBD_IO;
        }
        done += (size_t)got;
    }
    return TBD_OK;
}

static enum tbd_status map_private(int fd, struct tbd_file *out)
{
    void *at = mmap(NULL, out->size, PROT_READ, MAP_PRIVATE, fd, 0);

    if (at == MAP_FAILED)
        return TBD_NOMEM;
    out->bytes = at;
    return TBD_OK;
}

static enum tbd_status take(int fd, const char *name, bool may_have_holes, struct tbd_file *out,
                            struct tbd_error *why)
{
    enum tbd_status status;
    struct stat info;

    errno = 0;
    if (fstat(fd, &info) != 0)
        return tbd_error_set(why, TBD_IO, name, 0, "%s", strerror(errno));
    if (!info.st_size)
        return tbd_error_set(why, TBD_TRUNCATED, name, 0, "the file is empty");
    if (!may_have_holes && tbd_is_sparse(&info))
        return tbd_error_set(
            why, TBD_CORRUPT, name, 0, "it says %llu bytes, of which only %llu are on the disk",
            (unsigned long long)info.st_size, (unsigned long long)info.st_blocks * 512);
    out->size = (size_t)info.st_size;
    status = tbd_is_private(&info) ? map_private(fd, out) : read_copy(fd, out);
    if (status)
        return tbd_error_set(why, status, name, 0, "cannot read its %llu bytes: %s",
                             (unsigned long long)info.st_size,
                             errno ? strerror(errno) : tbd_status_text(status));
    return TBD_OK;
}

enum tbd_status tbd_file_take(int fd, const char *name, struct tbd_file *out, struct tbd_error *why)
{
    bool may_have_holes = true;

    *out = (struct tbd_file){ 0 };
    snprintf(out->path, sizeof(out->path), "%.*s", (int)sizeof(out->path) - 1, name);
    return take(fd, name, may_have_holes, out, why);
}

enum tbd_status tbd_file_map(struct tbd_dir dir, const char *name, struct tbd_file *out,
                             struct tbd_error *why)
{
    bool may_have_holes = false;
    enum tbd_status status;
    char full[4096];
    int fd;

    *out = (struct tbd_file){ 0 };
    snprintf(out->path, sizeof(out->path), "%.*s", (int)sizeof(out->path) - 1, name);
    fd = tbd_open_below(dir.fd, name, O_RDONLY);
    if (fd < 0) {
        status = errno == ENOENT ? TBD_NOTRACE : TBD_IO;
        snprintf(full, sizeof(full), "%s/%s", dir.path, name);
        return tbd_error_set(why, status, full, 0, "%s",
                             errno == EINVAL || errno == EISDIR ? "not a regular file"
                             : errno == ELOOP                   ? "a link, which is not followed"
                                                                : strerror(errno));
    }
    status = take(fd, name, may_have_holes, out, why);
    close(fd);
    return status;
}

enum tbd_status tbd_file_check_header(const struct tbd_file_header *header, enum tbd_file_kind kind,
                                      uint64_t trace_id, const char *path, uint64_t offset,
                                      struct tbd_error *why)
{
    if (memcmp(header->magic, TBD_FILE_MAGIC, sizeof(header->magic)) != 0)
        return tbd_error_set(why, TBD_BADMAGIC, path, offset, "the magic number is wrong");
    /* Checked before the checksum, which another version may compute differently. */
    if (header->major != TBD_FILE_MAJOR)
        return tbd_error_set(why, TBD_UNSUPPORTED, path, offset + 12,
                             "format %u; this program reads format %u", header->major,
                             TBD_FILE_MAJOR);
    if (header->checksum != XXH3_64bits(header, offsetof(struct tbd_file_header, checksum)))
        return tbd_error_set(why, TBD_CHECKSUM, path, offset, "in the file header");
    if (header->need_features & ~(uint64_t)TBD_NEEDS_KNOWN)
        return tbd_error_set(why, TBD_UNSUPPORTED, path, offset + 32, "needs features %#llx",
                             (unsigned long long)header->need_features);
    if (header->kind != kind)
        return tbd_error_set(why, TBD_CORRUPT, path, offset + 8, "file kind %u where %u belongs",
                             header->kind, kind);
    if (header->header_bytes < sizeof(*header) || header->header_bytes % 8)
        return tbd_error_set(why, TBD_CORRUPT, path, offset + 16, "header length %u",
                             header->header_bytes);
    if (trace_id && header->trace_id != trace_id)
        return tbd_error_set(why, TBD_CORRUPT, path, offset + 24, "it belongs to another trace");
    return TBD_OK;
}

enum tbd_status tbd_file_open(struct tbd_dir dir, const char *name, enum tbd_file_kind kind,
                              uint64_t trace_id, struct tbd_file *out, struct tbd_error *why)
{
    enum tbd_status status = tbd_file_map(dir, name, out, why);
    const struct tbd_file_header *header;

    if (status)
        return status;
    header = tbd_file_header(out);
    if (out->size < sizeof(*header))
        status = tbd_error_set(why, TBD_TRUNCATED, name, out->size, "in the file header");
    else
        status = tbd_file_check_header(header, kind, trace_id, name, 0, why);
    if (!status && header->header_bytes > out->size)
        status = tbd_error_set(why, TBD_TRUNCATED, name, out->size, "in the file header");
    if (status) {
        tbd_file_close(out);
        return status;
    }
    out->next = header->header_bytes;
    return TBD_OK;
}

void tbd_file_close(struct tbd_file *file)
{
    if (file->bytes)
        munmap((void *)(uintptr_t)file->bytes, file->size);
    file->bytes = NULL;
}

const struct tbd_file_header *tbd_file_header(const struct tbd_file *file)
{
    return (const void *)file->bytes;
}

enum tbd_status tbd_file_next(struct tbd_file *file, struct tbd_record_view *out,
                              struct tbd_error *why)
{
    size_t left = file->size - file->next;
    struct tbd_record head;

    if (!left)
        return TBD_NOTFOUND;
    if (left < sizeof(head))
        return tbd_error_set(why, TBD_TRUNCATED, file->path, file->next, "in a record's head");
    memcpy(&head, file->bytes + file->next, sizeof(head));
    if (head.bytes > left - sizeof(head))
        return tbd_error_set(why, TBD_TRUNCATED, file->path, file->next,
                             "a record of %llu bytes reaches past the end",
                             (unsigned long long)head.bytes);
    out->type = head.type;
    out->bytes = head.bytes;
    out->payload = file->bytes + file->next + sizeof(head);
    out->offset = file->next + sizeof(head);
    if (head.checksum != record_checksum(&head, out->payload))
        return tbd_error_set(why, TBD_CHECKSUM, file->path, file->next, "in a record of type %u",
                             head.type);
    tbd_file_pass(file, out);
    return TBD_OK;
}

void tbd_file_pass(struct tbd_file *file, const struct tbd_record_view *record)
{
    file->next = record->offset + record->bytes;
    file->next += -file->next & 7;
    if (file->next > file->size)
        file->next = file->size;
}

/* ---- writing ---- */

struct tbd_file_header tbd_file_make_header(enum tbd_file_kind kind, uint32_t window,
                                            uint64_t trace_id)
{
    struct tbd_file_header header = {
        .kind = kind,
        .major = TBD_FILE_MAJOR,
        .minor = TBD_FILE_MINOR,
        .header_bytes = sizeof(header),
        .window = window,
        .trace_id = trace_id,
    };

    memcpy(header.magic, TBD_FILE_MAGIC, sizeof(header.magic));
    header.checksum = XXH3_64bits(&header, offsetof(struct tbd_file_header, checksum));
    return header;
}

void tbd_file_put_header(struct tbd_buffer *out, enum tbd_file_kind kind, uint32_t window,
                         uint64_t trace_id)
{
    struct tbd_file_header header = tbd_file_make_header(kind, window, trace_id);

    tbd_buffer_put(out, &header, sizeof(header));
}

void tbd_file_need(struct tbd_buffer *file, uint64_t features)
{
    struct tbd_file_header header;

    if (file->used < sizeof(header))
        return;
    memcpy(&header, file->bytes, sizeof(header));
    header.need_features |= features;
    header.checksum = XXH3_64bits(&header, offsetof(struct tbd_file_header, checksum));
    memcpy(file->bytes, &header, sizeof(header));
}

size_t tbd_file_begin_record(struct tbd_buffer *out, enum tbd_record_type type)
{
    struct tbd_record head = { .type = type };
    size_t begin = out->used;

    tbd_buffer_put(out, &head, sizeof(head));
    return begin;
}

void tbd_file_finish_record(struct tbd_buffer *out, size_t begin)
{
    struct tbd_record head;

    if (out->failed)
        return;
    memcpy(&head, out->bytes + begin, sizeof(head));
    head.bytes = out->used - begin - sizeof(head);
    head.checksum = record_checksum(&head, out->bytes + begin + sizeof(head));
    memcpy(out->bytes + begin, &head, sizeof(head));
    tbd_buffer_align8(out);
}

void tbd_file_renew_record(struct tbd_buffer *out, size_t begin)
{
    struct tbd_record head;

    if (out->failed)
        return;
    memcpy(&head, out->bytes + begin, sizeof(head));
    head.checksum = record_checksum(&head, out->bytes + begin + sizeof(head));
    memcpy(out->bytes + begin, &head, sizeof(head));
}

void tbd_file_put_record(struct tbd_buffer *out, enum tbd_record_type type, const void *payload,
                         size_t bytes)
{
    size_t begin = tbd_file_begin_record(out, type);

    tbd_buffer_put(out, payload, bytes);
    tbd_file_finish_record(out, begin);
}
