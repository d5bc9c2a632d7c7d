// SPDX-License-Identifier: MIT
/* codec.h - growing byte buffers, varints, LZ4 and Zstandard frames
 *
 * A buffer's failure (no memory) is sticky: later appends do nothing, and callers check `failed`
 * once, at the end.  Readers never read past `end`, and have a sticky flag, too. */
#ifndef TBD_FORMAT_CODEC_H
#define TBD_FORMAT_CODEC_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tbd_buffer {
    uint8_t *bytes; /* owned: tbd_buffer_free() */
    size_t used;
    size_t capacity;
    bool failed;
};

/* tbd_buffer_reserve() where there is no place. */
uint8_t *tbd_buffer_stretch(struct tbd_buffer *buffer, size_t more);
/* Reserves `more` bytes after the used ones.  NULL, and `failed`, without memory. */
static inline uint8_t *tbd_buffer_reserve(struct tbd_buffer *buffer, size_t more)
{
    if (buffer->failed || more > buffer->capacity - buffer->used || buffer->bytes == NULL)
        return tbd_buffer_stretch(buffer, more);
    return buffer->bytes + buffer->used;
}
static inline void tbd_buffer_put(struct tbd_buffer *buffer, const void *data, size_t bytes)
{
    uint8_t *at = bytes != 0 ? tbd_buffer_reserve(buffer, bytes) : NULL;

    if (at == NULL)
        return;
    memcpy(at, data, bytes);
    buffer->used += bytes;
}
void tbd_buffer_align8(struct tbd_buffer *buffer);
void tbd_buffer_free(struct tbd_buffer *buffer);

/* Writes `value` and returns what follows it; 10 bytes may be written to. */
static inline uint8_t *tbd_varint_put(uint8_t *at, uint64_t value)
{
    if (value < 0x80) {
        *at = (uint8_t)value;
        return at + 1;
    }
    /* no branch for each byte: their number is unpredictable */
    if (value < 1u << 28) {
        uint32_t low = (uint32_t)value;
        uint32_t bits =
            (low & 0x7f) | (low & 0x3f80) << 1 | (low & 0x1fc000) << 2 | (low & 0xfe00000) << 3;
        unsigned more = (31u - (unsigned)__builtin_clz(low)) / 7; /* bytes before the last */

        bits |= 0x808080u & ((1u << more * 8) - 1);
        memcpy(at, &bits, sizeof(bits));
        return at + more + 1;
    }
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static inline void tbd_buffer_varint(struct tbd_buffer *buffer, uint64_t value)
{
    uint8_t *at = buffer->capacity - buffer->used >= 10 ? buffer->bytes + buffer->used
                                                        : tbd_buffer_reserve(buffer, 10);

    if (at)
        buffer->used = (size_t)(tbd_varint_put(at, value) - buffer->bytes);
}

static inline void tbd_buffer_byte(struct tbd_buffer *buffer, uint8_t byte)
{
    uint8_t *at = buffer->capacity > buffer->used ? buffer->bytes + buffer->used
                                                  : tbd_buffer_reserve(buffer, 1);

    if (!at)
        return;
    *at = byte;
    buffer->used++;
}

/* Signed numbers near 0 become small unsigned ones. */
static inline uint64_t tbd_zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t tbd_unzigzag(uint64_t v)
{
    return (int64_t)((v >> 1) ^ (0 - (v & 1)));
}

struct tbd_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed; /* sticky: something reached past the end */
};

static inline uint64_t tbd_reader_varint(struct tbd_reader *r)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        uint8_t byte = *r->at++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    r->failed = true;
    return 0;
}

/* `bytes` bytes, borrowed, or NULL if fewer are left. */
static inline const uint8_t *tbd_reader_take(struct tbd_reader *r, uint64_t bytes)
{
    const uint8_t *at = r->at;

    if (r->failed || bytes > (uint64_t)(r->end - r->at)) {
        r->failed = true;
        return NULL;
    }
    r->at += bytes;
    return at;
}

/* Appends one standard LZ4 frame with the content. */
void tbd_lz4_pack(struct tbd_buffer *out, const void *data, size_t bytes);
/* The same in two thirds of the time, and a twentieth larger. */
void tbd_lz4_pack_fast(struct tbd_buffer *out, const void *data, size_t bytes);
/* The same for what hardly gets smaller: in half the time of that. */
void tbd_lz4_pack_faster(struct tbd_buffer *out, const void *data, size_t bytes);
/* The same as tbd_lz4_pack_fast() of `bytes` bytes that come in parts: begin, put them all, finish.  Without memory out->failed. */
struct tbd_lz4_parts {
    struct tbd_buffer *out;
    struct LZ4F_cctx_s *context; /* owned; NULL: failed */
};
void tbd_lz4_begin(struct tbd_lz4_parts *parts, struct tbd_buffer *out, size_t bytes);
void tbd_lz4_put(struct tbd_lz4_parts *parts, const void *data, size_t bytes);
void tbd_lz4_finish(struct tbd_lz4_parts *parts);
/* Appends one standard Zstandard frame with the content: smaller, in ten times the time.  (An LZ4
 * frame if the content would be longer than tbd_lz4_most() of the frame.) */
void tbd_pack_hard(struct tbd_buffer *out, const void *data, size_t bytes);
/* The same for data that will soon be unpacked and packed again: larger, in a fifth of the time. */
void tbd_pack_quick(struct tbd_buffer *out, const void *data, size_t bytes);
/* Unpacks a frame of either kind, whose content is at most `most` long. */
TBD_MUST_CHECK enum tbd_status tbd_unpack_some(const void *frame, size_t frame_bytes, void *out,
                                               size_t most, size_t *out_bytes);
/* Unpacks a frame of either kind, whose content must be exactly `raw_bytes` long, into `out`. */
TBD_MUST_CHECK enum tbd_status tbd_unpack(const void *frame, size_t frame_bytes, void *out,
                                          size_t raw_bytes);
/* The greatest length of content that we write in a frame of `frame_bytes`: a bound for hostile
 * sizes. */
static inline uint64_t tbd_lz4_most(uint64_t frame_bytes)
{
    return frame_bytes * 256 + 64;
}

#endif
