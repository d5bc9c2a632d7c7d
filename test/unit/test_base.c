// SPDX-License-Identifier: MIT
// links: tbd_base
/* The leaf code: formatting without libc, arenas, growing arrays. */
#include "base/arena.h"
#include "base/array.h"
#include "base/fmt.h"
#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void numbers_look_like_printf(void **state)
{
    char ours[128];
    char libc[128];

    (void)state;
    tbd_fmt(ours, sizeof(ours), "%d %d %u %x %ld %lu %lx %zu %c %% %p", -7, INT32_MIN, 4000000000u,
            0xbeefu, INT64_MIN, UINT64_MAX, 0x123456789abcdeful, (size_t)42, 'z',
            (void *)0x7fff12345678);
    snprintf(libc, sizeof(libc), "%d %d %u %x %ld %lu %lx %zu %c %% %p", -7, INT32_MIN, 4000000000u,
             0xbeefu, INT64_MIN, UINT64_MAX, 0x123456789abcdeful, (size_t)42, 'z',
             (void *)0x7fff12345678);
    assert_string_equal(ours, libc);
}

static void widths_pad_with_blanks_or_zeros(void **state)
{
    char ours[64];

    (void)state;
    tbd_fmt(ours, sizeof(ours), "[%5u][%05x]", 42u, 0xau);
    assert_string_equal(ours, "[   42][0000a]");
}

static void what_does_not_fit_is_cut_and_terminated(void **state)
{
    char ours[9];

    (void)state;
    for (size_t size = 1; size <= sizeof(ours) - 1; size++) {
        memset(ours, '#', sizeof(ours));
        assert_int_equal(tbd_fmt(ours, size, "%s%u", "abcde", 123456u), size - 1);
        assert_int_equal(ours[size - 1], '\0');
        assert_int_equal(ours[size], '#');
    }
}

static void a_null_string_is_shown(void **state)
{
    char ours[16];
    const char *volatile nothing = NULL;

    (void)state;
    tbd_fmt(ours, sizeof(ours), "%s", nothing);
    assert_string_equal(ours, "(null)");
}

static void arenas_align_and_end(void **state)
{
    struct tbd_arena arena;
    uint8_t *a;
    uint8_t *b;

    (void)state;
    assert_true(tbd_arena_init(&arena, 8192));
    a = tbd_arena_alloc(&arena, 3, 1);
    b = tbd_arena_alloc(&arena, 64, 64);
    assert_non_null(a);
    assert_int_equal((uintptr_t)b % 64, 0);
    assert_true(b >= a + 3);
    assert_null(tbd_arena_alloc(&arena, SIZE_MAX, 1));
    assert_null(tbd_arena_alloc(&arena, 8192, 1));
    assert_non_null(tbd_arena_alloc(&arena, 4096, 1));
}

static void a_rewound_arena_gives_the_same_memory_again(void **state)
{
    struct tbd_arena arena;
    uint8_t *mark;
    void *first;

    (void)state;
    assert_true(tbd_arena_init(&arena, 4096));
    mark = tbd_arena_mark(&arena);
    first = tbd_arena_alloc(&arena, 100, 8);
    tbd_arena_rewind(&arena, mark);
    assert_ptr_equal(tbd_arena_alloc(&arena, 100, 8), first);
}

static void a_reset_arena_is_zero_again(void **state)
{
    struct tbd_arena arena;
    uint8_t *memory;

    (void)state;
    assert_true(tbd_arena_init(&arena, 4096));
    memory = tbd_arena_alloc(&arena, 4096, 1);
    memset(memory, 0xff, 4096);
    tbd_arena_reset(&arena);
    memory = tbd_arena_alloc(&arena, 4096, 1);
    for (size_t i = 0; i < 4096; i++)
        assert_int_equal(memory[i], 0);
}

static void arrays_keep_their_elements_as_they_grow(void **state)
{
    uint32_t *grown = NULL;
    uint32_t *doubled = NULL;
    size_t capacity = 0;

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(tbd_array_grow(&grown, i, &capacity, sizeof(*grown)));
        assert_true(capacity > i);
        assert_true(tbd_array_double(&doubled, i, sizeof(*doubled)));
        grown[i] = doubled[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(grown[i] == i && doubled[i] == i);
    free(grown);
    free(doubled);
}

static void a_table_by_number_is_zero_where_it_is_new(void **state)
{
    uint64_t *table = NULL;
    size_t capacity = 0, before;

    (void)state;
    assert_true(tbd_array_reach(&table, 0, &capacity, sizeof(*table)));
    before = capacity;
    for (size_t i = 0; i < before; i++)
        assert_int_equal(table[i], 0);
    table[0] = table[before - 1] = 7;
    assert_true(tbd_array_reach(&table, before - 1, &capacity, sizeof(*table)));
    assert_int_equal(capacity, before);
    assert_true(tbd_array_reach(&table, 100000, &capacity, sizeof(*table)));
    assert_true(capacity > 100000 && table[0] == 7 && table[before - 1] == 7);
    for (size_t i = before; i < capacity; i++)
        assert_int_equal(table[i], 0);
    before = capacity;
    assert_false(tbd_array_reach(&table, SIZE_MAX, &capacity, sizeof(*table)));
    assert_false(tbd_array_reach(&table, SIZE_MAX / 2, &capacity, sizeof(*table)));
    assert_true(capacity == before && table[0] == 7);
    free(table);
}

static void two_tables_by_number_share_a_capacity(void **state)
{
    uint64_t *table = NULL;
    uint8_t *other = NULL;
    size_t capacity = 0, before;

    (void)state;
    assert_true(tbd_array_reach_both(&table, sizeof(*table), &other, sizeof(*other), 5, &capacity));
    before = capacity;
    table[before - 1] = 7;
    other[before - 1] = 9;
    assert_true(
        tbd_array_reach_both(&table, sizeof(*table), &other, sizeof(*other), before, &capacity));
    assert_true(capacity > before && table[before - 1] == 7 && other[before - 1] == 9);
    for (size_t i = before; i < capacity; i++)
        assert_true(!table[i] && !other[i]);
    before = capacity;
    assert_false(tbd_array_reach_both(&other, sizeof(*other), &table, sizeof(*table), SIZE_MAX / 2,
                                      &capacity));
    assert_true(capacity == before && table[0] == 0 && other[0] == 0);
    free(table);
    free(other);
}

static void an_array_that_cannot_grow_stays_as_it_was(void **state)
{
    uint64_t *array = NULL;
    uint64_t *before;
    size_t capacity = 0;

    (void)state;
    assert_true(tbd_array_reserve(&array, 5, &capacity, sizeof(*array)));
    assert_true(capacity >= 5);
    before = array;
    assert_false(tbd_array_reserve(&array, SIZE_MAX / 2, &capacity, sizeof(*array)));
    assert_ptr_equal(array, before);
    assert_true(capacity < SIZE_MAX / 2);
    free(array);
}

static void every_status_has_a_text(void **state)
{
    (void)state;
#define X(name, number, message) assert_string_equal(tbd_status_text(TBD_##name), message);
#include "base/status.def"
#undef X
    assert_string_equal(tbd_status_text((enum tbd_status)9999), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_look_like_printf),
        cmocka_unit_test(widths_pad_with_blanks_or_zeros),
        cmocka_unit_test(what_does_not_fit_is_cut_and_terminated),
        cmocka_unit_test(a_null_string_is_shown),
        cmocka_unit_test(arenas_align_and_end),
        cmocka_unit_test(a_rewound_arena_gives_the_same_memory_again),
        cmocka_unit_test(a_reset_arena_is_zero_again),
        cmocka_unit_test(arrays_keep_their_elements_as_they_grow),
        cmocka_unit_test(a_table_by_number_is_zero_where_it_is_new),
        cmocka_unit_test(two_tables_by_number_share_a_capacity),
        cmocka_unit_test(an_array_that_cannot_grow_stays_as_it_was),
        cmocka_unit_test(every_status_has_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
