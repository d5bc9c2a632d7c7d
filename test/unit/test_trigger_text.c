// SPDX-License-Identifier: MIT
// links: tbd_query_triggers
/* test_trigger_text.c - the language of triggers: what is read, and what is refused in one line */
#include "query/triggers/trigger_text.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct tbd_trigger_wishes wishes;

static bool reads(const char *text)
{
    struct tbd_query_error error = { 0 };
    bool done = tbd_trigger_read(text, &wishes, &error);

    assert_int_equal(done, error.status == TBD_OK);
    if (!done) {
        assert_true(error.message[0]);
        assert_true(error.at <= strlen(text) && error.at + error.length <= strlen(text));
    }
    return done;
}

static void places(void **state)
{
    const struct tbd_trigger_wish *all = wishes.all;

    (void)state;
    assert_true(reads("main; libc!free times 3 ;dir/a.c:12 if x == \"a;b\"; 0x40ff if $rax == 1"));
    assert_int_equal(wishes.count, 4);
    assert_int_equal(all[0].where.kind, TBD_WHERE_ENTRY);
    assert_string_equal(all[0].where.name, "main");
    assert_false(all[0].has_module);
    assert_int_equal(all[0].condition, all[0].end);
    assert_true(all[1].has_module);
    assert_string_equal(all[1].where.module, "libc");
    assert_string_equal(all[1].where.name, "free");
    assert_int_equal(all[1].times, 3);
    assert_int_equal(all[2].where.kind, TBD_WHERE_LINE);
    assert_string_equal(all[2].where.name, "dir/a.c");
    assert_int_equal(all[2].where.number, 12);
    assert_true(all[2].condition < all[2].end);
    assert_int_equal(all[3].where.kind, TBD_WHERE_ADDRESS);
    assert_int_equal(all[3].where.number, 0x40ff);
    assert_true(reads("(anonymous namespace)::f times 2 if a"));
    assert_string_equal(all[0].where.name, "(anonymous namespace)::f");
    assert_int_equal(all[0].times, 2);
    assert_true(reads("n::f")); /* no line */
    assert_int_equal(all[0].where.kind, TBD_WHERE_ENTRY);
}

static void signals(void **state)
{
    (void)state;
    assert_true(reads("signal USR1; signal SIGHUP times 2; signal 64"));
    assert_int_equal(wishes.all[0].signals, 1ull << (SIGUSR1 - 1));
    assert_int_equal(wishes.all[1].signals, 1ull << (SIGHUP - 1));
    assert_int_equal(wishes.all[1].times, 2);
    assert_true(wishes.all[2].signals == 1ull << 63);
}

static void nothing(void **state)
{
    (void)state;
    assert_true(reads(""));
    assert_true(reads(" ; ;"));
    assert_int_equal(wishes.count, 0);
}

static void parts(void **state)
{
    const struct tbd_trigger_wish *all = wishes.all;
    const char *text = "f with a b(); g times 2 with modules if x; signal HUP with rings";

    (void)state;
    assert_true(reads(text));
    assert_int_equal(wishes.count, 3);
    assert_memory_equal(text + all[0].parts, "a b()", 5);
    assert_int_equal(all[0].parts_end - all[0].parts, 5);
    assert_int_equal(all[1].parts_end - all[1].parts, 7);
    assert_int_equal(all[1].times, 2);
    assert_true(all[1].condition < all[1].end);
    assert_int_equal(all[2].parts_end - all[2].parts, 5);
    assert_true(reads("f"));
    assert_int_equal(all[0].parts, all[0].parts_end);
}

static void refusals(void **state)
{
    static const char *const texts[] = {
        "signal",      "signal NOPE", "signal 0",     "signal 65",   "f times",         "f times 0",
        "f times x",   "f if",        "f times 1001", "f times 2 x", "signal HUP if 1", "f with",
        "f with if x", "f with a if", "!f",           "f if a; !",   "times 3",         "if x == 3",
    };
    char many[600], long_name[1200];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (reads(texts[i]))
            fail_msg("it was read: %s", texts[i]);
    memset(many, 0, sizeof(many));
    for (unsigned i = 0; i < TBD_TRIGGER_MAX + 1; i++)
        strcat(many, "f; ");
    assert_false(reads(many));
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_false(reads(long_name));
}

static void random_texts(void **state)
{
    static const char *const words[] = { "f", "if", "with", "times", "signal", ";", "!",
                                         ":", "12", "0x",   "\"",    "\\",     " ", "HUP",
                                         "x", "==", "\n",   "\t",    "*" };
    uint64_t seed = 1;

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        char text[128] = "";

        for (unsigned i = 0; i < 12; i++) {
            seed = seed * 6364136223846793005ull + 1442695040888963407ull;
            strcat(text, words[(seed >> 33) % (sizeof(words) / sizeof(words[0]))]);
        }
        (void)reads(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places),   cmocka_unit_test(signals),      cmocka_unit_test(nothing),
        cmocka_unit_test(refusals), cmocka_unit_test(random_texts), cmocka_unit_test(parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
