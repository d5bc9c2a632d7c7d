// SPDX-License-Identifier: MIT
// links: tbd_query tbd_format
/* test_put_text.c - numbers are written as printf() writes them, and texts are escaped as fields */
#include "query/output/put_text.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

/* All lengths are there: 2^N and its neighbours. */
static uint64_t number(unsigned i)
{
    return i % 4 == 0 ? 0 - (UINT64_MAX >> (i / 4)) : (UINT64_MAX >> (i / 4)) + i % 4 - 2;
}

static void expect(struct tbd_buffer *out, const char *wanted)
{
    assert_false(out->failed);
    assert_int_equal(out->used, strlen(wanted));
    assert_memory_equal(out->bytes, wanted, out->used);
    out->used = 0;
}

static void every_count_of_digits_is_right(void **state)
{
    struct tbd_buffer out = { 0 };
    uint64_t power = 1;
    char wanted[32];

    (void)state;
    for (unsigned digits = 1; digits <= 20; digits++) {
        for (uint64_t i = power - 1; i <= power + 1; i++) {
            snprintf(wanted, sizeof(wanted), "%" PRIu64, i);
            tbd_buffer_unsigned(&out, i);
            expect(&out, wanted);
        }
        power *= 10;
    }
    tbd_buffer_free(&out);
}

static void numbers_are_printf_s(void **state)
{
    struct tbd_buffer out = { 0 };
    char wanted[32];

    (void)state;
    for (unsigned i = 0; i < 4 * 64; i++) {
        snprintf(wanted, sizeof(wanted), "%" PRIu64, number(i));
        tbd_buffer_unsigned(&out, number(i));
        expect(&out, wanted);
        snprintf(wanted, sizeof(wanted), "%" PRId64, (int64_t)number(i));
        tbd_buffer_signed(&out, (int64_t)number(i));
        expect(&out, wanted);
        snprintf(wanted, sizeof(wanted), "0x%" PRIx64, number(i));
        tbd_buffer_hex(&out, number(i));
        expect(&out, wanted);
    }
    tbd_buffer_free(&out);
}

static void what_follows_is_escaped(void **state)
{
    static const char *const texts[] = { "",         "plain",  "a\x1b[31mb",
                                         "\xff\xfe", "x\ny\t", "\xe2\x80\xae" };
    struct tbd_buffer out = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char *shown = tbd_shown_copy(texts[i]), wanted[64];

        assert_non_null(shown);
        tbd_buffer_text(&out, "a\n"); /* what is before stays */
        tbd_buffer_text(&out, texts[i]);
        tbd_buffer_escape(&out, 2);
        snprintf(wanted, sizeof(wanted), "a\n%s", shown);
        expect(&out, wanted);
        free(shown);
    }
    tbd_buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_printf_s),
        cmocka_unit_test(every_count_of_digits_is_right),
        cmocka_unit_test(what_follows_is_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
