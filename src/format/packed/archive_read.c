// SPDX-License-Identifier: MIT
/* archive_read.c - unpacks an archive (archive.h)
 *
 * ARCHIVE_READ-1  A name that reaches the file system has no part that is empty, "." or "..", and stays below the
 *     folder: names are looked up without following links (base/open_file.h). (not checked: is_name() decides) */
#include "format/packed/archive.h"
#include "format/packed/ustar.h"

#include "format/files/trace_dir.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define BUFFER_BYTES (1u << 17)
#define NAME_BYTES   300u
#define FILES_MAX    (1u << 20)

struct unpacking {
    ZSTD_DCtx *unpacker; /* owned */
    int fd, dir;
    ZSTD_inBuffer in;
    uint64_t most; /* bytes that may still come out */
    const char *why;
    uint8_t packed[BUFFER_BYTES], plain[BUFFER_BYTES];
};

bool tbd_archive_is(int fd)
{
    uint8_t magic[4];

    return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
           memcmp(magic, "\x28\xb5\x2f\xfd", sizeof(magic)) == 0;
}

static enum tbd_status wrong(struct unpacking *unpacking, const char *why)
{
    unpacking->why = why;
    return TBD_CORRUPT;
}

/* ---- bytes ---- */

static enum tbd_status refill(struct unpacking *unpacking)
{
    ssize_t got = read(unpacking->fd, unpacking->packed, sizeof(unpacking->packed));

    if (got < 0)
        return TBD_IO;
    unpacking->in = (ZSTD_inBuffer){ unpacking->packed, (size_t)got, 0 };
    return got == 0 ? wrong(unpacking, "it ends too early") : TBD_OK;
}

/* Takes all of `bytes` bytes. */
static enum tbd_status take(struct unpacking *unpacking, void *out, size_t bytes)
{
    ZSTD_outBuffer to = { out, bytes, 0 };

    if (unpacking->most < bytes)
        return wrong(unpacking, "more comes out of it than such a file can hold");
    unpacking->most -= bytes;
    while (to.pos < to.size) {
        size_t before = to.pos, result;

        if (unpacking->in.pos == unpacking->in.size) {
            enum tbd_status status = refill(unpacking);

            if (status != TBD_OK)
                return status;
        }
        result = ZSTD_decompressStream(unpacking->unpacker, &to, &unpacking->in);
        if (ZSTD_isError(result))
            return wrong(unpacking, "it is not what zstd has packed");
        if (result == 0 && to.pos < to.size && to.pos == before &&
            unpacking->in.pos == unpacking->in.size)
            return wrong(unpacking, "it ends too early");
    }
    return TBD_OK;
}

/* ---- names ---- */

static bool is_part(const char *at, size_t length)
{
    return length != 0 && !(length == 1 && at[0] == '.') &&
           !(length == 2 && at[0] == '.' && at[1] == '.');
}

static bool is_name(const char *name)
{
    for (;;) {
        size_t length = strcspn(name, "/");

        if (!is_part(name, length))
            return false;
        if (name[length] == '\0')
            return true;
        name += length + 1;
    }
}

/* The name without its first folder; empty: that folder itself.  False: it is no name. */
static bool read_name(const struct tbd_ustar *header, char out[NAME_BYTES])
{
    char whole[NAME_BYTES], *slash;
    size_t prefix = strnlen(header->prefix, sizeof(header->prefix));
    size_t length = strnlen(header->name, sizeof(header->name)), used = 0;

    memcpy(whole, header->prefix, prefix);
    used = prefix;
    if (prefix != 0)
        whole[used++] = '/';
    memcpy(whole + used, header->name, length);
    used += length;
    whole[used] = '\0';
    if (used != 0 && whole[used - 1] == '/') /* a folder */
        whole[used - 1] = '\0';
    slash = strchr(whole, '/');
    snprintf(out, NAME_BYTES, "%s", slash == NULL ? "" : slash + 1);
    return is_name(whole);
}

/* ---- files ---- */

static enum tbd_status make_folders(struct unpacking *unpacking, const char *name)
{
    char folder[NAME_BYTES];

    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        enum tbd_status status;

        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - name), name);
        status = tbd_dir_make_folder(unpacking->dir, folder);
        if (status != TBD_OK)
            return status;
    }
    return TBD_OK;
}

static enum tbd_status fill_file(struct unpacking *unpacking, int to, uint64_t bytes)
{
    enum tbd_status status = TBD_OK;

    for (uint64_t left = bytes; left != 0 && status == TBD_OK;) {
        size_t part = left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES;

        status = take(unpacking, unpacking->plain, part);
        if (status == TBD_OK)
            status = tbd_write_all(to, unpacking->plain, part);
        left -= part;
    }
    if (status == TBD_OK && bytes % TBD_USTAR_BLOCK != 0)
        status = take(unpacking, unpacking->plain, TBD_USTAR_BLOCK - bytes % TBD_USTAR_BLOCK);
    return status;
}

static enum tbd_status make_file(struct unpacking *unpacking, const char *name, uint64_t bytes)
{
    struct tbd_new_file file;
    enum tbd_status status = make_folders(unpacking, name);

    if (status == TBD_OK)
        status = tbd_new_file(unpacking->dir, name, &file);
    if (status != TBD_OK)
        return status;
    status = fill_file(unpacking, file.fd, bytes);
    if (status != TBD_OK) {
        tbd_new_file_drop(&file);
        return status;
    }
    status = tbd_new_file_finish(&file);
    if (status == TBD_OK)
        close(file.fd);
    return status;
}

static bool is_end(const struct tbd_ustar *header)
{
    static const struct tbd_ustar end;

    return memcmp(header, &end, sizeof(end)) == 0;
}

static enum tbd_status take_entry(struct unpacking *unpacking, const struct tbd_ustar *header)
{
    char name[NAME_BYTES];
    uint64_t sum, bytes;

    if (memcmp(header->magic, "ustar", 5) != 0 ||
        !tbd_ustar_number(header->sum, sizeof(header->sum), &sum) || sum != tbd_ustar_sum(header) ||
        !tbd_ustar_number(header->size, sizeof(header->size), &bytes))
        return wrong(unpacking, "a header in it is damaged");
    if (!read_name(header, name))
        return wrong(unpacking, "it has a file whose name leads out of it");
    if (header->type == '5' && bytes == 0)
        return TBD_OK;
    if ((header->type != '0' && header->type != '\0') || name[0] == '\0')
        return wrong(unpacking, "it has something that is no file");
    return make_file(unpacking, name, bytes);
}

enum tbd_status tbd_archive_unpack(int fd, int dir, uint64_t most, const char **why)
{
    struct unpacking *unpacking = calloc(1, sizeof(*unpacking));
    enum tbd_status status = TBD_OK;
    struct tbd_ustar header;

    *why = NULL;
    if (unpacking == NULL)
        return TBD_NOMEM;
    unpacking->fd = fd;
    unpacking->dir = dir;
    unpacking->most = most;
    unpacking->unpacker = ZSTD_createDCtx();
    if (unpacking->unpacker == NULL)
        status = TBD_NOMEM;
    for (uint32_t files = 0; status == TBD_OK; files++) {
        status = files == FILES_MAX ? wrong(unpacking, "it has too many files")
                                    : take(unpacking, &header, sizeof(header));
        if (status != TBD_OK || is_end(&header))
            break;
        status = take_entry(unpacking, &header);
    }
    *why = unpacking->why;
    ZSTD_freeDCtx(unpacking->unpacker);
    free(unpacking);
    return status;
}
