// links: tbd_query
// SPDX-License-Identifier: MIT
/* What stores wrote follows from what later stores, and the end, find in memory: compared with memory itself, for stores of all sizes that
 * overlap in any way. */
#include "base/layout.h"
#include "query/search/passing_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE   0x7f0000000000ull
#define MEMORY (3 * TBD_PAGE_SIZE)
#define STORES 20000u

struct fixture {
    uint8_t memory[MEMORY];
    uint64_t wrote[STORES]; /* by time */
    uint8_t found[STORES];  /* how often */
    uint32_t wrong, unknown, left;
    struct tbd_passing_values *values;
};

static bool find(void *context, const struct tbd_waiting_store *store, uint64_t value,
                 bool is_known)
{
    struct fixture *f = context;

    f->found[store->time]++;
    f->unknown += !is_known;
    f->wrong += is_known && value != f->wrote[store->time];
    f->wrong += store->block != store->time + 7 || store->op != store->time % 100 ||
                store->old != ~(uint64_t)store->time;
    return f->left == 0 || --f->left != 0;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->values = tbd_passing_values_new(find, f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    tbd_passing_values_free(f->values);
    free(f);
    return 0;
}

static const uint8_t *end_page(void *context, uint64_t page)
{
    struct fixture *f = context;

    return f->memory + (page - BASE);
}

static const uint8_t *no_page(void *context, uint64_t page)
{
    (void)context;
    (void)page;
    return NULL;
}

/* False: the callback has ended it. */
static bool store(struct fixture *f, uint32_t time, size_t at, size_t bytes, bool waits)
{
    struct tbd_waiting_store made = { .address = BASE + at,
                                      .old = ~(uint64_t)time,
                                      .time = time,
                                      .block = time + 7,
                                      .op = (uint16_t)(time % 100),
                                      .bytes = bytes < 8 ? (uint8_t)bytes : 8 };

    if (!tbd_passing_values_store(f->values, BASE + at, bytes, f->memory + at))
        return false;
    for (size_t i = 0; i < bytes; i++)
        f->memory[at + i] = (uint8_t)rand();
    memcpy(&f->wrote[time], f->memory + at, made.bytes);
    return !waits || tbd_passing_values_wait(f->values, &made);
}

static void check_found(const struct fixture *f, uint32_t count)
{
    assert_int_equal(f->wrong, 0);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(f->found[i], 1);
}

/* ---- tests ---- */

static void each_store_is_found_once_with_what_it_wrote(void **state)
{
    static const size_t sizes[] = { 1, 2, 3, 4, 8, 8, 8, 16, 32, 64, 5000 };
    struct fixture *f = *state;

    srand(1);
    for (uint32_t i = 0; i < STORES; i++) {
        size_t bytes = sizes[(size_t)rand() % (sizeof(sizes) / sizeof(sizes[0]))];
        size_t range = rand() % 4 ? 256 : MEMORY - bytes; /* many meet */
        size_t at = (size_t)rand() % range;

        at = rand() % 2 ? at & ~(size_t)7 : at;
        assert_true(store(f, i, at, bytes, true));
    }
    assert_true(tbd_passing_values_end(f->values, end_page, f));
    check_found(f, STORES);
    assert_int_equal(f->unknown, 0);
}

static void a_store_may_cross_pages(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 8; i++)
        assert_true(store(f, i, TBD_PAGE_SIZE - i, 8, true));
    assert_true(tbd_passing_values_end(f->values, end_page, f));
    check_found(f, 8);
}

static void what_nobody_knows_is_said_to_be_unknown(void **state)
{
    struct fixture *f = *state;

    assert_true(store(f, 0, 0, 8, true));
    assert_true(tbd_passing_values_store(f->values, BASE, 4, NULL));
    assert_int_equal(f->found[0], 0);
    assert_true(tbd_passing_values_store(f->values, BASE + 4, 4, f->memory + 4));
    assert_int_equal(f->found[0], 1);
    assert_int_equal(f->unknown, 1);
    assert_true(store(f, 1, 100, 4, true));
    assert_true(tbd_passing_values_end(f->values, no_page, f));
    assert_int_equal(f->unknown, 2);
    check_found(f, 2);
}

static void stores_that_nobody_asks_about_answer_others(void **state)
{
    struct fixture *f = *state;

    assert_true(store(f, 0, 16, 8, true));
    assert_true(store(f, 1, 0, 64, false));
    check_found(f, 1);
    assert_int_equal(f->found[1], 0);
    assert_true(tbd_passing_values_end(f->values, end_page, f));
    assert_int_equal(f->found[1], 0);
}

static void whoever_is_told_may_end_it(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 10; i++)
        assert_true(store(f, i, 8 * i, 8, true));
    f->left = 3;
    assert_false(tbd_passing_values_store(f->values, BASE, 80, f->memory));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_store_is_found_once_with_what_it_wrote),
        TEST(a_store_may_cross_pages),
        TEST(what_nobody_knows_is_said_to_be_unknown),
        TEST(stores_that_nobody_asks_about_answer_others),
        TEST(whoever_is_told_may_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
