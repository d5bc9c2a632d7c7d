// SPDX-License-Identifier: MIT
/* file.h - files of records (disk.h): checked reading of a whole mapped file, and writing
 *
 * A mapped file is hostile: tbd_file_open() checks its header; tbd_file_next() checks each record's
 * offset, length and checksum before it gives out the payload. */
#ifndef TBD_FORMAT_FILE_H
#define TBD_FORMAT_FILE_H

#include "format/files/codec.h"
#include "format/files/disk.h"
#include "format/files/trace_dir.h"

struct tbd_file {
    const uint8_t *bytes; /* mapped; NULL when closed */
    size_t size;
    size_t next; /* offset of the next record */
    char path[256];
};

struct tbd_record_view {
    uint32_t type;
    uint64_t bytes;
    const uint8_t *payload; /* 8-aligned, borrowed until the file is closed */
    uint64_t offset;        /* of the payload in the file */
};

/* Fills *why (may be NULL) and returns `status`. */
enum tbd_status tbd_error_set(struct tbd_error *why, enum tbd_status status, const char *file,
                              uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 5, 6), cold));

/* Maps `name` below the directory and checks the header.  `trace_id` 0 accepts any. */
TBD_MUST_CHECK enum tbd_status tbd_file_open(struct tbd_dir dir, const char *name,
                                             enum tbd_file_kind kind, uint64_t trace_id,
                                             struct tbd_file *out, struct tbd_error *why);
/* The same without a header: any file. */
TBD_MUST_CHECK enum tbd_status tbd_file_map(struct tbd_dir dir, const char *name,
                                            struct tbd_file *out, struct tbd_error *why);
/* ... one that is open already, and may have holes. */
TBD_MUST_CHECK enum tbd_status tbd_file_take(int fd, const char *name, struct tbd_file *out,
                                             struct tbd_error *why);
void tbd_file_close(struct tbd_file *file);
const struct tbd_file_header *tbd_file_header(const struct tbd_file *file);

/* Next record; TBD_NOTFOUND at the end of the file, TBD_TRUNCATED when the file ends in a
 * record.  Unknown optional records are skipped by the caller. */
TBD_MUST_CHECK enum tbd_status tbd_file_next(struct tbd_file *file, struct tbd_record_view *out,
                                             struct tbd_error *why);
/* After TBD_CHECKSUM, which fills *out all the same: goes on after this record. */
void tbd_file_pass(struct tbd_file *file, const struct tbd_record_view *record);

TBD_MUST_CHECK enum tbd_status tbd_file_check_header(const struct tbd_file_header *header,
                                                     enum tbd_file_kind kind, uint64_t trace_id,
                                                     const char *path, uint64_t offset,
                                                     struct tbd_error *why);

/* ---- writing: into a buffer ---- */
void tbd_file_put_header(struct tbd_buffer *out, enum tbd_file_kind kind, uint32_t window,
                         uint64_t trace_id);
struct tbd_file_header tbd_file_make_header(enum tbd_file_kind kind, uint32_t window,
                                            uint64_t trace_id);
/* Sets need_features in the header that begins the buffer. */
void tbd_file_need(struct tbd_buffer *file, uint64_t features);
void tbd_file_put_record(struct tbd_buffer *out, enum tbd_record_type type, const void *payload,
                         size_t bytes);
/* Begin and end a record; its payload is appended between the two calls. */
size_t tbd_file_begin_record(struct tbd_buffer *out, enum tbd_record_type type);
void tbd_file_finish_record(struct tbd_buffer *out, size_t begin);
/* Other bytes have been written into the payload of a finished record. */
void tbd_file_renew_record(struct tbd_buffer *out, size_t begin);

#endif
