// SPDX-License-Identifier: MIT
// links: tbd_hooks_host
/* How long a window of native play lasts: as its costs say, within bounds, and by processor time, not by the clock. */
#include "hooks/own/own_window.h"
#include "hooks/stream/cycles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MS 1000000ull

/* Computes until the process has used this much more processor time. */
static void compute(uint64_t ns)
{
    uint64_t until = tbd_own_window_now_ns() + ns;

    while (tbd_own_window_now_ns() < until)
        ;
}

/* The length that costs have led to, in milliseconds: how much has to be computed until a tick says that it is over. */
static uint64_t length_ms(void)
{
    uint64_t used;

    tbd_own_window_next();
    do {
        compute(MS);
        used = tbd_own_window_used_ns();
    } while (!tbd_own_window_is_over_at_tick() && used < 200 * MS);
    return (used + tbd_own_window_tick_ns() / 2) / MS;
}

static void assert_about(uint64_t length, uint64_t expected)
{
    assert_in_range(length, expected - 1,
                    expected + 15); /* the time that a busy host takes may count */
}

static void the_clock_agrees(void **state)
{
    struct timespec now;
    uint64_t before, clock;

    (void)state;
    before = tbd_own_window_now_ns();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    clock = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
    assert_in_range(clock, before, tbd_own_window_now_ns());
}

static void costs_decide_the_length(void **state)
{
    (void)state;
    tbd_own_window_begin(0, 0);
    tbd_own_window_set_page_ns(1000);
    assert_int_equal(tbd_own_window_tick_ns(), 10 * MS);
    assert_about(length_ms(), 20); /* before costs are known */
    tbd_own_window_cost(0, 0);
    assert_about(length_ms(), 20); /* free: the least */
    tbd_own_window_cost(MS, 0);
    assert_about(length_ms(), 33);
    tbd_own_window_cost(0, 1000); /* pages of 1 us each, which the organizer keeps in 5 */
    assert_about(length_ms(), 50);
    tbd_own_window_cost(MS, 1000);
    assert_about(length_ms(), 66);
    tbd_own_window_cost(4 * MS, 0);
    assert_about(length_ms(), 100); /* the most */
    tbd_own_window_cost(0, 0);
    assert_about(length_ms(), 20); /* and it shrinks again */
}

static void what_the_organizer_does_decides_up_to_a_limit(void **state)
{
    (void)state;
    tbd_own_window_begin(0, 1);
    tbd_own_window_cost(0, 100);
    assert_about(length_ms(), 20);
    tbd_own_window_cost(0, 600);
    assert_about(length_ms(), 30);
    tbd_own_window_cost(0, 100000);
    assert_about(length_ms(), 60);
}

static void another_threads_turn_is_worth_an_end_early(void **state)
{
    uint64_t used;

    (void)state;
    tbd_own_window_begin(0, 1000);
    tbd_own_window_cost(3 * MS, 0); /* 99 ms */
    tbd_own_window_next();
    assert_false(tbd_own_window_pays());
    do {
        compute(MS);
        used = tbd_own_window_used_ns();
    } while (!tbd_own_window_pays() && used < 200 * MS);
    assert_in_range(used / MS, 24, 40);
}

/* An end that took seconds was other threads' time: it counts as 5 ms, so pages decide no less. */
static void an_end_that_took_long_does_not_overflow(void **state)
{
    (void)state;
    tbd_own_window_begin(0, 1000);
    tbd_own_window_cost(UINT64_MAX, 0);
    assert_about(length_ms(), 100);
}

static void a_fixed_length_stays(void **state)
{
    (void)state;
    tbd_own_window_begin(20 * MS, 1000);
    assert_int_equal(tbd_own_window_tick_ns(), 20 * MS);
    tbd_own_window_cost(4 * MS, 1000);
    assert_about(length_ms(), 20);
}

/* A program that sleeps has no long windows: time of the clock does not count. */
static void sleeping_does_not_count(void **state)
{
    (void)state;
    tbd_own_window_begin(20 * MS, 0);
    usleep(40000);
    assert_false(tbd_own_window_is_over_at_stop(tbd_cycles_now()));
    assert_true(tbd_own_window_used_ns() < 10 * MS);
    compute(25 * MS);
    assert_true(tbd_own_window_is_over_at_tick());
    assert_true(tbd_own_window_is_over_at_stop(tbd_cycles_now()));
    tbd_own_window_next();
    assert_false(tbd_own_window_is_over_at_stop(tbd_cycles_now()));
    assert_true(tbd_own_window_used_ns() < 10 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_agrees),
        cmocka_unit_test(costs_decide_the_length),
        cmocka_unit_test(what_the_organizer_does_decides_up_to_a_limit),
        cmocka_unit_test(another_threads_turn_is_worth_an_end_early),
        cmocka_unit_test(an_end_that_took_long_does_not_overflow),
        cmocka_unit_test(a_fixed_length_stays),
        cmocka_unit_test(sleeping_does_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
