// SPDX-License-Identifier: MIT
/* code_files.c - see code_files.h
 *
 * Two lists: one is asked, the other one is filled.  A list's number is 0 while it is being filled; who has read from
 * it sees by the number whether it was the same list all the time.
 *
 * CODE_FILES-1  A file's headers are hostile: they are read by the kernel, and what they say is only an address to
 *     read from. (not checked: tbd_caller_rule_find() reads by its reader) */
#include "hooks/probes/code_files.h"

#include "base/calling.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "hooks/probes/probe_make.h"
#include "patcher/native_patch.h"

#include <elf.h>

#define MAX_FILES    4096u
#define MAX_SEGMENTS 64u

struct file_list {
    uint32_t look; /* atomic; 0: it is being filled */
    uint32_t count;
    struct tbd_code_file file[MAX_FILES];
};

static struct {
    struct file_list *asked; /* atomic; NULL: nobody has looked */
    struct file_list *filled;
    struct file_list *list[2];
    uint32_t looks;
    /* of the file whose mappings are being noted */
    uint64_t inode, table;
    uint32_t device;
} files;

/* ---- the keeper ---- */

bool tbd_code_files_begin(void)
{
    for (unsigned i = 0; i < 2; i++) {
        files.list[i] = tbd_probe_memory(sizeof(struct file_list));
        if (!files.list[i])
            return false;
    }
    return true;
}

void tbd_code_files_look(void)
{
    files.filled = files.list[files.asked == files.list[0]];
    __atomic_store_n(&files.filled->look, 0, __ATOMIC_SEQ_CST);
    files.filled->count = 0;
    files.inode = files.device = 0;
    files.table = 0;
}

/* Where the table lies that the headers at `base` name. */
static uint64_t find_table(int memory, uint64_t base)
{
    Elf64_Phdr segments[MAX_SEGMENTS];
    Elf64_Ehdr head;
    uint64_t first = UINT64_MAX, table = 0;
    size_t bytes;

    if (tbd_native_read(memory, base, (uint8_t *)&head, sizeof(head)) != sizeof(head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(segments[0]) ||
        !head.e_phnum || head.e_phnum > MAX_SEGMENTS)
        return 0;
    bytes = head.e_phnum * sizeof(segments[0]);
    if (tbd_native_read(memory, base + head.e_phoff, (uint8_t *)segments, bytes) != bytes)
        return 0;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr < first)
            first = segments[i].p_vaddr;
        if (segments[i].p_type == PT_GNU_EH_FRAME)
            table = segments[i].p_vaddr;
    }
    return table && first != UINT64_MAX ? base + (table - (first & ~4095ull)) : 0;
}

static bool is_vdso(const char *path)
{
    return strcmp(path, "[vdso]") == 0;
}

void tbd_code_files_note(const struct tbd_msg_region *map, const char *path, int memory)
{
    struct file_list *list = files.filled;

    if (!map->inode && !is_vdso(path))
        return;
    if (!map->file_offset || map->inode != files.inode || map->device != files.device)
        files.table = map->file_offset ? 0 : find_table(memory, map->start);
    files.inode = map->inode;
    files.device = map->device;
    if (map->prot & PROT_EXEC && list->count < MAX_FILES)
        list->file[list->count++] = (struct tbd_code_file){ .start = map->start,
                                                            .end = map->end,
                                                            .file_offset = map->file_offset,
                                                            .module = tbd_calling_module(path),
                                                            .table = files.table };
}

static bool is_as_before(void)
{
    const struct file_list *before = files.asked, *now = files.filled;

    return before && before->count == now->count &&
           memcmp(before->file, now->file, now->count * sizeof(now->file[0])) == 0;
}

void tbd_code_files_publish(void)
{
    if (is_as_before())
        return;
    if (!++files.looks)
        ++files.looks;
    __atomic_store_n(&files.filled->look, files.looks, __ATOMIC_RELEASE);
    __atomic_store_n(&files.asked, files.filled, __ATOMIC_RELEASE);
}

/* ---- handlers ---- */

static uint32_t place_of(const struct file_list *list, uint64_t address)
{
    uint32_t low = 0, high = list->count < MAX_FILES ? list->count : MAX_FILES;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (list->file[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tbd_code_file_of(uint64_t address, struct tbd_code_file *out, uint32_t *out_look)
{
    const struct file_list *list = __atomic_load_n(&files.asked, __ATOMIC_ACQUIRE);
    uint32_t look, at;

    if (!list)
        return false;
    look = __atomic_load_n(&list->look, __ATOMIC_ACQUIRE);
    at = place_of(list, address);
    if (!look || at >= list->count || at >= MAX_FILES)
        return false;
    *out = list->file[at];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    *out_look = look;
    return __atomic_load_n(&list->look, __ATOMIC_RELAXED) == look && out->start <= address &&
           address < out->end;
}
