// SPDX-License-Identifier: MIT
// links: tbd_base
/* Values of branches: they are what they always were (logs keep them); full fields and products that are too large. */
#include "base/branching.h"
#include "base/calling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct tbd_branch_function function(uint32_t count)
{
    struct tbd_branch_function f = {
        .module = tbd_calling_module("/usr/bin/app"), .start = 0x1234, .end = 0x2234, .count = count
    };

    for (uint32_t i = 0; i < count; i++)
        f.at[i] = 7 * i + 3;
    return f;
}

static void values_stay_what_they_are(void **state)
{
    static const uint64_t known[TBD_BRANCH_SCHEMES] = {
        [TBD_BRANCH_COUNTS] = 0x0000000200000001,
        [TBD_BRANCH_XOR] = 0x79ad1e3877f56840,
        [TBD_BRANCH_SUM] = 0x4e69c6d9fefb2bb0,
        [TBD_BRANCH_PRODUCT] = 18,
    };
    struct tbd_branch_function f = function(2);

    (void)state;
    for (enum tbd_branch_scheme s = TBD_BRANCH_COUNTS; s < TBD_BRANCH_SCHEMES; s++) {
        uint64_t value = tbd_branch_initial(s);

        value = tbd_branch_take(s, value, &f, 1);
        value = tbd_branch_take(s, value, &f, 0);
        value = tbd_branch_take(s, value, &f, 1);
        assert_int_equal(value, known[s]);
    }
}

static void fields_do_not_overlap_and_stay_full(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= TBD_BRANCH_MAX; count++) {
        struct tbd_branch_function f = function(count);
        uint64_t seen = 0;

        for (uint32_t i = 0; i < count; i++) {
            uint64_t field = tbd_branch_field(&f, i), value = seen;

            assert_true(field != 0 && (seen & field) == 0);
            for (unsigned n = 0; n < 300; n++)
                value = tbd_branch_take(TBD_BRANCH_COUNTS, value, &f, i);
            assert_int_equal(value & ~field, seen);
            if (64 / count <= 8)
                assert_int_equal(value & field, field);
            seen |= field;
        }
    }
}

static void products_that_are_too_large_are_none(void **state)
{
    struct tbd_branch_function f = function(TBD_BRANCH_MAX);
    uint64_t value = tbd_branch_initial(TBD_BRANCH_PRODUCT);

    (void)state;
    for (unsigned n = 0; n < 63; n++)
        value = tbd_branch_take(TBD_BRANCH_PRODUCT, value, &f, 0);
    assert_int_equal(value, 1ull << 63);
    value = tbd_branch_take(TBD_BRANCH_PRODUCT, value, &f, 0);
    assert_int_equal(value, 0);
    assert_int_equal(tbd_branch_take(TBD_BRANCH_PRODUCT, value, &f, 5), 0);
}

static void primes_are_primes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TBD_BRANCH_MAX; i++)
        for (uint32_t n = 2; n < tbd_branch_prime(i); n++)
            assert_true(tbd_branch_prime(i) % n != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stay_what_they_are),
        cmocka_unit_test(fields_do_not_overlap_and_stay_full),
        cmocka_unit_test(products_that_are_too_large_are_none),
        cmocka_unit_test(primes_are_primes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
