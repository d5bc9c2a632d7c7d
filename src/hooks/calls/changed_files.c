// SPDX-License-Identifier: MIT
/* changed_files.c - see changed_files.h
 *
 * Each call that may change a file costs one fstat() more.  The mappings are looked through only when
 * the file is another one than last time, or mappings have changed. */
#include "hooks/calls/changed_files.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/shared.h"
#include "hooks/stream/recording.h"
#include "hooks/table/sys_table.h"

struct file {
    uint32_t device; /* as in struct tbd_msg_region */
    uint64_t inode;
};

enum { MODE_TYPE = 0170000, MODE_REGULAR = 0100000 };

/* struct stat in words of 8 bytes. */
enum { STAT_DEVICE = 0, STAT_INODE = 1, STAT_MODE = 3, STAT_WORDS = 18 };

static bool from_stat(struct file *file, long status, const uint64_t *stat)
{
    if (tbd_sys_failed(status) || (stat[STAT_MODE] & MODE_TYPE) != MODE_REGULAR)
        return false;
    *file = (struct file){ (uint32_t)stat[STAT_DEVICE], stat[STAT_INODE] };
    return true;
}

static bool of_descriptor(struct file *file, uint64_t fd)
{
    uint64_t stat[STAT_WORDS];
    long status = tbd_sys3(__NR_fstat, fd, tbd_sys_pointer(stat), 0);

    return from_stat(file, status, stat);
}

/* `path` is an address in the program: the kernel reads it, and checks it. */
static bool of_path(struct file *file, uint64_t directory, uint64_t path)
{
    uint64_t stat[STAT_WORDS];
    long status = tbd_sys4(__NR_newfstatat, directory, path, tbd_sys_pointer(stat), 0);

    return from_stat(file, status, stat);
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
        return of_path(file, (uint64_t)(int64_t)AT_FDCWD, sys->args[0]);
    if (opens)
        return of_path(file, sys->args[0], sys->args[1]);
    return of_descriptor(file, sys->args[row->args[2].show == TBD_SHOW_INT ? 2 : 0]);
}

static bool is_private_view(const struct tbd_msg_region *map, const struct file *file)
{
    return map->inode == file->inode && map->device == file->device &&
           !(map->map_flags & MAP_SHARED) && !(map->prot & PROT_EXEC) &&
           !(map->flags & TBD_REGION_SHARED);
}

static void share_mappings(const struct file *file)
{
    struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++)
        if (is_private_view(&regions->table[i].map, file))
            tbd_shared_private(&regions->table[i].map);
}

void tbd_changed_files_note(const struct tbd_call *call)
{
    static struct file last;
    static uint64_t changes;
    const uint64_t now = tbd_memory.regions.changes;
    struct file file;

    if (!tbd_recording_has_pages() || !find_file(&file, &call->sys) ||
        (file.inode == last.inode && file.device == last.device && changes == now))
        return;
    last = file;
    changes = now;
    share_mappings(&file);
}
