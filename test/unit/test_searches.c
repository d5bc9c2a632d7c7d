// SPDX-License-Identifier: MIT
// links: tbd_hooks_host
/* Address space is not looked for all the time where there is none, nor given up for ever. */
#include "hooks/memory/searches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PLACE (3ull << 44)

static unsigned searches_of(unsigned wishes, uint64_t pc, uint64_t bytes, bool has_found)
{
    unsigned searches = 0;

    for (unsigned n = 0; n < wishes; n++)
        if (tbd_searches_may_begin(pc, bytes)) {
            searches++;
            tbd_searches_note(pc, bytes, has_found);
        }
    return searches;
}

static void searches_in_vain_become_fewer(void **state)
{
    (void)state;
    assert_int_equal(searches_of(1000, PLACE, 1 << 20, false),
                     10); /* the 1st, 3rd, 6th, 11th, ..., 521st */
    assert_int_equal(searches_of(100000, PLACE, 1 << 20, false), 26);
}

static void other_places_and_sizes_are_searched(void **state)
{
    (void)state;
    searches_of(100, PLACE, 4 << 20, false);
    assert_false(tbd_searches_may_begin(PLACE + 4096, 4 << 20));
    assert_true(tbd_searches_may_begin(PLACE + (4ull << 30), 4 << 20));
    assert_true(tbd_searches_may_begin(PLACE, 65536));
}

static void after_success_all_are_made(void **state)
{
    unsigned left_out = 0;

    (void)state;
    searches_of(100, PLACE, 16 << 20, false);
    while (!tbd_searches_may_begin(PLACE, 16 << 20))
        assert_true(++left_out < 100);
    tbd_searches_note(PLACE, 16 << 20, true);
    assert_int_equal(searches_of(50, PLACE, 16 << 20, true), 50);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(searches_in_vain_become_fewer),
        cmocka_unit_test(other_places_and_sizes_are_searched),
        cmocka_unit_test(after_success_all_are_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
