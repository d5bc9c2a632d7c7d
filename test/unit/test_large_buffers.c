// SPDX-License-Identifier: MIT
// links: tbd_format
/* test_large_buffers.c - large buffers are reused, and grow without losing their contents */
#include "format/files/large_buffers.h"

#include "base/open_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)

/* Each number at its own place. */
static void fill(uint32_t *buffer, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes / 4; i++)
        buffer[i] = seed + (uint32_t)i;
}

static void check(const uint32_t *buffer, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes / 4; i++)
        assert_int_equal(buffer[i], seed + (uint32_t)i);
}

static void test_last_given_first_taken(void **state)
{
    void *a = tbd_large_buffer_take(3 * MIB), *b = tbd_large_buffer_take(3 * MIB), *again;

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    tbd_large_buffer_give(b);
    tbd_large_buffer_give(a);
    again = tbd_large_buffer_take(3 * MIB);
    assert_ptr_equal(again, a);
    tbd_large_buffer_give(again);
    assert_ptr_equal(tbd_large_buffer_take(3 * MIB), a);
    assert_ptr_equal(tbd_large_buffer_take(3 * MIB), b);
    tbd_large_buffer_give(a);
    tbd_large_buffer_give(b);
}

/* Takes the smallest sufficient buffer, and none that is far too large. */
static void test_sizes(void **state)
{
    void *large = tbd_large_buffer_take(40 * MIB), *middle = tbd_large_buffer_take(14 * MIB),
         *small;

    (void)state;
    assert_true(tbd_large_buffer_bytes(large) >= 40 * MIB);
    tbd_large_buffer_give(middle);
    tbd_large_buffer_give(large);
    assert_ptr_equal(tbd_large_buffer_take(13 * MIB), middle);
    small = tbd_large_buffer_take(8 * MIB);
    assert_ptr_not_equal(small, large);
    tbd_large_buffer_give(small);
    tbd_large_buffer_give(middle);
}

/* What a file says to be larger than this machine can hold is not tried. */
static void test_most(void **state)
{
    (void)state;
    assert_null(tbd_large_buffer_take(tbd_memory_most() + 4096));
    assert_null(tbd_large_buffer_take((size_t)1 << 46));
}

/* Contents stay, whether a buffer is copied (a small one) or stretched; others are not touched. */
static void test_grows(void **state)
{
    uint32_t *other = tbd_large_buffer_take(6 * MIB), *buffer = NULL;
    size_t used = 0;

    (void)state;
    fill(other, 6 * MIB, 7);
    for (size_t bytes = 4096; bytes < 100 * MIB; bytes = bytes * 7 / 4 & ~(size_t)3) {
        buffer = tbd_large_buffer_grow(buffer, used, bytes);
        assert_non_null(buffer);
        assert_int_equal((uintptr_t)buffer % 64, 0);
        assert_true(tbd_large_buffer_bytes(buffer) >= bytes);
        check(buffer, used, 1000);
        fill(buffer, bytes, 1000);
        used = bytes;
    }
    assert_ptr_equal(tbd_large_buffer_grow(buffer, used, used), buffer);
    check(other, 6 * MIB, 7);
    tbd_large_buffer_give(buffer);
    tbd_large_buffer_give(other);
}

/* A buffer that is nearly large enough is stretched when taken: all of it can be used. */
static void test_taken_and_stretched(void **state)
{
    uint32_t *buffer = tbd_large_buffer_take(20 * MIB);
    size_t before = tbd_large_buffer_bytes(buffer);

    (void)state;
    tbd_large_buffer_give(buffer);
    buffer = tbd_large_buffer_take(before + MIB);
    assert_non_null(buffer);
    assert_true(tbd_large_buffer_bytes(buffer) >= before + MIB);
    fill(buffer, before + MIB, 3);
    check(buffer, before + MIB, 3);
    tbd_large_buffer_give(buffer);
}

static void test_too_much(void **state)
{
    uint32_t *buffer = tbd_large_buffer_take(2 * MIB);

    (void)state;
    fill(buffer, 2 * MIB, 9);
    assert_null(tbd_large_buffer_take(SIZE_MAX));
    assert_null(tbd_large_buffer_take((size_t)1 << 60));
    assert_null(tbd_large_buffer_grow(buffer, 2 * MIB, SIZE_MAX / 2));
    assert_null(tbd_large_buffer_grow(buffer, 2 * MIB, (size_t)1 << 60));
    check(buffer, 2 * MIB, 9);
    tbd_large_buffer_give(buffer);
    tbd_large_buffer_give(NULL);
}

static bool kernel_makes_pages(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool does = madvise(page, 4096, MADV_POPULATE_WRITE) == 0;

    munmap(page, 4096);
    return does;
}

static size_t pages_there(void *buffer, size_t bytes)
{
    static unsigned char there[4096];
    uintptr_t from = (uintptr_t)buffer & ~(uintptr_t)4095;
    size_t count = 0, pages = ((uintptr_t)buffer + bytes - from + 4095) / 4096;

    assert_true(pages <= sizeof(there));
    assert_int_equal(mincore((void *)from, pages * 4096, there), 0);
    for (size_t i = 0; i < pages; i++)
        count += there[i] & 1;
    return count;
}

/* Pages that are made ready are there before they are written, also after a buffer was stretched. */
static void test_ready(void **state)
{
    uint32_t *buffer = tbd_large_buffer_take(9 * MIB);

    (void)state;
    if (!kernel_makes_pages())
        skip();
    tbd_large_buffer_ready(buffer, 2 * MIB);
    assert_true(pages_there(buffer, 2 * MIB) >= 2 * MIB / 4096);
    fill(buffer, 2 * MIB, 5);
    tbd_large_buffer_ready(buffer, MIB);
    buffer = tbd_large_buffer_grow(buffer, 2 * MIB, 15 * MIB);
    assert_non_null(buffer);
    tbd_large_buffer_ready(buffer, 14 * MIB);
    assert_true(pages_there(buffer, 14 * MIB) >= 14 * MIB / 4096);
    tbd_large_buffer_ready(buffer, tbd_large_buffer_bytes(buffer));
    check(buffer, 2 * MIB, 5);
    tbd_large_buffer_give(buffer);
}

/* An array may use what is ready, at least one element more; its elements stay. */
static void test_array(void **state)
{
    uint32_t *array = NULL;
    size_t capacity = 0, count = 0, grown = 0;

    (void)state;
    for (; count < 3 * MIB; count++) {
        grown += count == capacity;
        assert_true(tbd_large_array_grow(&array, count, &capacity, sizeof(*array)));
        assert_true(count < capacity);
        assert_true(capacity * sizeof(*array) <= tbd_large_buffer_bytes(array));
        array[count] = 77 + (uint32_t)count;
    }
    assert_true(grown < 100); /* not for each element */
    check(array, count * sizeof(*array), 77);
    if (kernel_makes_pages())
        assert_true(pages_there(array, capacity * sizeof(*array)) >=
                    capacity * sizeof(*array) / 4096);
    tbd_large_buffer_give(array);
}

/* Whole pieces, from nothing on, and into what another array left. */
static void test_append(void **state)
{
    static uint32_t piece[MIB / 4];
    uint8_t *array = NULL;
    size_t capacity = 0, count = 0;

    (void)state;
    fill(piece, sizeof(piece), 3);
    assert_true(tbd_large_array_append(&array, &count, &capacity, 1, NULL, 0));
    assert_null(array);
    for (size_t i = 0; i < 40; i++) {
        size_t bytes = 1 + i * (sizeof(piece) / 40);

        assert_true(tbd_large_array_append(&array, &count, &capacity, 1, piece, bytes));
        assert_true(count <= capacity && capacity <= tbd_large_buffer_bytes(array));
    }
    for (size_t i = 0, at = 0; i < 40; i++) {
        size_t bytes = 1 + i * (sizeof(piece) / 40);

        assert_memory_equal(array + at, piece, bytes);
        at += bytes;
    }
    assert_false(tbd_large_array_append(&array, &count, &capacity, 1, piece, SIZE_MAX / 4));
    assert_memory_equal(array, piece, 1);
    tbd_large_buffer_give(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_given_first_taken),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_taken_and_stretched),
        cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_array),
        cmocka_unit_test(test_append),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
