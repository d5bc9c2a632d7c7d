// SPDX-License-Identifier: MIT
// links: tbd_base
/* test_processors.c - the processors that a process is allowed are counted, and the variable has the last word */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "base/processors.h"

#include <sched.h>
#include <stdlib.h>

static void check_assumed(void **state)
{
    static const struct {
        const char *text;
        unsigned expected; /* 0: as without */
    } rows[] = {
        { "1", 1 },  { "4", 4 },    { "8192", 8192 }, { "0", 0 },
        { "-3", 0 }, { "8193", 0 }, { "", 0 },        { "many", 0 },
    };
    unsigned without;

    (void)state;
    unsetenv("TBD_PROCESSORS");
    without = tbd_processors();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        setenv("TBD_PROCESSORS", rows[i].text, 1);
        assert_int_equal(tbd_processors(), rows[i].expected ? rows[i].expected : without);
    }
    unsetenv("TBD_PROCESSORS");
}

static void check_allowed(void **state)
{
    cpu_set_t all, one;
    size_t first = 0;

    (void)state;
    unsetenv("TBD_PROCESSORS");
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_in_range(tbd_processors(), 1, CPU_COUNT(&all));
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(tbd_processors(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_assumed),
        cmocka_unit_test(check_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
