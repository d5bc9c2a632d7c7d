// SPDX-License-Identifier: MIT
/* ring_files.c - the files of a dump's modules (ring_files.h) */
#include "query/rings/ring_files.h"

#include "base/safe_stream.h"
#include "base/string.h"
#include "format/files/trace_dir.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMPARED = 64, BLOCK_BYTES = 4096 };

/* What it says of the block; false: it cannot be compared. */
static bool compare(const struct tbd_rings *ring, struct tbd_elf_file *file, uint64_t bias,
                    const struct tbd_crash_block *block, bool *out_is_same)
{
    uint8_t code[BLOCK_BYTES];

    if (block->code_offset == TBD_NO_CODE || block->code_bytes == 0 ||
        block->code_bytes > sizeof(code))
        return false;
    *out_is_same =
        tbd_elf_read(file, block->start - bias, code, block->code_bytes) == block->code_bytes &&
        memcmp(code, ring->dump.code + block->code_offset, block->code_bytes) == 0;
    return true;
}

/* Is it the file that ran?  Some of its code may have been changed in memory. */
static bool is_same(const struct tbd_rings *ring, uint32_t module, struct tbd_elf_file *file)
{
    const struct tbd_crash_module *at = &ring->dump.modules[module];
    unsigned compared = 0, same = 0;
    uint64_t bias;

    if (!tbd_elf_bias(file, at->start, at->file_offset, &bias))
        return false;
    for (uint32_t i = 0; i < ring->dump.head->block_count && compared < COMPARED; i++) {
        bool is_equal = false;

        if (ring->dump.blocks[i].module != module ||
            !compare(ring, file, bias, &ring->dump.blocks[i], &is_equal))
            continue;
        compared++;
        same += is_equal;
    }
    return compared == 0 || 2 * same > compared;
}

/* Copies are called 001-NAME. */
static bool is_copy_of(const char *name, const char *wanted)
{
    size_t digits = 0;

    while (isdigit((unsigned char)name[digits]))
        digits++;
    return digits != 0 && name[digits] == '-' && strcmp(name + digits + 1, wanted) == 0;
}

/* The dump's own copy. */
static struct tbd_elf_file *open_copy(const struct tbd_rings *ring, uint32_t module)
{
    const char *path = ring->dump.modules[module].path;
    int dir = tbd_dir_open(ring->path);
    DIR *list = dir < 0 ? NULL : tbd_dir_list(dir, "modules");
    struct tbd_elf_file *file = NULL;
    const struct dirent *entry;
    char name[300];

    while (list != NULL && file == NULL && (entry = readdir(list)) != NULL) {
        if (!is_copy_of(entry->d_name, tbd_base_name(path)))
            continue;
        snprintf(name, sizeof(name), "modules/%s", entry->d_name);
        if (tbd_elf_open_copy(dir, name, path, &file) != TBD_OK)
            file = NULL;
        else if (!is_same(ring, module, file)) {
            tbd_elf_close(file);
            file = NULL;
        }
    }
    if (list != NULL)
        closedir(list);
    if (dir >= 0)
        close(dir);
    return file;
}

static struct tbd_elf_file *find(const struct tbd_rings *ring, uint32_t module)
{
    struct tbd_elf_file *file, *copy;
    bool is_there = tbd_elf_open(ring->dump.modules[module].path, &file) == TBD_OK;

    if (is_there && is_same(ring, module, file))
        return file;
    copy = open_copy(ring, module);
    if (is_there) {
        tbd_elf_close(file);
        if (copy == NULL)
            fprintf(stderr, "tbdq: note: %s is not the file that ran: no names from it\n",
                    tbd_shown(ring->dump.modules[module].path));
    }
    return copy;
}

struct tbd_elf_file *tbd_rings_file(struct tbd_rings *ring, uint32_t module)
{
    if (!ring->tried[module])
        ring->files[module] = find(ring, module);
    ring->tried[module] = true;
    return ring->files[module];
}
