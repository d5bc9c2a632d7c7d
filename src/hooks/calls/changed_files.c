// SPDX-License-Identifier: MIT
/* changed_files.c - see changed_files.h
 *
 * Without a mapping that could show the change, nothing is asked.  Else each call that may change a file
 * costs one statx() more, and the mappings are looked through only when the file is another one than
 * last time, or mappings have changed.  The file's times are not asked for: the kernel gives a file
 * whose times were asked for finer ones at the next write, which costs more than the write. */
#include "hooks/calls/changed_files.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/shared.h"
#include "hooks/stream/recording.h"
#include "hooks/table/sys_table.h"

#include <linux/stat.h> /* struct statx */

struct file {
    uint32_t device; /* as in struct tbd_msg_region */
    uint64_t inode;
};

enum { MODE_TYPE = 0170000, MODE_REGULAR = 0100000 };

/* `path` is an address in the program: the kernel reads it, and checks it.  "": the descriptor's file. */
static bool describe(struct file *file, uint64_t descriptor, uint64_t path)
{
    struct statx status;
    uint64_t minor;

    if (tbd_sys_failed(tbd_sys6(__NR_statx, descriptor, path, AT_EMPTY_PATH, STATX_TYPE | STATX_INO,
                                tbd_sys_pointer(&status), 0)) ||
        (status.stx_mode & MODE_TYPE) != MODE_REGULAR)
        return false;
    minor = status.stx_dev_minor;
    file->inode = status.stx_ino;
    file->device =
        (uint32_t)((minor & 0xff) | status.stx_dev_major << 8 | (minor & ~0xffull) << 12);
    return true;
}

/* Opening a file can cut it: O_TRUNC.  The table's row says where the flags are: in an argument, in a
 * structure, or nowhere (creat). */
static bool may_cut(const struct tbd_sys_call *sys, const struct tbd_sys_row *row)
{
    for (unsigned i = 0; i < 6; i++)
        if (row->args[i].set == TBD_SET_OPEN)
            return sys->args[i] & O_TRUNC;
    return true;
}

static bool find_file(struct file *file, const struct tbd_sys_call *sys)
{
    const struct tbd_sys_row *row = tbd_sys_row(sys->number);
    bool opens = row->flags & TBD_SYS_OPENS;

    if (opens && !may_cut(sys, row))
        return false;
    if (row->args[0].show == TBD_SHOW_STR)
        return describe(file, (uint64_t)(int64_t)AT_FDCWD, sys->args[0]);
    if (opens)
        return describe(file, sys->args[0], sys->args[1]);
    return describe(file, sys->args[row->args[2].show == TBD_SHOW_INT ? 2 : 0],
                    tbd_sys_pointer(""));
}

static bool is_private_view(const struct tbd_msg_region *map)
{
    return map->inode && !(map->map_flags & MAP_SHARED) && !(map->prot & PROT_EXEC) &&
           !(map->flags & TBD_REGION_SHARED);
}

/* The segments of a program or library lie side by side. */
#define SEGMENTS 4u

static bool is_beside_code(const struct tbd_regions *regions, size_t index)
{
    const struct tbd_msg_region *map = &regions->table[index].map;

    for (size_t i = index < SEGMENTS ? 0 : index - SEGMENTS;
         i < regions->count && i <= index + SEGMENTS; i++) {
        const struct tbd_msg_region *other = &regions->table[i].map;

        if (other->prot & PROT_EXEC && other->inode == map->inode && other->device == map->device)
            return true;
    }
    return false;
}

static bool any_view(const struct tbd_regions *regions)
{
    for (size_t i = 0; i < regions->count; i++)
        if (is_private_view(&regions->table[i].map) && !is_beside_code(regions, i))
            return true;
    return false;
}

static void share_mappings(const struct file *file)
{
    struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++) {
        struct tbd_msg_region *map = &regions->table[i].map;

        if (map->inode == file->inode && map->device == file->device && is_private_view(map) &&
            !is_beside_code(regions, i))
            tbd_shared_private(map);
    }
}

void tbd_changed_files_note(const struct tbd_call *call)
{
    static struct {
        uint64_t changes; /* of the mappings, when `any_view` was true or not */
        bool any_view;
        struct file last;
    } known;
    const struct tbd_regions *regions = &tbd_memory.regions;
    struct file file;

    if (!tbd_recording_has_pages())
        return;
    if (known.changes != regions->changes) {
        known.changes = regions->changes;
        known.any_view = any_view(regions);
        known.last = (struct file){ 0 };
    }
    if (!known.any_view || !find_file(&file, &call->sys) ||
        (file.inode == known.last.inode && file.device == known.last.device))
        return;
    known.last = file;
    share_mappings(&file);
}
