// SPDX-License-Identifier: MIT
// links: tbd_query
/* test_print_text.c - strings are printed as by gdb; expected texts are output of gdb 13 */
#include "query/text/print_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const char *print(const void *text, size_t count, bool is_cut)
{
    static char out[1024];
    FILE *file = fmemopen(out, sizeof(out), "w");

    assert_non_null(file);
    tbd_text_print(file, text, count, is_cut);
    fclose(file);
    return out;
}

#define PRINTED(literal) print(literal, sizeof(literal) - 1, false)

static void nuls_are_shown_but_for_the_last(void **state)
{
    (void)state;
    assert_string_equal(PRINTED("node 0\0\0\0\0\0\0"), "\"node 0\\000\\000\\000\\000\\000\"");
    assert_string_equal(PRINTED("ab\0cd\0\0"), "\"ab\\000cd\\000\"");
    assert_string_equal(PRINTED("\0xyz\0"), "\"\\000xyz\"");
    assert_string_equal(PRINTED("abc"), "\"abc\"");
    assert_string_equal(PRINTED("\0"), "\"\"");
    assert_string_equal(PRINTED(""), "\"\"");
    assert_string_equal(PRINTED("\0x"), "\"\\000x\"");
}

static void characters_that_are_not_printed_are_octal(void **state)
{
    (void)state;
    assert_string_equal(PRINTED("\200\33\\\"'\7\n"), "\"\\200\\033\\\\\\\"'\\a\\n\"");
    assert_string_equal(PRINTED("\1"
                                "1\0"
                                "1\7"),
                        "\"\\0011\\0001\\a\"");
}

static void long_runs_are_counted(void **state)
{
    (void)state;
    assert_string_equal(PRINTED("aaaaaaaaaaa"), "'a' <repeats 11 times>");
    assert_string_equal(PRINTED("aaaaaaaaaa"), "\"aaaaaaaaaa\"");
    assert_string_equal(PRINTED("\0\0\0\0\0\0\0\0\0\0\0\0"), "'\\000' <repeats 11 times>");
    assert_string_equal(PRINTED("''''''''''''"), "'\\'' <repeats 12 times>");
    assert_string_equal(PRINTED("ab\0\0\0\0\0\0\0\0\0\0\0\0\0c\0\0"),
                        "\"ab\", '\\000' <repeats 13 times>, \"c\\000\"");
    assert_string_equal(PRINTED("aaaaaaaaaaaabbbbbbbbbbbbb"),
                        "'a' <repeats 12 times>, 'b' <repeats 13 times>");
}

static void what_is_long_ends_in_dots(void **state)
{
    char text[300], expected[256];

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i % 26);
    snprintf(expected, sizeof(expected), "\"%.200s\"", text);
    assert_string_equal(print(text, 200, false), expected);
    snprintf(expected, sizeof(expected), "\"%.200s\"...", text);
    assert_string_equal(print(text, 201, false), expected);
    assert_string_equal(print(text, 200, true), expected);
    memset(text, 0, sizeof(text));
    assert_string_equal(print(text, 300, false), "'\\000' <repeats 299 times>");
    assert_string_equal(print(text, 200, true), "'\\000' <repeats 200 times>...");
    text[299] = 'x';
    assert_string_equal(print(text, 300, false), "'\\000' <repeats 299 times>...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nuls_are_shown_but_for_the_last),
        cmocka_unit_test(characters_that_are_not_printed_are_octal),
        cmocka_unit_test(long_runs_are_counted),
        cmocka_unit_test(what_is_long_ends_in_dots),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
