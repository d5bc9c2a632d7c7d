// SPDX-License-Identifier: MIT
/* name_cache.c - see name_cache.h
 *
 * NAME_CACHE-1  A file that is cut short, changed, of another version, or about another module
 *     gives no table. (not checked: it is what decoding checks of its input) */
#include "query/debuginfo/name_cache.h"

#include "query/text/user_cache.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC     "TBDNAMES"
#define VERSION   2u
#define BYTES_MAX (1ull << 30)

struct head {
    char magic[8];
    uint32_t version;
    uint32_t head_bytes;
    uint64_t identity; /* of the module */
    uint64_t bytes;    /* after the head */
    uint64_t digest;   /* XXH3_64 of them */
};
_Static_assert(sizeof(struct head) == 40, "as in the file");

/* ---- which module ---- */

static bool add_headers(XXH3_state_t *state, const struct tbd_elf_one *one)
{
    Elf_Scn *section = NULL;
    struct stat info;

    if (one->elf == NULL)
        return true;
    if (one->fd < 0 || fstat(one->fd, &info) != 0)
        return false;
    XXH3_64bits_update(state, &info.st_size, sizeof(info.st_size));
    while ((section = elf_nextscn(one->elf, section)) != NULL) {
        GElf_Shdr header;

        if (gelf_getshdr(section, &header) != NULL)
            XXH3_64bits_update(state, &header, sizeof(header));
    }
    return true;
}

static bool identity_of(struct tbd_elf_file *file, uint64_t *out)
{
    XXH3_state_t *state = file->build_id_bytes == 0 ? NULL : XXH3_createState();
    bool good = state != NULL;

    if (good) {
        (void)tbd_elf_debug(file);
        XXH3_64bits_reset(state);
        XXH3_64bits_update(state, file->build_id, file->build_id_bytes);
        good = add_headers(state, &file->main) && add_headers(state, &file->debug);
        *out = XXH3_64bits_digest(state);
    }
    XXH3_freeState(state);
    return good;
}

static bool path_of(struct tbd_elf_file *file, const char *kind, char *out, size_t bytes,
                    uint64_t *identity)
{
    char name[256];

    if (!identity_of(file, identity))
        return false;
    snprintf(name, sizeof(name), "%.128s-%016" PRIx64 ".%s", file->build_id_text, *identity, kind);
    return tbd_user_cache_path("names/", name, out, bytes);
}

/* ---- reading ---- */

/* Keeps NAME_CACHE-1. */
static bool is_sound(const struct head *head, uint64_t identity, size_t bytes)
{
    return memcmp(head->magic, MAGIC, sizeof(head->magic)) == 0 && head->version == VERSION &&
           head->head_bytes == sizeof(*head) && head->identity == identity &&
           head->bytes == bytes - sizeof(*head) &&
           head->digest == XXH3_64bits(head + 1, (size_t)head->bytes);
}

static bool map_file(int fd, uint64_t identity, struct tbd_name_table *out)
{
    struct stat info;

    if (fstat(fd, &info) != 0 || info.st_size < (off_t)sizeof(struct head) ||
        info.st_size > (off_t)BYTES_MAX)
        return false;
    out->map_bytes = (size_t)info.st_size;
    out->map = mmap(NULL, out->map_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (out->map == MAP_FAILED) {
        out->map = NULL;
        return false;
    }
    if (is_sound(out->map, identity, out->map_bytes)) {
        out->bytes = (const uint8_t *)out->map + sizeof(struct head);
        out->count = out->map_bytes - sizeof(struct head);
        return true;
    }
    tbd_name_table_free(out);
    return false;
}

bool tbd_name_cache_get(struct tbd_elf_file *file, const char *kind, struct tbd_name_table *out)
{
    char path[TBD_USER_CACHE_PATH];
    uint64_t identity;
    bool good;
    int fd;

    *out = (struct tbd_name_table){ .map = NULL };
    if (!path_of(file, kind, path, sizeof(path), &identity) || (fd = tbd_user_cache_open(path)) < 0)
        return false;
    good = map_file(fd, identity, out);
    close(fd);
    return good;
}

void tbd_name_table_free(struct tbd_name_table *table)
{
    if (table->map != NULL)
        munmap(table->map, table->map_bytes);
    *table = (struct tbd_name_table){ .map = NULL };
}

/* ---- writing ---- */

struct content {
    struct head head;
    const struct iovec *parts;
    size_t count;
};

static bool write_all(int fd, const void *from, size_t bytes)
{
    const uint8_t *at = from;

    while (bytes != 0) {
        ssize_t done = write(fd, at, bytes);

        if (done <= 0)
            return false;
        at += done;
        bytes -= (size_t)done;
    }
    return true;
}

static bool fill(void *context, int fd)
{
    const struct content *content = context;
    bool good = write_all(fd, &content->head, sizeof(content->head));

    for (size_t i = 0; good && i < content->count; i++)
        good = write_all(fd, content->parts[i].iov_base, content->parts[i].iov_len);
    return good;
}

static uint64_t digest_of(const struct iovec *parts, size_t count)
{
    XXH3_state_t *state = XXH3_createState();
    uint64_t digest = 0;

    if (state == NULL)
        return 0;
    XXH3_64bits_reset(state);
    for (size_t i = 0; i < count; i++)
        XXH3_64bits_update(state, parts[i].iov_base, parts[i].iov_len);
    digest = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return digest;
}

void tbd_name_cache_put(struct tbd_elf_file *file, const char *kind, const struct iovec *parts,
                        size_t count)
{
    struct content content = { .head = { .version = VERSION, .head_bytes = sizeof(struct head) },
                               .parts = parts,
                               .count = count };
    char path[TBD_USER_CACHE_PATH];

    memcpy(content.head.magic, MAGIC, sizeof(content.head.magic));
    if (!path_of(file, kind, path, sizeof(path), &content.head.identity))
        return;
    for (size_t i = 0; i < count; i++)
        content.head.bytes += parts[i].iov_len;
    content.head.digest = digest_of(parts, count);
    (void)tbd_user_cache_make(path, content.head.bytes, fill, &content);
}
