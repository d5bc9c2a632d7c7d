// SPDX-License-Identifier: MIT
/* mapped_files.c - see mapped_files.h
 *
 * MAPPED_FILES-1  An entry is one mapping, or the part that munmap left.  If munmap cuts a mapping
 *     in the middle, its first part stands for both, as they are the same file. */
#include "organizer/mapped_files.h"

#include "base/assert.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define LARGEST_KEPT (256ll << 20)

void tbd_mapped_files_add(struct tbd_mapped_files *files, const struct tbd_msg_region *region,
                          const char *path)
{
    char *copy;

    if (!region->inode || *path != '/' || region->prot & PROT_EXEC ||
        (region->map_flags & MAP_SHARED && region->prot & PROT_WRITE))
        return;
    tbd_mapped_files_remove(files, region->start, region->end); /* mprotect tells of it again */
    copy = strdup(path);
    if (!copy ||
        !tbd_array_grow(&files->files, files->count, &files->capacity, sizeof(*files->files))) {
        free(copy);
        return;
    }
    files->files[files->count++] = (struct tbd_mapped_file){
        .start = region->start,
        .end = region->end,
        .inode = region->inode,
        .device = region->device,
        .path = copy,
    };
}

void tbd_mapped_files_remove(struct tbd_mapped_files *files, uint64_t start, uint64_t end)
{
    size_t kept = 0;

    for (size_t i = 0; i < files->count; i++) {
        struct tbd_mapped_file *file = &files->files[i];

        if (file->start >= start && file->end <= end) {
            free(file->path);
            continue;
        }
        if (file->start >= start && file->start < end)
            file->start = end;
        else if (file->end > start && file->end <= end)
            file->end = start;
        TBD_INVARIANT("MAPPED_FILES-1", file->start < file->end);
        files->files[kept++] = *file;
    }
    files->count = kept;
}

static bool is_unchanged(const struct tbd_mapped_file *file, uint64_t realtime_ns)
{
    struct stat st;
    uint64_t modified;

    if (stat(file->path, &st) || st.st_ino != file->inode || st.st_size > LARGEST_KEPT)
        return false;
    modified = (uint64_t)st.st_mtim.tv_sec * 1000000000ull + (uint64_t)st.st_mtim.tv_nsec;
    return modified < realtime_ns;
}

void tbd_mapped_files_keep(const struct tbd_mapped_files *files, struct tbd_writer *writer,
                           uint64_t realtime_ns)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct tbd_mapped_file *file = &files->files[i];

        if (is_unchanged(file, realtime_ns))
            (void)tbd_writer_module(writer, file->path, file->inode, file->device);
    }
}

void tbd_mapped_files_free(struct tbd_mapped_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->files[i].path);
    free(files->files);
    *files = (struct tbd_mapped_files){ 0 };
}
