// SPDX-License-Identifier: MIT
/* archive.c - see archive.h: headers of ustar, and the writer */
#include "format/packed/archive.h"
#include "format/packed/ustar.h"

#include "format/files/trace_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define LEVEL        3
#define BUFFER_BYTES (1u << 17)

struct tbd_archive {
    ZSTD_CCtx *packer; /* owned */
    int fd;
    uint8_t in[BUFFER_BYTES], out[BUFFER_BYTES];
};

/* ---- headers ---- */

/* Octal digits, or, for numbers that do not fit, base 256 with the highest bit set. */
static void put_number(char *field, size_t bytes, uint64_t value)
{
    if (value >> (3 * (bytes - 1)) == 0) {
        for (size_t i = bytes - 1; i-- > 0; value >>= 3)
            field[i] = (char)('0' + (value & 7));
        return;
    }
    for (size_t i = bytes; i-- > 1; value >>= 8)
        field[i] = (char)(value & 0xff);
    field[0] = (char)0x80;
}

bool tbd_ustar_number(const char *field, size_t bytes, uint64_t *out)
{
    size_t at = 0;

    *out = 0;
    if ((field[0] & 0x80) != 0) {
        for (at = 1; at < bytes; at++) {
            if (*out >> 55 != 0)
                return false;
            *out = *out << 8 | (uint8_t)field[at];
        }
        return (field[0] & 0x7f) == 0;
    }
    while (at < bytes && field[at] == ' ')
        at++;
    for (; at < bytes && field[at] >= '0' && field[at] <= '7'; at++) {
        if (*out >> 60 != 0)
            return false;
        *out = *out << 3 | (uint64_t)(field[at] - '0');
    }
    return at == bytes || field[at] == '\0' || field[at] == ' ';
}

uint64_t tbd_ustar_sum(const struct tbd_ustar *header)
{
    const uint8_t *bytes = (const uint8_t *)header;
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof(*header); i++)
        sum += i >= offsetof(struct tbd_ustar, sum) &&
                       i < offsetof(struct tbd_ustar, sum) + sizeof(header->sum)
                   ? ' '
                   : bytes[i];
    return sum;
}

/* A long name is split at a slash. */
static bool put_name(struct tbd_ustar *header, const char *name)
{
    size_t length = strlen(name), from;

    if (length <= sizeof(header->name)) {
        memcpy(header->name, name, length);
        return length != 0;
    }
    for (from = length - sizeof(header->name) - 1; name[from] != '\0' && name[from] != '/'; from++)
        continue;
    if (name[from] != '/' || from > sizeof(header->prefix) || from == 0)
        return false;
    memcpy(header->prefix, name, from);
    memcpy(header->name, name + from + 1, length - from - 1);
    return true;
}

static bool make_header(const char *name, const struct stat *info, struct tbd_ustar *out)
{
    char sum[sizeof(out->sum) + 1];

    memset(out, 0, sizeof(*out));
    if (!put_name(out, name))
        return false;
    put_number(out->mode, sizeof(out->mode), 0600);
    put_number(out->uid, sizeof(out->uid), 0);
    put_number(out->gid, sizeof(out->gid), 0);
    put_number(out->size, sizeof(out->size), (uint64_t)info->st_size);
    put_number(out->time, sizeof(out->time), (uint64_t)info->st_mtim.tv_sec);
    out->type = '0';
    memcpy(out->magic,
           "ustar\0"
           "00",
           8);
    snprintf(sum, sizeof(sum), "%06o", (unsigned)tbd_ustar_sum(out) & 0777777u);
    memcpy(out->sum, sum, 7);
    out->sum[7] = ' ';
    return true;
}

/* ---- writing ---- */

enum tbd_status tbd_archive_new(int fd, struct tbd_archive **out)
{
    struct tbd_archive *archive = calloc(1, sizeof(*archive));

    *out = archive;
    if (archive == NULL)
        return TBD_NOMEM;
    archive->fd = fd;
    archive->packer = ZSTD_createCCtx();
    if (archive->packer == NULL)
        return TBD_NOMEM;
    ZSTD_CCtx_setParameter(archive->packer, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(archive->packer, ZSTD_c_checksumFlag, 1);
    return TBD_OK;
}

void tbd_archive_free(struct tbd_archive *archive)
{
    if (archive != NULL)
        ZSTD_freeCCtx(archive->packer);
    free(archive);
}

static enum tbd_status put(struct tbd_archive *archive, const void *data, size_t bytes,
                           ZSTD_EndDirective how)
{
    ZSTD_inBuffer in = { data, bytes, 0 };
    size_t left;

    do {
        ZSTD_outBuffer out = { archive->out, sizeof(archive->out), 0 };
        enum tbd_status status;

        left = ZSTD_compressStream2(archive->packer, &out, &in, how);
        if (ZSTD_isError(left))
            return TBD_NOMEM;
        status = tbd_write_all(archive->fd, archive->out, out.pos);
        if (status != TBD_OK)
            return status;
    } while (in.pos < in.size || (how == ZSTD_e_end && left != 0));
    return TBD_OK;
}

/* A file that has become shorter is filled up with zeros, as its size is written already. */
static enum tbd_status put_content(struct tbd_archive *archive, int from, uint64_t bytes)
{
    uint64_t padded = (bytes + TBD_USTAR_BLOCK - 1) / TBD_USTAR_BLOCK * TBD_USTAR_BLOCK;
    enum tbd_status status = TBD_OK;
    uint64_t at = 0;

    while (at < padded && status == TBD_OK) {
        size_t want = padded - at < BUFFER_BYTES ? (size_t)(padded - at) : BUFFER_BYTES;
        ssize_t got = at < bytes ? pread(from, archive->in,
                                         bytes - at < want ? (size_t)(bytes - at) : want, (off_t)at)
                                 : 0;

        if (got < 0)
            return errno == EINTR ? TBD_INTERRUPTED : TBD_IO;
        if (got == 0) {
            memset(archive->in, 0, want);
            got = (ssize_t)want;
        }
        status = put(archive, archive->in, (size_t)got, ZSTD_e_continue);
        at += (uint64_t)got;
    }
    return status;
}

enum tbd_status tbd_archive_add(struct tbd_archive *archive, const char *name, int from)
{
    struct tbd_ustar header;
    struct stat info;
    enum tbd_status status;

    if (fstat(from, &info) != 0)
        return TBD_IO;
    if (!S_ISREG(info.st_mode) || !make_header(name, &info, &header))
        return TBD_USAGE;
    status = put(archive, &header, sizeof(header), ZSTD_e_continue);
    return status == TBD_OK ? put_content(archive, from, (uint64_t)info.st_size) : status;
}

enum tbd_status tbd_archive_finish(struct tbd_archive *archive)
{
    static const uint8_t end[2 * TBD_USTAR_BLOCK];

    return put(archive, end, sizeof(end), ZSTD_e_end);
}
