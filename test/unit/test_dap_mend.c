// SPDX-License-Identifier: MIT
// links: tbd_query
/* test_dap_mend.c - requests whose strings cannot be held become requests about text */
#include "query/dap/dap_mend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void becomes(const char *text, const char *wanted)
{
    size_t bytes = 0;
    char *mended = tbd_dap_mend(text, strlen(text), &bytes);

    assert_non_null(mended);
    assert_int_equal(bytes, strlen(mended));
    assert_string_equal(mended, wanted);
    free(mended);
}

static void json_stays_as_it_is(void **state)
{
    (void)state;
    becomes("", "");
    becomes("{\"a\": [\"\\\\ud800\", \"\\n\\\"\\u00e9\\ud83d\\ude00 \xc3\xa9\"]}",
            "{\"a\": [\"\\\\ud800\", \"\\n\\\"\\u00e9\\ud83d\\ude00 \xc3\xa9\"]}");
}

static void what_no_string_holds_is_text(void **state)
{
    (void)state;
    becomes("\"\\ud800\"", "\"\\\\ud800\"");
    becomes("\"\\ude00\\ud83d\"", "\"\\\\ude00\\\\ud83d\"");
    becomes("\"\\ud83d\\ud83d\\ude00\"", "\"\\\\ud83d\\ud83d\\ude00\"");
    becomes("\"a\\u0000b\"", "\"a\\\\u0000b\"");
    becomes("\"\xff\xed\xa0\x80\"", "\"\\\\xff\\\\xed\\\\xa0\\\\x80\"");
}

static void other_mistakes_stay(void **state)
{
    (void)state;
    becomes("{\"a", "{\"a");
    becomes("\\", "\\");
    becomes("\"\\q\\u12\"", "\"\\q\\u12\"");
}

static void a_mended_request_is_json(void **state)
{
    const char text[] = "{\"seq\": 7, \"x\": \"\\udfff\\u0000\xc0\\\xff\"}";
    size_t bytes = 0;
    char *mended = tbd_dap_mend(text, strlen(text), &bytes);
    json_t *value = json_loadb(mended, bytes, 0, NULL);

    (void)state;
    assert_null(json_loadb(text, strlen(text), 0, NULL));
    assert_int_equal(json_integer_value(json_object_get(value, "seq")), 7);
    assert_string_equal(json_string_value(json_object_get(value, "x")), "\\udfff\\u0000\\xc0\\xff");
    json_decref(value);
    free(mended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_stays_as_it_is),
        cmocka_unit_test(what_no_string_holds_is_text),
        cmocka_unit_test(other_mistakes_stay),
        cmocka_unit_test(a_mended_request_is_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
