// SPDX-License-Identifier: MIT
// links: tbd_base
/* test_escape.c - nothing that a terminal obeys gets through, and nothing else is changed */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "base/escape.h"
#include "base/safe_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct escape_row {
    enum tbd_escape_what what;
    const char *text, *expected;
};

static const struct escape_row rows[] = {
    { TBD_ESCAPE_FIELD, "list->head \\x1b", "list->head \\x1b" },
    { TBD_ESCAPE_FIELD, "\x1b]0;owned\a", "\\x1b]0;owned\\a" },
    { TBD_ESCAPE_FIELD, "a\nb\tc\rd\x7f", "a\\nb\\tc\\rd\\x7f" },
    { TBD_ESCAPE_FIELD, "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x9e",
      "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x9e" },
    { TBD_ESCAPE_FIELD,
      "\xc2\x9b"
      "31m",
      "\\u009b31m" },
    { TBD_ESCAPE_FIELD,
      "\x9b"
      "31m",
      "\\x9b31m" },
    { TBD_ESCAPE_FIELD,
      "a\xe2\x80\xae"
      "b\xe2\x81\xa6",
      "a\\u202eb\\u2066" },
    { TBD_ESCAPE_FIELD, "\xe2\x80\xa8\xe2\x80\x8b\xef\xbb\xbf", "\\u2028\\u200b\\ufeff" },
    { TBD_ESCAPE_FIELD, "\xf3\xa0\x81\x81", "\\U0e0041" },
    { TBD_ESCAPE_FIELD, "\xc0\xaf\xe0\x80\x9b\xed\xa0\x80\xf4\x90\x80\x80\xff",
      "\\xc0\\xaf\\xe0\\x80\\x9b\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xff" },
    { TBD_ESCAPE_FIELD, "cut \xe2\x82", "cut \\xe2\\x82" },
    { TBD_ESCAPE_FIELD, "\xe2\x1b[m", "\\xe2\\x1b[m" },
    { TBD_ESCAPE_LINES, "a\tb\n\x1b[2J\r\nc\rd", "a\tb\n\\x1b[2J\r\nc\\rd" },
    { TBD_ESCAPE_UTF8, "\x1b[m\xc2\x9b\xe2\x80\xae\xff\xc3",
      "\x1b[m\xc2\x9b\xe2\x80\xae\\xff\\xc3" },
};

static void texts_are_escaped(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t length = strlen(rows[i].text);
        char out[128];

        assert_int_equal(tbd_escape(rows[i].what, rows[i].text, length, out, sizeof(out)),
                         strlen(rows[i].expected));
        assert_string_equal(out, rows[i].expected);
        assert_int_equal(tbd_escape_is_plain(rows[i].what, rows[i].text, length),
                         strcmp(rows[i].text, rows[i].expected) == 0);
    }
}

static void a_small_buffer_cuts_between_characters(void **state)
{
    static const char text[] = "a\x1b\xe2\x82\xac!";
    static const char *const expected[] = { "",
                                            "",
                                            "a",
                                            "a",
                                            "a",
                                            "a",
                                            "a\\x1b",
                                            "a\\x1b",
                                            "a\\x1b",
                                            "a\\x1b\xe2\x82\xac",
                                            "a\\x1b\xe2\x82\xac!" };

    (void)state;
    for (size_t capacity = 0; capacity < sizeof(expected) / sizeof(expected[0]); capacity++) {
        char out[16] = "";

        assert_int_equal(tbd_escape(TBD_ESCAPE_FIELD, text, strlen(text), out, capacity), 9);
        assert_string_equal(out, expected[capacity]);
    }
}

/* ESCAPE-1 and ESCAPE-2, for all pairs of bytes and all characters. */
static void nothing_harmful_is_left(void **state)
{
    (void)state;
    for (unsigned pair = 0; pair < 65536; pair++) {
        char text[2] = { (char)(pair >> 8), (char)pair }, out[32];
        size_t bytes = tbd_escape(TBD_ESCAPE_FIELD, text, 2, out, sizeof(out));

        assert_true(tbd_escape_is_plain(TBD_ESCAPE_FIELD, out, bytes));
        assert_true(tbd_escape_is_plain(TBD_ESCAPE_UTF8, out, bytes));
        for (size_t i = 0; i < bytes; i++)
            assert_true((uint8_t)out[i] >= 0x20 && out[i] != 0x7f);
    }
}

static char *through_stream(const char *text, size_t length, size_t piece)
{
    char *out = NULL;
    size_t bytes;
    FILE *to = open_memstream(&out, &bytes), *safe = tbd_safe_stream(to);

    assert_non_null(safe);
    setvbuf(safe, NULL, _IONBF, 0);
    for (size_t at = 0; at < length; at += piece)
        fwrite(text + at, 1, length - at < piece ? length - at : piece, safe);
    assert_int_equal(fclose(safe), 0);
    fclose(to);
    return out;
}

static void streams_escape_whatever_way_they_are_written_to(void **state)
{
    char text[4000], expected[16000];
    size_t used = 0;

    (void)state;
    while (used + 128 < sizeof(text)) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && used + 32 < sizeof(text); i++)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\r\n", rows[i].text);
    }
    (void)tbd_escape(TBD_ESCAPE_LINES, text, used, expected, sizeof(expected));
    for (size_t piece = 1; piece < 700; piece = piece < 8 ? piece + 1 : piece * 2 - 1) {
        char *out = through_stream(text, used, piece);

        assert_string_equal(out, expected);
        free(out);
    }
}

/* Eight bytes are looked at at once: each byte at each of their places, next to the lowest and the highest that stay. */
static void plain_lines_end_at_the_first_other_byte(void **state)
{
    static const char around[] = { 'a', ' ', '~', '\n' };
    char text[24];

    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        bool stays = (byte >= 0x20 && byte < 0x7f) || byte == '\n';

        for (size_t i = 0; i < sizeof(text) * sizeof(around); i++) {
            size_t at = i / sizeof(around);

            memset(text, around[i % sizeof(around)], sizeof(text));
            text[at] = (char)byte;
            assert_int_equal(tbd_escape_plain_lines(text, sizeof(text)), stays ? sizeof(text) : at);
        }
    }
}

static void shown_names_stay_for_a_line(void **state)
{
    char *whole = malloc(20000);
    const char *first = tbd_shown("\x1b");
    char *copy;

    (void)state;
    for (unsigned i = 1; i < TBD_SHOWN_AT_ONCE; i++)
        assert_string_equal(tbd_shown("x"), "x");
    assert_string_equal(first, "\\x1b");
    memset(whole, '\a', 19999);
    whole[19999] = '\0';
    assert_true(strlen(tbd_shown(whole)) < TBD_SHOWN_BYTES);
    assert_string_equal(tbd_shown(whole) + strlen(tbd_shown(whole)) - 3, "...");
    copy = tbd_shown_copy(whole);
    assert_int_equal(strlen(copy), 2 * 19999);
    free(copy);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(a_small_buffer_cuts_between_characters),
        cmocka_unit_test(nothing_harmful_is_left),
        cmocka_unit_test(streams_escape_whatever_way_they_are_written_to),
        cmocka_unit_test(plain_lines_end_at_the_first_other_byte),
        cmocka_unit_test(shown_names_stay_for_a_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
