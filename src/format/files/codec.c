// SPDX-License-Identifier: MIT
/* codec.c - growing byte buffers, LZ4 and Zstandard frames */
#include "format/files/codec.h"

#include <lz4frame.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

uint8_t *tbd_buffer_stretch(struct tbd_buffer *buffer, size_t more)
{
    size_t need;
    uint8_t *bytes;

    if (buffer->failed || __builtin_add_overflow(buffer->used, more, &need)) {
        buffer->failed = true;
        return NULL;
    }
    if (need > buffer->capacity) {
        size_t capacity = buffer->capacity + buffer->capacity / 2 + 256;

        if (capacity < need)
            capacity = need;
        bytes = realloc(buffer->bytes, capacity);
        if (!bytes) {
            buffer->failed = true;
            return NULL;
        }
        buffer->bytes = bytes;
        buffer->capacity = capacity;
    }
    return buffer->bytes + buffer->used;
}

void tbd_buffer_align8(struct tbd_buffer *buffer)
{
    static const uint8_t zero[8];

    tbd_buffer_put(buffer, zero, -buffer->used & 7);
}

void tbd_buffer_free(struct tbd_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct tbd_buffer){ 0 };
}

/* LZ4 takes four times as long steps where it finds nothing; or sixteen times. */
#define FAST_LEVEL   (-3)
#define FASTER_LEVEL (-15)

static LZ4F_preferences_t preferences(size_t bytes, int level)
{
    return (LZ4F_preferences_t){
        .frameInfo = { .blockSizeID = bytes > 65536 ? LZ4F_max1MB : LZ4F_max64KB,
                       .blockMode = LZ4F_blockIndependent,
                       .contentSize = bytes },
        .compressionLevel = level,
    };
}

static void pack_lz4(struct tbd_buffer *out, const void *data, size_t bytes, int level)
{
    LZ4F_preferences_t how = preferences(bytes, level);
    size_t bound = LZ4F_compressFrameBound(bytes, &how);
    uint8_t *at = tbd_buffer_reserve(out, bound);
    size_t packed;

    how.autoFlush = 1;
    if (!at)
        return;
    packed = LZ4F_compressFrame(at, bound, data, bytes, &how);
    if (LZ4F_isError(packed))
        out->failed = true;
    else
        out->used += packed;
}

void tbd_lz4_pack(struct tbd_buffer *out, const void *data, size_t bytes)
{
    pack_lz4(out, data, bytes, 0);
}

void tbd_lz4_pack_fast(struct tbd_buffer *out, const void *data, size_t bytes)
{
    pack_lz4(out, data, bytes, FAST_LEVEL);
}

void tbd_lz4_pack_faster(struct tbd_buffer *out, const void *data, size_t bytes)
{
    pack_lz4(out, data, bytes, FASTER_LEVEL);
}

/* ---- in parts ---- */

/* Blocks of a frame have 1 MB: a part that is as long at most needs space for two. */
#define PART_BYTES ((size_t)1 << 20)

static void take_packed(struct tbd_lz4_parts *parts, size_t packed)
{
    if (!LZ4F_isError(packed)) {
        parts->out->used += packed;
        return;
    }
    parts->out->failed = true;
    LZ4F_freeCompressionContext(parts->context);
    parts->context = NULL;
}

void tbd_lz4_begin(struct tbd_lz4_parts *parts, struct tbd_buffer *out, size_t bytes)
{
    LZ4F_preferences_t how = preferences(bytes, FAST_LEVEL);
    uint8_t *at = tbd_buffer_reserve(out, LZ4F_HEADER_SIZE_MAX);

    *parts = (struct tbd_lz4_parts){ .out = out };
    if (!at || LZ4F_isError(LZ4F_createCompressionContext(&parts->context, LZ4F_VERSION))) {
        out->failed = true;
        parts->context = NULL;
        return;
    }
    take_packed(parts, LZ4F_compressBegin(parts->context, at, LZ4F_HEADER_SIZE_MAX, &how));
}

static void put_part(struct tbd_lz4_parts *parts, const void *data, size_t bytes)
{
    size_t bound = LZ4F_compressBound(bytes, NULL) + PART_BYTES + 16;
    uint8_t *at = tbd_buffer_reserve(parts->out, bound);

    if (at)
        take_packed(parts, LZ4F_compressUpdate(parts->context, at, bound, data, bytes, NULL));
}

void tbd_lz4_put(struct tbd_lz4_parts *parts, const void *data, size_t bytes)
{
    const uint8_t *from = data;

    while (bytes && parts->context && !parts->out->failed) {
        size_t part = bytes < PART_BYTES ? bytes : PART_BYTES;

        put_part(parts, from, part);
        from += part;
        bytes -= part;
    }
}

void tbd_lz4_finish(struct tbd_lz4_parts *parts)
{
    size_t bound = 2 * PART_BYTES;
    uint8_t *at = parts->context ? tbd_buffer_reserve(parts->out, bound) : NULL;

    if (at)
        take_packed(parts, LZ4F_compressEnd(parts->context, at, bound, NULL));
    LZ4F_freeCompressionContext(parts->context);
    parts->context = NULL;
}

/* Merged windows of the bench programs are 23% smaller than with LZ4's level 9; level 15 would take
 * another 6%, and four times as long. */
#define ZSTD_LEVEL 6
/* For data that will soon be packed again: a fifth of the time, a tenth larger. */
#define ZSTD_LEVEL_QUICK 1

/* Data that a program reads occurs again megabytes later, as the old contents of its buffers: so
 * from this size on, the packer searches a long window's log as a whole.  The log of half a billion
 * block entries of xz, 56 MB, becomes 6.9 MB in place of 9.6, in the same time. */
#define LONG_BYTES      (4u << 20)
#define LONG_WINDOW_LOG 26

static size_t pack_zstd(void *out, size_t capacity, const void *data, size_t bytes, int level)
{
    ZSTD_CCtx *context = bytes < LONG_BYTES ? NULL : ZSTD_createCCtx();
    size_t packed;

    if (!context)
        return ZSTD_compress(out, capacity, data, bytes, level);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_enableLongDistanceMatching, 1);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, LONG_WINDOW_LOG);
    packed = ZSTD_compress2(context, out, capacity, data, bytes);
    ZSTD_freeCCtx(context);
    return packed;
}

static void put_zstd(struct tbd_buffer *out, const void *data, size_t bytes, int level)
{
    size_t bound = ZSTD_compressBound(bytes);
    uint8_t *at = tbd_buffer_reserve(out, bound);
    size_t packed;

    if (!at)
        return;
    packed = pack_zstd(at, bound, data, bytes, level);
    if (ZSTD_isError(packed))
        out->failed = true;
    else if (bytes > tbd_lz4_most(packed))
        tbd_lz4_pack(out, data, bytes);
    else
        out->used += packed;
}

void tbd_pack_hard(struct tbd_buffer *out, const void *data, size_t bytes)
{
    put_zstd(out, data, bytes, ZSTD_LEVEL);
}

void tbd_pack_quick(struct tbd_buffer *out, const void *data, size_t bytes)
{
    put_zstd(out, data, bytes, ZSTD_LEVEL_QUICK);
}

static bool is_zstd(const uint8_t *frame, size_t bytes)
{
    uint32_t magic = 0;

    if (bytes >= sizeof(magic))
        memcpy(&magic, frame, sizeof(magic));
    return magic == ZSTD_MAGICNUMBER;
}

static enum tbd_status unpack_zstd(const void *frame, size_t frame_bytes, void *out, size_t most,
                                   size_t *out_bytes)
{
    size_t done;

    if (ZSTD_findFrameCompressedSize(frame, frame_bytes) != frame_bytes)
        return TBD_CORRUPT;
    done = ZSTD_decompress(out, most, frame, frame_bytes);
    if (ZSTD_isError(done))
        return ZSTD_getErrorCode(done) == ZSTD_error_memory_allocation ? TBD_NOMEM : TBD_CORRUPT;
    *out_bytes = done;
    return TBD_OK;
}

/* Unpacks the whole frame into at most *io_bytes, and sets it to the length of the content. */
static enum tbd_status unpack_lz4(LZ4F_dctx *context, const uint8_t *frame, size_t frame_bytes,
                                  uint8_t *out, size_t *io_bytes)
{
    size_t raw_bytes = *io_bytes;
    size_t hint = 1;
    size_t in_done = 0;
    size_t out_done = 0;

    while (hint && in_done < frame_bytes) {
        size_t in_step = frame_bytes - in_done;
        size_t out_step = raw_bytes - out_done;

        hint = LZ4F_decompress(context, out + out_done, &out_step, frame + in_done, &in_step, NULL);
        if (LZ4F_isError(hint)) /* its numbers are not in the shared library's interface */
            return strcmp(LZ4F_getErrorName(hint), "ERROR_allocation_failed") == 0 ? TBD_NOMEM
                                                                                   : TBD_CORRUPT;
        in_done += in_step;
        out_done += out_step;
        if (!in_step && !out_step)
            return TBD_CORRUPT;
    }
    *io_bytes = out_done;
    return hint == 0 && in_done == frame_bytes ? TBD_OK : TBD_CORRUPT;
}

enum tbd_status tbd_unpack_some(const void *frame, size_t frame_bytes, void *out, size_t most,
                                size_t *out_bytes)
{
    LZ4F_dctx *context;
    enum tbd_status status;
    uint8_t none;

    if (is_zstd(frame, frame_bytes))
        return unpack_zstd(frame, frame_bytes, most ? out : &none, most, out_bytes);
    *out_bytes = most;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
        return TBD_NOMEM;
    status = unpack_lz4(context, frame, frame_bytes, most ? out : &none, out_bytes);
    LZ4F_freeDecompressionContext(context);
    return status;
}

enum tbd_status tbd_unpack(const void *frame, size_t frame_bytes, void *out, size_t raw_bytes)
{
    size_t bytes;
    enum tbd_status status = tbd_unpack_some(frame, frame_bytes, out, raw_bytes, &bytes);

    return status ? status : bytes == raw_bytes ? TBD_OK : TBD_CORRUPT;
}
