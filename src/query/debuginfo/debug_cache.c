// SPDX-License-Identifier: MIT
/* debug_cache.c - see debug_cache.h */
#include "query/debuginfo/debug_cache.h"

#include "base/open_file.h"
#include "query/text/user_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_MAX (512ull << 20)
/* Debug information is packed to a half or a tenth. */
#define UNPACK_RATIO 64u
#define UNPACK_FREE  (64ull << 20)
#define WORTH_BYTES  (256u << 10) /* smaller files are unpacked quickly enough */

/* Names the file by what it was made from. */
static bool copy_path(int fd, const char *build_id, char *out, size_t bytes)
{
    char name[256];
    struct stat info;

    if (fstat(fd, &info) != 0)
        return false;
    snprintf(name, sizeof(name), "%.64s-%jx-%jx-%jx-%jx.%09ld",
             *build_id == '\0' ? "none" : build_id, (uintmax_t)info.st_dev, (uintmax_t)info.st_ino,
             (uintmax_t)info.st_size, (uintmax_t)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return tbd_user_cache_path("debug/", name, out, bytes);
}

/* A file of the cache is mapped: nobody else writes to it. */
static bool open_copy(const char *path, struct tbd_elf_one *out)
{
    *out = (struct tbd_elf_one){ .fd = tbd_user_cache_open(path) };
    if (out->fd < 0)
        return false;
    out->elf = elf_begin(out->fd, ELF_C_READ_MMAP, NULL);
    if (out->elf != NULL && elf_kind(out->elf) == ELF_K_ELF)
        return true;
    tbd_elf_one_close(out);
    return false;
}

/* ---- writing ---- */

/* ---- how large it becomes ---- */

/* The first bytes of a section, and no more: gelf_getchdr and elf_rawdata would read all of it.  NULL: it is shorter, or not
 * whole in the file. */
static const void *first_bytes(Elf *elf, const GElf_Shdr *header, size_t bytes, Elf_Type type)
{
    Elf_Data *data = header->sh_size < bytes || header->sh_offset > INT64_MAX
                         ? NULL
                         : elf_getdata_rawchunk(elf, (int64_t)header->sh_offset, bytes, type);

    return data == NULL || data->d_size < bytes ? NULL : data->d_buf;
}

/* A section .zdebug_NAME begins with "ZLIB" and its size, most significant byte first. */
static uint64_t old_unpacked_bytes(Elf *elf, const GElf_Shdr *header)
{
    const uint8_t *head = first_bytes(elf, header, 12, ELF_T_BYTE);
    uint64_t bytes = 0;

    if (head == NULL || memcmp(head, "ZLIB", 4) != 0)
        return 0;
    for (int i = 4; i < 12; i++)
        bytes = bytes << 8 | head[i];
    return bytes;
}

static bool has_old_name(Elf *elf, size_t names, const GElf_Shdr *header)
{
    const char *name = elf_strptr(elf, names, header->sh_name);

    return name != NULL && strncmp(name, ".zdebug", 7) == 0;
}

/* What a section becomes that is packed as gABI says (SHF_COMPRESSED); 0: it is not. */
static uint64_t unpacked_bytes(Elf *elf, const GElf_Shdr *header)
{
    const Elf64_Chdr *wide;
    const Elf32_Chdr *narrow;

    if ((header->sh_flags & SHF_COMPRESSED) == 0 || header->sh_type == SHT_NOBITS)
        return 0;
    if (gelf_getclass(elf) == ELFCLASS64) {
        wide = first_bytes(elf, header, sizeof(*wide), ELF_T_CHDR);
        return wide == NULL ? 0 : wide->ch_size;
    }
    narrow = first_bytes(elf, header, sizeof(*narrow), ELF_T_CHDR);
    return narrow == NULL ? 0 : narrow->ch_size;
}

bool tbd_elf_one_can_unpack(const struct tbd_elf_one *one, uint64_t *out_bytes)
{
    uint64_t bytes = 0, packed = 0;
    Elf_Scn *section = NULL;
    size_t names = 0;

    (void)elf_getshdrstrndx(one->elf, &names);
    while ((section = elf_nextscn(one->elf, section)) != NULL) {
        GElf_Shdr header;
        uint64_t more;

        if (gelf_getshdr(section, &header) == NULL || header.sh_type == SHT_NOBITS)
            continue;
        more = unpacked_bytes(one->elf, &header);
        if (more == 0 && has_old_name(one->elf, names, &header))
            more = old_unpacked_bytes(one->elf, &header);
        if (more != 0)
            packed += header.sh_size;
        bytes = bytes + more < bytes ? UINT64_MAX : bytes + more;
    }
    *out_bytes = bytes;
    return bytes <= UNPACK_FREE || (bytes / UNPACK_RATIO <= packed && bytes <= tbd_memory_most());
}

bool tbd_elf_can_unpack(struct tbd_elf_file *file, const struct tbd_elf_one *one)
{
    uint64_t bytes;

    if (tbd_elf_one_can_unpack(one, &bytes))
        return true;
    file->refused_bytes = bytes;
    return false;
}

/* Bytes that unpacking will add; 0: nothing is packed. */
static uint64_t packed_bytes(Elf *elf)
{
    Elf_Scn *section = NULL;
    uint64_t bytes = 0;

    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        uint64_t more;

        if (gelf_getshdr(section, &header) == NULL)
            continue;
        more = unpacked_bytes(elf, &header);
        if (more > COPY_MAX)
            return UINT64_MAX;
        bytes += more;
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

static bool fill_copy(void *context, int fd)
{
    const int *from = context;

    return copy_bytes(*from, fd) && unpack_in_place(fd);
}

bool tbd_debug_cache_open(const struct tbd_elf_one *debug, const char *build_id,
                          struct tbd_elf_one *out)
{
    char path[TBD_USER_CACHE_PATH];
    int from = debug->fd;
    struct stat info;
    uint64_t bytes;

    *out = (struct tbd_elf_one){ .fd = -1 };
    if (debug->fd < 0 || debug->elf == NULL || fstat(debug->fd, &info) != 0)
        return false;
    bytes = packed_bytes(debug->elf);
    if (bytes < WORTH_BYTES || bytes > COPY_MAX || info.st_size > (off_t)COPY_MAX ||
        !copy_path(debug->fd, build_id, path, sizeof(path)))
        return false;
    return open_copy(path, out) ||
           (tbd_user_cache_make(path, bytes, fill_copy, &from) && open_copy(path, out));
}
