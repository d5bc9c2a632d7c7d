// SPDX-License-Identifier: MIT
// links: tbd_format
/* Frames of each kind are unpacked to what was packed; nothing else is taken for a frame.  Numbers
 * are read back, too. */
#include "format/files/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST (1u << 20)

static const uint8_t zstd_magic[4] = { 0x28, 0xb5, 0x2f, 0xfd };

/* Text-like contents: neither constant nor random. */
static uint8_t *content_of(size_t bytes, unsigned seed)
{
    uint8_t *content = malloc(bytes + 1);

    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 1103515245u + 12345u;
        content[i] = (uint8_t) "page of a window "[(seed >> 16) % 17];
    }
    return content;
}

typedef void pack_function(struct tbd_buffer *out, const void *data, size_t bytes);

static void check_round_trip(pack_function *pack, const uint8_t *content, size_t bytes)
{
    struct tbd_buffer frame = { 0 };
    uint8_t *back = malloc(MOST);
    size_t some;

    pack(&frame, content, bytes);
    assert_false(frame.failed);
    assert_int_equal(tbd_unpack(frame.bytes, frame.used, back, bytes), TBD_OK);
    assert_memory_equal(back, content, bytes);
    assert_int_equal(tbd_unpack_some(frame.bytes, frame.used, back, MOST, &some), TBD_OK);
    assert_int_equal(some, bytes);
    assert_int_not_equal(tbd_unpack(frame.bytes, frame.used, back, bytes + 1), TBD_OK);
    if (bytes)
        assert_int_not_equal(tbd_unpack(frame.bytes, frame.used, back, bytes - 1), TBD_OK);
    assert_true(bytes <= tbd_lz4_most(frame.used));
    free(back);
    tbd_buffer_free(&frame);
}

static void what_was_packed_comes_back(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 4096, 65536, 65537, MOST };

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint8_t *content = content_of(sizes[i], (unsigned)i);

        check_round_trip(tbd_lz4_pack, content, sizes[i]);
        check_round_trip(tbd_pack_hard, content, sizes[i]);
        check_round_trip(tbd_pack_quick, content, sizes[i]);
        free(content);
    }
}

/* Readers allocate by tbd_lz4_most(): a frame that is smaller than that would not be read back. */
static void zeroes_are_not_packed_smaller_than_readers_believe(void **state)
{
    uint8_t *zeroes = calloc(1, MOST);
    struct tbd_buffer frame = { 0 };

    (void)state;
    check_round_trip(tbd_pack_hard, zeroes, MOST);
    tbd_pack_hard(&frame, zeroes, MOST);
    assert_memory_not_equal(frame.bytes, zstd_magic, sizeof(zstd_magic));
    tbd_buffer_free(&frame);
    free(zeroes);
}

static void hard_frames_are_smaller(void **state)
{
    uint8_t *content = content_of(65536, 3);
    struct tbd_buffer lz4 = { 0 }, hard = { 0 };

    (void)state;
    tbd_lz4_pack(&lz4, content, 65536);
    tbd_pack_hard(&hard, content, 65536);
    assert_memory_equal(hard.bytes, zstd_magic, sizeof(zstd_magic));
    assert_true(hard.used < lz4.used);
    tbd_buffer_free(&lz4);
    tbd_buffer_free(&hard);
    free(content);
}

/* A frame that is cut anywhere, or has bytes after it, is refused. */
static void half_a_frame_is_none(void **state)
{
    uint8_t *content = content_of(4096, 5), *back = malloc(4096);
    pack_function *const kinds[] = { tbd_lz4_pack, tbd_pack_hard, tbd_pack_quick };

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct tbd_buffer frame = { 0 };

        kinds[k](&frame, content, 4096);
        for (size_t bytes = 0; bytes < frame.used; bytes++)
            assert_int_not_equal(tbd_unpack(frame.bytes, bytes, back, 4096), TBD_OK);
        tbd_buffer_put(&frame, "x", 1);
        assert_int_not_equal(tbd_unpack(frame.bytes, frame.used, back, 4096), TBD_OK);
        tbd_buffer_free(&frame);
    }
    free(back);
    free(content);
}

/* Seven bits a byte, no byte more than needed, and each as long as the format says. */
static void check_number(uint64_t value)
{
    unsigned bits = value ? 64 - (unsigned)__builtin_clzll(value) : 1;
    struct tbd_buffer buffer = { 0 };
    struct tbd_reader reader;

    tbd_buffer_varint(&buffer, value);
    assert_int_equal(buffer.used, (bits + 6) / 7);
    for (size_t i = 0; i < buffer.used; i++)
        assert_int_equal(buffer.bytes[i],
                         (value >> 7 * i & 0x7f) | (i + 1 < buffer.used ? 0x80 : 0));
    reader = (struct tbd_reader){ buffer.bytes, buffer.bytes + buffer.used, false };
    assert_true(tbd_reader_varint(&reader) == value);
    assert_ptr_equal(reader.at, reader.end);
    assert_false(reader.failed);
    tbd_buffer_free(&buffer);
}

static void numbers_of_every_length_come_back(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++)
        for (uint64_t near = 0; near < 5; near++)
            check_number(((uint64_t)1 << bit) - 2 + near);
    for (uint64_t i = 1; i < 1000; i++)
        check_number(i * 0x9e3779b97f4a7c15ull >> i % 64);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_comes_back),
        cmocka_unit_test(zeroes_are_not_packed_smaller_than_readers_believe),
        cmocka_unit_test(hard_frames_are_smaller),
        cmocka_unit_test(half_a_frame_is_none),
        cmocka_unit_test(numbers_of_every_length_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
