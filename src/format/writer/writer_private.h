// SPDX-License-Identifier: MIT
/* writer_private.h - struct tbd_writer: for the files that write traces */
#ifndef TBD_FORMAT_WRITER_PRIVATE_H
#define TBD_FORMAT_WRITER_PRIVATE_H

#include "format/files/file.h"
#include "format/writer/writer.h"

#include <sys/types.h>

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
    const struct tbd_kept_modules *kept; /* NULL: there is no other trace */
    /* 1 + number of the folder of windows that was made last; atomic: several write windows */
    uint32_t folders;
    /* Owned, and may be NULL: memory for the next window's file; atomic: several write windows */
    struct tbd_buffer *spare;
    bool has_reserve; /* WRITER-3 */
    bool started;
    bool is_reopened; /* tbd_writer_open() */
    bool has_changed; /* ... and the index has grown since */
    bool has_let_go;  /* tbd_writer_let_go() */
};

/* Appends to a file; keeps WRITER-2. */
TBD_MUST_CHECK enum tbd_status tbd_writer_append(int fd, off_t *size,
                                                 const struct tbd_buffer *data);
/* Writes the records that wait for the index. */
TBD_MUST_CHECK enum tbd_status tbd_writer_flush(struct tbd_writer *w);
void tbd_writer_close(int fd); /* negative is fine */

#endif
