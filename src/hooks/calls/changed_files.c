// SPDX-License-Identifier: MIT
/* changed_files.c - see changed_files.h
 *
 * Without a mapping that could show the change, nothing is asked.  Else each call that may change a file
 * costs one statx() more (a socket or pipe has no file that is mapped, which costs less to see), and the mappings are looked through only when the file is another one than
 * last time, or mappings have changed.  The file's times are not asked for: the kernel gives a file
 * whose times were asked for finer ones at the next write, which costs more than the write. */
#include "hooks/calls/changed_files.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/shared.h"
#include "hooks/stream/recording.h"
#include "hooks/table/sys_table.h"

#include <elf.h>
#include <linux/stat.h> /* struct statx */

struct file {
    uint32_t device; /* as in struct tbd_msg_region */
    uint64_t inode;
};

enum { MODE_WRITE = 0222 };

/* `path` is an address in the program: the kernel reads it, and checks it.  "": the descriptor's file. */
static bool ask(struct statx *status, uint64_t descriptor, uint64_t path, uint64_t what)
{
    return !tbd_sys_failed(tbd_sys6(__NR_statx, descriptor, path, AT_EMPTY_PATH, what,
                                    tbd_sys_pointer(status), 0)) &&
           (status->stx_mode & S_IFMT) == S_IFREG;
}

static struct file file_of(const struct statx *status)
{
    uint64_t minor = status->stx_dev_minor;

    return (struct file){ .inode = status->stx_ino,
                          .device = (uint32_t)((minor & 0xff) | status->stx_dev_major << 8 |
                                               (minor & ~0xffull) << 12) };
}

static bool describe(struct file *file, uint64_t descriptor, uint64_t path)
{
    struct statx status;

    if (!ask(&status, descriptor, path, STATX_TYPE | STATX_INO))
        return false;
    *file = file_of(&status);
    return true;
}

/* Opening a file can cut it (O_TRUNC), and lets this process, or a child of it, change it later.  The
 * table's row says where the flags are: in an argument, in a structure, or nowhere (creat). */
static bool may_change(const struct tbd_sys_call *sys, const struct tbd_sys_row *row)
{
    for (unsigned i = 0; i < 6; i++)
        if (row->args[i].set == TBD_SET_OPEN)
            return (sys->args[i] & O_ACCMODE) != O_RDONLY || sys->args[i] & O_TRUNC;
    return true;
}

/* Sockets, pipes and terminals have no position, and no mappings; to ask for it takes a fifth of a statx(). */
static bool has_no_position(uint64_t descriptor)
{
    return tbd_sys3(__NR_lseek, descriptor, 0, SEEK_CUR) == -ESPIPE;
}

static bool describe_descriptor(struct file *file, uint64_t descriptor)
{
    return !has_no_position(descriptor) && describe(file, descriptor, tbd_sys_pointer(""));
}

static bool find_file(struct file *file, const struct tbd_sys_call *sys)
{
    const struct tbd_sys_row *row = tbd_sys_row(sys->number);
    bool opens = row->flags & TBD_SYS_OPENS;

    if (opens && !may_change(sys, row))
        return false;
    if (row->args[0].show == TBD_SHOW_STR)
        return describe(file, (uint64_t)(int64_t)AT_FDCWD, sys->args[0]);
    if (opens)
        return describe(file, sys->args[0], sys->args[1]);
    return describe_descriptor(file, sys->args[row->args[2].show == TBD_SHOW_FD ? 2 : 0]);
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

/* Files that have changed, or may change now, while they were mapped privately.  If there are too many
 * of them, all do. */
#define MOST_FILES 64u
static struct {
    struct file file[MOST_FILES];
    unsigned count;
} changing;

static bool is_changing(const struct file *file)
{
    for (unsigned i = 0; i < changing.count; i++)
        if (changing.file[i].inode == file->inode && changing.file[i].device == file->device)
            return true;
    return changing.count == MOST_FILES;
}

static void remember(const struct file *file)
{
    if (!is_changing(file))
        changing.file[changing.count++] = *file;
}

static void share_mappings(const struct file *file)
{
    struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++) {
        struct tbd_msg_region *map = &regions->table[i].map;

        if (map->inode == file->inode && map->device == file->device && is_private_view(map) &&
            !is_beside_code(regions, i)) {
            remember(file);
            tbd_shared_private(map);
        }
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

/* ---- files that are being mapped ---- */

/* File times may be a tick late. */
#define TICK_NS 20000000ull
#define SECOND  1000000000ull

/* Files that nobody may write, such as what git keeps, are written once. */
static bool was_written_lately(const struct statx *status)
{
    uint64_t modified =
        (uint64_t)status->stx_mtime.tv_sec * SECOND + status->stx_mtime.tv_nsec + TICK_NS;

    return status->stx_mode & MODE_WRITE && modified >= tbd_recording.realtime_ns;
}

static bool can_write(uint64_t descriptor)
{
    long flags = tbd_sys3(__NR_fcntl, descriptor, F_GETFL, 0);

    return !tbd_sys_failed(flags) && (flags & O_ACCMODE) == O_RDWR;
}

/* Sealed memory does not change. */
static bool is_sealed(uint64_t descriptor)
{
    long seals = tbd_sys3(__NR_fcntl, descriptor, F_GET_SEALS, 0);

    return !tbd_sys_failed(seals) && seals & F_SEAL_WRITE;
}

/* The dynamic linker maps a library's data first, and its code beside it later. */
static bool is_program(uint64_t descriptor)
{
    char magic[SELFMAG];

    return tbd_sys6(__NR_pread64, descriptor, tbd_sys_pointer(magic), SELFMAG, 0, 0, 0) ==
               SELFMAG &&
           !memcmp(magic, ELFMAG, SELFMAG);
}

static bool is_mapped_writable(const struct file *file)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;

        if (map->inode == file->inode && map->device == file->device &&
            map->map_flags & MAP_SHARED && map->prot & PROT_WRITE)
            return true;
    }
    return false;
}

bool tbd_changed_files_is_likely(uint64_t descriptor)
{
    struct statx status;
    struct file file;

    if (!tbd_recording_has_pages() || !ask(&status, descriptor, tbd_sys_pointer(""),
                                           STATX_TYPE | STATX_INO | STATX_MODE | STATX_MTIME))
        return false;
    file = file_of(&status);
    if (!is_changing(&file) && !is_mapped_writable(&file) && !was_written_lately(&status) &&
        !can_write(descriptor))
        return false;
    if (is_sealed(descriptor) || is_program(descriptor))
        return false;
    remember(&file);
    return true;
}

void tbd_changed_files_map_writable(uint64_t descriptor)
{
    struct file file;

    if (tbd_recording_has_pages() && any_view(&tbd_memory.regions) &&
        describe(&file, descriptor, tbd_sys_pointer("")))
        share_mappings(&file);
}

void tbd_changed_files_child(void)
{
    struct tbd_regions *regions = &tbd_memory.regions;

    if (!tbd_recording_has_pages() || !changing.count)
        return;
    for (size_t i = 0; i < regions->count; i++) {
        struct tbd_msg_region *map = &regions->table[i].map;
        struct file file = { map->device, map->inode };

        if (is_private_view(map) && is_changing(&file) && !is_beside_code(regions, i))
            tbd_shared_private(map);
    }
}
