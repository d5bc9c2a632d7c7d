// SPDX-License-Identifier: MIT
// links: tbd_hooks_host
/* TBD_OPTIONS: defaults, values, escapes, and errors for wrong ones. */
#include "hooks/boot/options.h"

#include "format/stream/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct tbd_options options;
static char why[128];

static bool parse(const char *text)
{
    why[0] = '\0';
    return tbd_options_parse(&options, text, why, sizeof(why));
}

static void without_a_variable_there_are_defaults(void **state)
{
    (void)state;
    assert_true(parse(NULL));
    assert_int_equal(options.window, 3u << 19);
    assert_int_equal(options.hooks, TBD_HOOKS_PLAY);
    assert_int_equal(options.mode, TBD_MODE_AUTO);
    assert_int_equal(options.link, 1);
    assert_string_equal(options.dir, "");
    assert_true(parse(""));
}

static void values_are_taken_and_the_last_one_counts(void **state)
{
    (void)state;
    assert_true(parse("dir=/tmp/x,window=1000,hooks=none,window=2000"));
    assert_string_equal(options.dir, "/tmp/x");
    assert_int_equal(options.window, 2000);
    assert_int_equal(options.hooks, TBD_HOOKS_NONE);
}

static void commas_and_backslashes_can_be_escaped(void **state)
{
    (void)state;
    assert_true(parse("dir=/a\\,b\\\\c=d,link=no"));
    assert_string_equal(options.dir, "/a,b\\c=d");
    assert_int_equal(options.link, 0);
    assert_int_equal(options.children, 1);
    assert_true(parse("children=no"));
    assert_int_equal(options.children, 0);
    assert_int_equal(options.memory, TBD_MEMORY_REACHABLE);
    assert_true(parse("memory=stacks"));
    assert_int_equal(options.memory, TBD_MEMORY_STACKS);
    assert_false(parse("memory=heap"));
}

static void sizes_and_times_have_units(void **state)
{
    (void)state;
    assert_true(parse(NULL));
    assert_int_equal(options.budget, 4ull << 30);
    assert_int_equal(options.keep, 0);
    assert_true(parse("budget=20M,level3=64,level2=1000,keep=2G"));
    assert_int_equal(options.budget, 20u << 20);
    assert_int_equal(options.level3, 64);
    assert_int_equal(options.level2, 1000);
    assert_int_equal(options.keep, 2ull << 30);
    assert_true(parse("budget=123,keep=10m"));
    assert_int_equal(options.budget, 123);
    assert_int_equal(options.keep, TBD_KEEP_SECONDS | 600);
    assert_true(parse("keep=2d"));
    assert_int_equal(options.keep, TBD_KEEP_SECONDS | 172800);
    assert_false(parse("budget=10m"));
    assert_false(parse("budget=G"));
    assert_false(parse("keep=1GB"));
    assert_false(parse("keep=99999999999999T"));
    assert_false(parse("keep=-1s"));
}

static void wrong_options_are_named(void **state)
{
    (void)state;
    assert_false(parse("window=100,colour=red"));
    assert_non_null(strstr(why, "'colour'"));
    assert_false(parse("window=many"));
    assert_non_null(strstr(why, "'window'"));
    assert_false(parse("window=15"));
    assert_non_null(strstr(why, "from 16 to"));
    assert_false(parse("ring=64K"));
    assert_non_null(strstr(why, "from 256K to 16384K"));
    assert_true(parse("ring=256K") && parse("ring=16M") && !parse("ring=17M"));
    assert_false(parse("condensed=1023K"));
    assert_non_null(strstr(why, "0, or a size from 1024K to 262144K"));
    assert_true(parse("condensed=0") && parse("condensed=1M"));
    assert_false(parse("hooks=most"));
    assert_non_null(strstr(why, "play|full|blocks|none"));
    assert_false(parse("mode=fast"));
    assert_non_null(strstr(why, "needs auto|native|traced|later|patched"));
    assert_false(parse("dir"));
    assert_false(parse("dir="));
    assert_false(parse("chunks=1"));
    assert_true(parse("chunks=2") && parse("chunks=64"));
    assert_false(parse("chunks=65"));
    assert_true(parse("window=16"));
    assert_false(parse("window=99999999999999999999999"));
    assert_false(parse("="));
}

static bool is_mode(const char *text, uint64_t mode, bool contexts)
{
    return parse(text) && options.mode == mode && options.contexts == contexts;
}

static void play_is_another_word_for_two_modes(void **state)
{
    (void)state;
    assert_true(is_mode("play=native", TBD_MODE_NATIVE, false));
    assert_true(is_mode("play=traced,window=16", TBD_MODE_TRACED, false) && options.window == 16);
    assert_true(is_mode("mode=crash,context,play=native", TBD_MODE_NATIVE, false));
    assert_true(is_mode("play=native,mode=free", TBD_MODE_FREE, false));
    assert_true(is_mode("window=16", TBD_MODE_AUTO, false));
    assert_false(parse("play=free"));
    assert_non_null(strstr(why, "'play' in TBD_OPTIONS needs native|traced"));
    assert_false(parse("play="));
}

static void contexts_go_beside_modes_that_can_have_them(void **state)
{
    (void)state;
    assert_true(is_mode("mode=context", TBD_MODE_CONTEXT, true));
    assert_true(is_mode("mode=free,context", TBD_MODE_CONTEXT, true));
    assert_true(is_mode("mode=crash,context,ring=1M", TBD_MODE_CRASH, true) &&
                options.ring == 1u << 20);
    assert_true(is_mode("mode=context,crash", TBD_MODE_CRASH, true));
    assert_true(is_mode("mode=crash\\,context,link=no", TBD_MODE_CRASH, true) && !options.link);
    assert_true(is_mode("mode=free,crash", TBD_MODE_CRASH, false));
    assert_true(is_mode("mode=crash,free,context,crash", TBD_MODE_CRASH, true));
    assert_true(is_mode("mode=crash,context,mode=native", TBD_MODE_NATIVE, false));
    assert_false(parse("mode=traced,context"));
    assert_non_null(strstr(why, "no context beside traced: a recording has the stacks"));
    for (const char *const *other =
             (const char *const[]){ "native", "later", "patched", "armed", "auto", NULL };
         *other; other++) {
        char text[32];

        snprintf(text, sizeof(text), "mode=context,%s", *other);
        assert_false(parse(text));
        assert_non_null(strstr(why, "no context beside "));
    }
    assert_false(parse("mode=crash,native"));
    assert_non_null(strstr(why, "no native beside crash: only context"));
    assert_false(parse("mode=free,armed"));
    assert_false(parse("mode=crash,fast"));
    assert_non_null(strstr(why, "needs auto|native|traced"));
    assert_true(is_mode("mode=crash,", TBD_MODE_CRASH, false));
    assert_false(parse("mode=,context"));
    assert_false(parse("ring=1M,context"));
    assert_non_null(strstr(why, "unknown option 'context'"));
}

static void names_and_values_that_are_too_long_are_refused(void **state)
{
    static char text[TBD_OPTION_TEXT_BYTES + 64];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    assert_false(parse(text));
    memcpy(text, "dir=", 4);
    assert_false(parse(text));
    text[4 + TBD_OPTION_TEXT_BYTES - 1] = '\0';
    assert_true(parse(text));
}

static void the_table_describes_every_option(void **state)
{
    const char *name;
    const char *values;
    const char *help;
    size_t count = 0;

    (void)state;
    while (tbd_options_describe(count, &name, &values, &help)) {
        assert_true(name[0] && values[0] && help[0]);
        count++;
    }
    assert_true(count >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_variable_there_are_defaults),
        cmocka_unit_test(values_are_taken_and_the_last_one_counts),
        cmocka_unit_test(commas_and_backslashes_can_be_escaped),
        cmocka_unit_test(sizes_and_times_have_units),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(play_is_another_word_for_two_modes),
        cmocka_unit_test(contexts_go_beside_modes_that_can_have_them),
        cmocka_unit_test(names_and_values_that_are_too_long_are_refused),
        cmocka_unit_test(the_table_describes_every_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
