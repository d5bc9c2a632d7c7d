// SPDX-License-Identifier: MIT
/* engine_image.c - see engine_image.h */
#include "query/attach/engine_image.h"

#include "base/layout.h"
#include "format/probe/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE       TBD_PAGE_SIZE
#define MAX_ENGINE (64u << 20)

/* ---- the engine's file ---- */

bool tbd_engine_find_beside(const char *name, char *out, size_t bytes)
{
    static const char *const places[] = { "", "../lib/", "../lib/tbd/" };
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length < 0)
        return false;
    self[length] = '\0';
    *(strrchr(self, '/') + 1) = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if ((size_t)snprintf(out, bytes, "%s%s%s", self, places[i], name) < bytes &&
            access(out, R_OK) == 0)
            return true;
    return false;
}

static int open_beside(const char *name)
{
    char path[PATH_MAX];

    return tbd_engine_find_beside(name, path, sizeof(path)) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

/* It is ours, but a build may be broken off. */
static bool is_whole(const struct tbd_engine_file *file)
{
    const Elf64_Ehdr *header = file->header;

    if (file->count < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phoff > file->count ||
        header->e_phnum * sizeof(Elf64_Phdr) > file->count - header->e_phoff)
        return false;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (file->segments[i].p_type == PT_LOAD &&
            (file->segments[i].p_offset > file->count ||
             file->segments[i].p_filesz > file->count - file->segments[i].p_offset ||
             file->segments[i].p_vaddr < TBD_ENGINE_BASE || file->segments[i].p_memsz > MAX_ENGINE))
            return false;
    return true;
}

void tbd_engine_close(struct tbd_engine_file *file)
{
    munmap(file->bytes, file->count);
}

bool tbd_engine_open(struct tbd_engine_file *out, struct tbd_query_error *error)
{
    int fd = open_beside("tbd-replay");
    struct stat info;

    *out = (struct tbd_engine_file){ .bytes = MAP_FAILED };
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0) {
        out->count = (size_t)info.st_size;
        out->bytes = mmap(NULL, out->count, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (fd >= 0)
        close(fd);
    if (out->bytes == MAP_FAILED)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "tbd-replay is not beside this program: %s",
                               strerror(errno));
    out->header = (const Elf64_Ehdr *)(const void *)out->bytes;
    out->segments = (const Elf64_Phdr *)(const void *)(out->bytes + out->header->e_phoff);
    if (is_whole(out))
        return true;
    munmap(out->bytes, out->count);
    return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "tbd-replay is damaged");
}

/* The word before the entry point (entry_x86_64.S). */
uint64_t tbd_engine_boot_function(const struct tbd_engine_file *file)
{
    uint64_t mark[2], at = file->header->e_entry - sizeof(mark);

    for (unsigned i = 0; i < file->header->e_phnum; i++) {
        const Elf64_Phdr *segment = &file->segments[i];

        if (segment->p_type != PT_LOAD || at < segment->p_vaddr ||
            at + sizeof(mark) > segment->p_vaddr + segment->p_filesz)
            continue;
        memcpy(mark, file->bytes + segment->p_offset + (at - segment->p_vaddr), sizeof(mark));
        return mark[0] == TBD_ENGINE_MAGIC ? mark[1] : 0;
    }
    return 0;
}

/* ---- in the process ---- */

long tbd_remote_map(struct tbd_remote *remote, uint64_t at, uint64_t bytes, int prot, int flags)
{
    const uint64_t arguments[6] = {
        at, bytes, (uint64_t)prot, (uint64_t)(flags | MAP_PRIVATE | MAP_ANONYMOUS), UINT64_MAX, 0
    };

    return tbd_remote_call_system(remote, SYS_mmap, arguments);
}

long tbd_remote_unmap(struct tbd_remote *remote, uint64_t at, uint64_t bytes)
{
    const uint64_t arguments[6] = { at, bytes, 0, 0, 0, 0 };

    return tbd_remote_call_system(remote, SYS_munmap, arguments);
}

static int prot_of(const Elf64_Phdr *segment)
{
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

static long map_segment(struct tbd_remote *remote, const struct tbd_engine_file *file,
                        const Elf64_Phdr *segment)
{
    uint64_t start = segment->p_vaddr & ~(PAGE - 1);
    uint64_t end = (segment->p_vaddr + segment->p_memsz + PAGE - 1) & ~(PAGE - 1);
    const uint64_t protect[6] = { start, end - start, (uint64_t)prot_of(segment), 0, 0, 0 };
    long result =
        tbd_remote_map(remote, start, end - start, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);

    if (result != (long)start)
        return result < 0 ? result : -EEXIST;
    if (!tbd_remote_write(remote, segment->p_vaddr, file->bytes + segment->p_offset,
                          segment->p_filesz))
        return -EFAULT;
    return tbd_remote_call_system(remote, SYS_mprotect, protect);
}

long tbd_engine_map(struct tbd_remote *remote, const struct tbd_engine_file *file)
{
    for (unsigned i = 0; i < file->header->e_phnum; i++) {
        long result =
            file->segments[i].p_type == PT_LOAD ? map_segment(remote, file, &file->segments[i]) : 0;

        if (result < 0)
            return result;
    }
    return 0;
}
