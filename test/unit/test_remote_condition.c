// SPDX-License-Identifier: MIT
// links: tbd_query_remote
/* test_remote_condition.c - conditions that gdb sends as code: what they mean in tbdq's language, and code that is none */
#include "query/condition/question.h"
#include "query/remote/remote_condition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The code of "i == 7 && n < 3", as gdb makes it: i in rdi, n an int in memory at rsp. */
static const uint8_t both[] = { 0x26, 0,    5, 0x22, 7,    0x13, 0x20, 0,    12, 0x22, 0,
                                0x27, 0x26, 0, 7,    0x19, 0x16, 32,   0x22, 3,  0x14, 0x27 };

static void means(const uint8_t *code, size_t bytes, const char *wanted)
{
    struct tbd_question question = { 0 };
    struct tbd_query_error error = { 0 };
    char text[TBD_REMOTE_CONDITION_BYTES + 16], *condition = tbd_remote_condition(code, bytes);

    assert_non_null(condition);
    assert_string_equal(condition, wanted);
    snprintf(text, sizeof(text), "state where %s", condition);
    assert_int_equal(tbd_question_parse_all(text, 0, &question, &error), TBD_OK);
    tbd_question_free(&question);
    free(condition);
}

static void a_jump_becomes_a_choice(void **state)
{
    (void)state;
    means(both, sizeof(both),
          "(((rdi) == (0x7)) and (signed((signed((mem[rsp, 4]) << 32) >> 32)) < signed(0x3)))");
}

/* "n == VALUE", n an int in the frame. */
static void numbers_are_added_up(void **state)
{
    static const uint8_t seven[] = { 0x26, 0,    6,    0x22, 16, 0x02, 0x22, 0xec, 0x16,
                                     8,    0x02, 0x19, 0x16, 32, 0x22, 7,    0x13, 0x27 };
    static const uint8_t minus[] = { 0x26, 0,    6,    0x22, 20, 0x03, 0x19, 0x16,
                                     32,   0x22, 0xff, 0x16, 8,  0x13, 0x27 };
    static const uint8_t never[] = { 0x26, 0, 6, 0x19, 0x16, 32, 0x24, 0x80, 0, 0, 0, 0x13, 0x27 };
    static const uint8_t first[] = { 0x22, 9, 0x26, 0, 6, 0x02, 0x27 };

    (void)state;
    means(seven, sizeof(seven), "((mem[((rbp) + (0xfffffffffffffffc)), 4]) == (0x7))");
    means(minus, sizeof(minus), "((mem[((rbp) + (0xffffffffffffffec)), 4]) == (0xffffffff))");
    /* A sign-extended int is never 0x80000000. */
    means(never, sizeof(never), "(((signed((mem[rbp, 4]) << 32) >> 32)) == (0x80000000))");
    means(first, sizeof(first), "(((0x9) + (rbp)) != 0)");
}

static void or_of_c_is_or(void **state)
{
    static const uint8_t either[] = { 0x26, 0, 5, 0x20, 0, 11, 0x26, 0, 4, 0x27, 0, 0x22, 1, 0x27 };
    static const uint8_t neither[] = { 0x26, 0, 5, 0x20, 0, 10, 0x26, 0, 4, 0x27, 0x22, 0, 0x27 };

    (void)state;
    means(either, sizeof(either), "((rdi != 0) or (rsi != 0))");
    means(neither, sizeof(neither),
          "(((rdi != 0) and (0 != 0)) or (not (rdi != 0) and (rsi != 0)))");
}

static void the_stack_is_gdbs(void **state)
{
    static const uint8_t swapped[] = { 0x22, 1, 0x22, 2, 0x2b, 0x03, 0x27 };
    static const uint8_t picked[] = { 0x22, 1, 0x22, 2, 0x32, 1, 0x0e, 0x27 };
    static const uint8_t wide[] = { 0x23, 0x12, 0x34, 0x2a, 8, 0x12, 0x27 };

    (void)state;
    means(swapped, sizeof(swapped), "(0x1 != 0)");
    means(picked, sizeof(picked), "(not (0x1 != 0))");
    means(wide, sizeof(wide), "((~(0x34)) != 0)");
}

static void what_is_no_condition_is_refused(void **state)
{
    static const uint8_t back[] = { 0x22, 1, 0x21, 0, 0, 0x27 };
    static const uint8_t itself[] = { 0x22, 1, 0x20, 0, 2, 0x27 };
    static const uint8_t empty[] = { 0x27 };
    static const uint8_t register_99[] = { 0x26, 0, 99, 0x27 };
    static const uint8_t underflow[] = { 0x22, 1, 0x02, 0x27 };
    static const uint8_t real[] = { 0x22, 1, 0x1c, 0x27 };

    (void)state;
    assert_null(tbd_remote_condition(back, sizeof(back)));
    assert_null(tbd_remote_condition(itself, sizeof(itself)));
    assert_null(tbd_remote_condition(empty, sizeof(empty)));
    assert_null(tbd_remote_condition(register_99, sizeof(register_99)));
    assert_null(tbd_remote_condition(underflow, sizeof(underflow)));
    assert_null(tbd_remote_condition(real, sizeof(real)));
    for (size_t bytes = 0; bytes < sizeof(both); bytes++)
        assert_null(tbd_remote_condition(both, bytes));
}

static void doubling_ends(void **state)
{
    uint8_t code[600];
    size_t used = 0;

    (void)state;
    code[used++] = 0x26;
    code[used++] = 0;
    code[used++] = 5;
    while (used + 3 < sizeof(code)) { /* x + x, again and again */
        code[used++] = 0x28;
        code[used++] = 0x02;
    }
    code[used++] = 0x27;
    assert_null(tbd_remote_condition(code, used));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_jump_becomes_a_choice),
        cmocka_unit_test(numbers_are_added_up),
        cmocka_unit_test(or_of_c_is_or),
        cmocka_unit_test(the_stack_is_gdbs),
        cmocka_unit_test(what_is_no_condition_is_refused),
        cmocka_unit_test(doubling_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
