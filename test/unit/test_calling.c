// SPDX-License-Identifier: MIT
// links: tbd_base
/* Values of call stacks: they are what they always were (logs keep them), can be undone, and tell stacks apart. */
#include "base/calling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t number(const char *path, uint64_t offset)
{
    return tbd_calling_number(tbd_calling_module(path), offset);
}

static void modules_are_named_by_their_files(void **state)
{
    (void)state;
    assert_int_equal(number("/usr/lib/libc.so.6", 5), number("/lib/x86_64-linux-gnu/libc.so.6", 5));
    assert_int_equal(number("app", 5), number("/elsewhere/app", 5));
    assert_int_not_equal(number("app", 5), number("apq", 5));
    assert_int_not_equal(number("app", 5), number("app", 6));
    assert_int_not_equal(number(TBD_CALLING_SIGNAL, 5), number(TBD_CALLING_NO_FILE, 5));
}

static void values_stay_what_they_are(void **state)
{
    static const struct {
        enum tbd_calling_scheme scheme;
        uint64_t value;
    } known[] = {
        { TBD_CALLING_ORDER, 0x53aa78bf99c1b5b5 },
        { TBD_CALLING_XOR, 0x1e05ab992bd0cd1a },
        { TBD_CALLING_SUM, 0xe14633de4bd33124 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint64_t value = tbd_calling_enter(known[i].scheme, 0, number("/usr/bin/app", 0x1234));

        value = tbd_calling_enter(known[i].scheme, value, number("/lib/libc.so.6", 0x98765));
        assert_int_equal(value, known[i].value);
    }
}

/* Its length in translated code does not depend on its value (patcher/emit.c). */
static void numbers_are_operands_of_one_length(void **state)
{
    (void)state;
    for (uint64_t offset = 0; offset < 100000; offset++) {
        uint64_t n = number("app", offset);
        int32_t addend = tbd_calling_addend(n);

        assert_int_equal(n >> 62, 1);
        assert_true(addend != (int8_t)addend);
    }
}

static void every_scheme_can_be_undone(void **state)
{
    uint64_t value = 0;

    (void)state;
    for (enum tbd_calling_scheme s = TBD_CALLING_ORDER; s < TBD_CALLING_SCHEMES; s++)
        for (uint64_t n = 0; n < 1000; n++) {
            uint64_t next = tbd_calling_enter(s, value, number("app", n));

            assert_int_equal(tbd_calling_leave(s, next, number("app", n)), value);
            value = next;
        }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* All stacks of up to six calls at eight sites. */
static void the_order_of_calls_tells_stacks_apart(void **state)
{
    static uint64_t values[8 + 64 + 512 + 4096 + 32768 + 262144 + 1];
    size_t count = 1, first = 0;

    (void)state;
    for (unsigned depth = 0; depth < 6; depth++) {
        size_t end = count;

        for (size_t i = first; i < end; i++)
            for (uint64_t site = 0; site < 8; site++)
                values[count++] =
                    tbd_calling_enter(TBD_CALLING_ORDER, values[i], number("app", 16 * site));
        first = end;
    }
    assert_int_equal(count, sizeof(values) / sizeof(values[0]));
    qsort(values, count, sizeof(values[0]), compare);
    for (size_t i = 1; i < count; i++)
        assert_int_not_equal(values[i - 1], values[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_are_named_by_their_files),
        cmocka_unit_test(values_stay_what_they_are),
        cmocka_unit_test(numbers_are_operands_of_one_length),
        cmocka_unit_test(every_scheme_can_be_undone),
        cmocka_unit_test(the_order_of_calls_tells_stacks_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
