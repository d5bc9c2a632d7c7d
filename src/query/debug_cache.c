// SPDX-License-Identifier: MIT
/* debug_cache.c - see debug_cache.h
 *
 * I1  A copy appears under its name complete, by rename, or not at all.
 * I2  Only files are used that belong to the user and nobody else can write.
 * I3  The folder holds at most CACHE_MAX bytes: the copies not used for longest go. */
#include "query/debug_cache.h"

#include "query/user_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES  4096
#define CACHE_MAX   (1ull << 30)
#define COPY_MAX    (512ull << 20)
#define WORTH_BYTES (256u << 10) /* smaller ones are unpacked in no time */
#define FILES_MAX   4096

/* ---- places ---- */

static bool copy_path(const char *folder, int fd, const char *build_id, char *out, size_t bytes)
{
    struct stat info;
    int length;

    if (fstat(fd, &info) != 0)
        return false;
    length = snprintf(out, bytes, "%s%.64s-%jx-%jx-%jx-%jx.%09ld", folder,
                      *build_id == '\0' ? "none" : build_id, (uintmax_t)info.st_dev,
                      (uintmax_t)info.st_ino, (uintmax_t)info.st_size,
                      (uintmax_t)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return length > 0 && (size_t)length < bytes;
}

/* ---- reading ---- */

/* Keeps I2. */
static bool open_copy(const char *path, struct tbd_elf_one *out)
{
    struct stat info;

    *out = (struct tbd_elf_one){ .fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) };
    if (out->fd < 0)
        return false;
    if (fstat(out->fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & 022) == 0) {
        (void)futimens(out->fd, NULL); /* used now */
        out->elf = elf_begin(out->fd, ELF_C_READ_MMAP, NULL); /* I1, I2: it stays as it is */
    }
    if (out->elf != NULL && elf_kind(out->elf) == ELF_K_ELF)
        return true;
    elf_end(out->elf);
    close(out->fd);
    *out = (struct tbd_elf_one){ .fd = -1 };
    return false;
}

/* ---- writing ---- */

/* Bytes that unpacking will add; 0: nothing is packed. */
static uint64_t packed_bytes(Elf *elf)
{
    Elf_Scn *section = NULL;
    uint64_t bytes = 0;

    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        GElf_Chdr packed;

        if (gelf_getshdr(section, &header) != NULL && (header.sh_flags & SHF_COMPRESSED) != 0 &&
            gelf_getchdr(section, &packed) != NULL) {
            if (packed.ch_size > COPY_MAX)
                return UINT64_MAX;
            bytes += packed.ch_size;
        }
    }
    return bytes;
}

static bool copy_bytes(int from, int to)
{
    static char buffer[1 << 16];
    off_t at = 0;
    ssize_t got;

    while ((got = pread(from, buffer, sizeof(buffer), at)) > 0) {
        if (write(to, buffer, (size_t)got) != got)
            return false;
        at += got;
    }
    return got == 0;
}

static bool unpack_in_place(int fd)
{
    Elf *elf = elf_begin(fd, ELF_C_RDWR, NULL);
    Elf_Scn *section = NULL;
    bool good = elf != NULL;

    while (good && (section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;

        if (gelf_getshdr(section, &header) == NULL)
            good = false;
        else if ((header.sh_flags & SHF_COMPRESSED) != 0)
            good = elf_compress(section, 0, 0) >= 0;
    }
    good = good && elf_update(elf, ELF_C_WRITE) >= 0;
    elf_end(elf);
    return good;
}

/* Keeps I1. */
static bool make_copy(int from, const char *folder, const char *path)
{
    char temporary[PATH_BYTES + 16];
    bool good;
    int fd;

    snprintf(temporary, sizeof(temporary), "%s.new-XXXXXX", folder);
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return false;
    good = copy_bytes(from, fd) && unpack_in_place(fd);
    good = close(fd) == 0 && good;
    if (good && rename(temporary, path) == 0)
        return true;
    (void)unlink(temporary);
    return false;
}

struct cached {
    char name[256];
    uint64_t bytes;
    struct timespec used;
};

static int compare_cached(const void *left, const void *right)
{
    const struct cached *a = left, *b = right;

    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec > b->used.tv_sec ? -1 : 1;
    return a->used.tv_nsec > b->used.tv_nsec ? -1 : a->used.tv_nsec < b->used.tv_nsec;
}

static size_t list_cached(DIR *dir, struct cached *out)
{
    struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(dir)) != NULL && count < FILES_MAX) {
        struct stat info;

        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        snprintf(out[count].name, sizeof(out[count].name), "%s", entry->d_name);
        out[count].bytes = (uint64_t)info.st_size;
        out[count++].used = info.st_mtim;
    }
    return count;
}

/* Keeps I3. */
static void make_room(const char *folder, uint64_t wanted)
{
    struct cached *files = calloc(FILES_MAX, sizeof(*files));
    DIR *dir = files == NULL ? NULL : opendir(folder);
    uint64_t sum = wanted;
    size_t count;

    if (dir != NULL) {
        count = list_cached(dir, files);
        qsort(files, count, sizeof(*files), compare_cached);
        for (size_t i = 0; i < count; i++) {
            sum += files[i].bytes;
            if (sum > CACHE_MAX)
                (void)unlinkat(dirfd(dir), files[i].name, 0);
        }
        closedir(dir);
    }
    free(files);
}

bool tbd_debug_cache_open(const struct tbd_elf_one *debug, const char *build_id,
                          struct tbd_elf_one *out)
{
    char folder[PATH_BYTES], path[PATH_BYTES + 256];
    uint64_t bytes;

    *out = (struct tbd_elf_one){ .fd = -1 };
    if (debug->fd < 0 || debug->elf == NULL)
        return false;
    if (!tbd_user_path("XDG_CACHE_HOME", ".cache", "debug/", folder, sizeof(folder)) ||
        !copy_path(folder, debug->fd, build_id, path, sizeof(path)))
        return false;
    if (open_copy(path, out))
        return true;
    bytes = packed_bytes(debug->elf); /* libelf reads the sections for that */
    if (bytes < WORTH_BYTES || bytes > COPY_MAX)
        return false;
    make_room(folder, bytes);
    return make_copy(debug->fd, folder, path) && open_copy(path, out);
}
