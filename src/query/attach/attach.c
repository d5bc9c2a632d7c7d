// SPDX-License-Identifier: MIT
/* attach.c - see attach.h */
#include "query/attach/attach.h"

#include "base/layout.h"
#include "query/attach/attach_check.h"
#include "query/attach/remote_thread.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE          TBD_PAGE_SIZE
#define ENGINE_MAGIC  0x656e69676e656474ull /* hooks/boot/boot.h */
#define MAX_ENGINE    (64u << 20)
#define SCRATCH_BYTES (64u << 10)
#define AUXV_BYTES    1024u

/* ---- the engine's file ---- */

struct engine_file {
    uint8_t *bytes; /* mapped */
    size_t count;
    const Elf64_Ehdr *header;
    const Elf64_Phdr *segments;
};

static int open_beside(const char *name)
{
    static const char *const places[] = { "", "../lib/", "../lib/tbd/" };
    char self[PATH_MAX], path[PATH_MAX + 32];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int fd = -1;

    if (length < 0)
        return -1;
    self[length] = '\0';
    *(strrchr(self, '/') + 1) = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && fd < 0; i++) {
        snprintf(path, sizeof(path), "%s%s%s", self, places[i], name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    return fd;
}

/* It is ours, but a build may be broken off. */
static bool is_whole(const struct engine_file *file)
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

static bool open_engine(struct engine_file *out, struct tbd_query_error *error)
{
    int fd = open_beside("tbd-replay");
    struct stat info;

    *out = (struct engine_file){ .bytes = MAP_FAILED };
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

/* The word before the entry point is the boot function's address (entry_x86_64.S); 0: none. */
static uint64_t boot_function(const struct engine_file *file)
{
    uint64_t mark[2], at = file->header->e_entry - sizeof(mark);

    for (unsigned i = 0; i < file->header->e_phnum; i++) {
        const Elf64_Phdr *segment = &file->segments[i];

        if (segment->p_type != PT_LOAD || at < segment->p_vaddr ||
            at + sizeof(mark) > segment->p_vaddr + segment->p_filesz)
            continue;
        memcpy(mark, file->bytes + segment->p_offset + (at - segment->p_vaddr), sizeof(mark));
        return mark[0] == ENGINE_MAGIC ? mark[1] : 0;
    }
    return 0;
}

/* ---- in the process ---- */

static long map(struct tbd_remote *remote, uint64_t at, uint64_t bytes, int prot, int flags)
{
    const uint64_t arguments[6] = {
        at, bytes, (uint64_t)prot, (uint64_t)(flags | MAP_PRIVATE | MAP_ANONYMOUS), UINT64_MAX, 0
    };

    return tbd_remote_call_system(remote, SYS_mmap, arguments);
}

static long unmap(struct tbd_remote *remote, uint64_t at, uint64_t bytes)
{
    const uint64_t arguments[6] = { at, bytes, 0, 0, 0, 0 };

    return tbd_remote_call_system(remote, SYS_munmap, arguments);
}

static int prot_of(const Elf64_Phdr *segment)
{
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

static long map_segment(struct tbd_remote *remote, const struct engine_file *file,
                        const Elf64_Phdr *segment)
{
    uint64_t start = segment->p_vaddr & ~(PAGE - 1);
    uint64_t end = (segment->p_vaddr + segment->p_memsz + PAGE - 1) & ~(PAGE - 1);
    const uint64_t protect[6] = { start, end - start, (uint64_t)prot_of(segment), 0, 0, 0 };
    long result = map(remote, start, end - start, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);

    if (result != (long)start)
        return result < 0 ? result : -EEXIST;
    if (!tbd_remote_write(remote, segment->p_vaddr, file->bytes + segment->p_offset,
                          segment->p_filesz))
        return -EFAULT;
    return tbd_remote_call_system(remote, SYS_mprotect, protect);
}

static long map_engine(struct tbd_remote *remote, const struct engine_file *file)
{
    for (unsigned i = 0; i < file->header->e_phnum; i++) {
        long result =
            file->segments[i].p_type == PT_LOAD ? map_segment(remote, file, &file->segments[i]) : 0;

        if (result < 0)
            return result;
    }
    return 0;
}

/* The same build?  Its code never changes. */
static bool is_same_engine(const struct tbd_remote *remote, const struct engine_file *file)
{
    bool is_same = true;

    for (unsigned i = 0; i < file->header->e_phnum && is_same; i++) {
        const Elf64_Phdr *segment = &file->segments[i];
        uint8_t *there;

        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || (segment->p_flags & PF_W))
            continue;
        there = malloc(segment->p_filesz + 1);
        is_same = there && tbd_remote_read(remote, segment->p_vaddr, there, segment->p_filesz) &&
                  memcmp(there, file->bytes + segment->p_offset, segment->p_filesz) == 0;
        free(there);
    }
    return is_same;
}

/* What the boot function reads (struct tbd_boot, hooks/boot/boot.h), and the int3 to which it returns. */
struct scratch {
    uint8_t trap[16];
    uint64_t registers[8];
    struct {
        uint64_t registers, argc, argv, envp, library, rseq;
        uint32_t rseq_bytes, reserved;
    } boot;
    uint64_t argv[1];
    uint64_t envp[2];
    uint8_t auxv[AUXV_BYTES]; /* right after envp */
    char options[64];
};

static void read_auxv(pid_t pid, uint8_t *out)
{
    char path[64];
    int fd;

    memset(out, 0, AUXV_BYTES);
    snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (read(fd, out, AUXV_BYTES - 16) < 0)
        memset(out, 0, AUXV_BYTES);
    close(fd);
}

static bool call_boot(struct tbd_remote *remote, uint64_t function, uint64_t at)
{
    struct scratch scratch = { .trap = { 0xcc }, .options = "TBD_OPTIONS=mode=armed" };
    uint64_t result = 0;

    scratch.boot.registers = at + offsetof(struct scratch, registers);
    scratch.boot.argv = at + offsetof(struct scratch, argv);
    scratch.boot.envp = at + offsetof(struct scratch, envp);
    scratch.boot.library = TBD_ENGINE_BASE;
    scratch.envp[0] = at + offsetof(struct scratch, options);
    read_auxv(remote->pid, scratch.auxv);
    return tbd_remote_write(remote, at, &scratch, sizeof(scratch)) &&
           tbd_remote_call(remote, function, at + offsetof(struct scratch, boot),
                           at + SCRATCH_BYTES, at, &result) &&
           (result & 0xff);
}

static bool arm(struct tbd_remote *remote, const struct engine_file *file,
                struct tbd_query_error *error)
{
    bool again = tbd_attach_has_engine(remote->pid), done;
    long result, at;

    if (again && !is_same_engine(remote, file))
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0,
                               "process %d has another build of the engine", (int)remote->pid);
    at = map(remote, 0, SCRATCH_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, 0);
    result = at < 0 || again ? at : map_engine(remote, file);
    done = result >= 0 && call_boot(remote, boot_function(file), (uint64_t)at);
    if (at > 0)
        unmap(remote, (uint64_t)at, SCRATCH_BYTES);
    if (done)
        return true;
    if (!again)
        unmap(remote, TBD_ENGINE_BASE, TBD_ENGINE_END - TBD_ENGINE_BASE);
    if (result < 0)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0,
                               "process %d: the engine cannot be mapped: %s", (int)remote->pid,
                               strerror((int)-result));
    return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d: its keeper does not start",
                           (int)remote->pid);
}

bool tbd_attach_arm(pid_t pid, struct tbd_query_error *error)
{
    struct engine_file file;
    struct tbd_remote remote;
    sigset_t all, before;
    bool done = false;

    if (!tbd_attach_check(pid, error) || !open_engine(&file, error))
        return false;
    sigfillset(&all); /* half-way the process would be lost */
    sigprocmask(SIG_BLOCK, &all, &before);
    if (!boot_function(&file)) {
        tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "tbd-replay is of another build");
    } else if (tbd_remote_borrow(&remote, pid, 0, error)) {
        done = arm(&remote, &file, error);
        tbd_remote_let_go(&remote);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    munmap(file.bytes, file.count);
    return done;
}
