// SPDX-License-Identifier: MIT
/* mapped_files.h - files that the program has mapped as data
 *
 * A file mapped for execution is copied when it is mapped.  From other files the engine sends
 * touched pages at each window's end; a killed program's last window lacks them.  Then, and only
 * then, the files that are still mapped are copied whole.  (Files that may not exist any more then
 * are sent at once: hooks/memory/unlinked_files.h.) */
#ifndef TBD_ORGANIZER_MAPPED_FILES_H
#define TBD_ORGANIZER_MAPPED_FILES_H

#include "format/writer/writer.h"

struct tbd_mapped_file {
    uint64_t start, end;
    uint64_t inode;
    uint32_t device;
    char *path; /* owned */
};

struct tbd_mapped_files {
    struct tbd_mapped_file *files; /* owned */
    size_t count;
    size_t capacity;
};

/* In the order of the stream.  `path` is NUL-terminated.  Without memory a file is forgotten. */
void tbd_mapped_files_add(struct tbd_mapped_files *files, const struct tbd_msg_region *region,
                          const char *path);
void tbd_mapped_files_remove(struct tbd_mapped_files *files, uint64_t start, uint64_t end);
/* Copies what is still mapped and has not been modified since `realtime_ns`. */
void tbd_mapped_files_keep(const struct tbd_mapped_files *files, struct tbd_writer *writer,
                           uint64_t realtime_ns);
void tbd_mapped_files_free(struct tbd_mapped_files *files);

#endif
