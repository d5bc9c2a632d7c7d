// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
/* Turns of threads in one window: each keeps the call that its last block ended with. */
#include "organizer/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct tbd_turns turns;
static uint32_t called; /* by the last block of the thread in control */

static int begin(void **state)
{
    (void)state;
    called = 0;
    return tbd_turns_begin(&turns) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    tbd_turns_free(&turns);
    return 0;
}

static void take(enum tbd_thread_event event, uint32_t from, uint32_t thread)
{
    struct tbd_msg_thread message = { .event = event, .from = from, .thread = thread };

    assert_true(tbd_turns_take(&turns, &message, &called));
}

static void a_call_waits_until_its_thread_goes_on(void **state)
{
    (void)state;
    tbd_turns_settle(&turns);
    called = 33;
    take(TBD_THREAD_SWITCH, 7, 9);
    assert_int_equal(called, 0);
    assert_true(tbd_turns_is_open(&turns)); /* nothing of 9 was seen yet */
    assert_true(tbd_turns_open(&turns, 5, 12));
    assert_int_equal(turns.opens[0].thread, 9);
    assert_false(tbd_turns_is_open(&turns));
    called = 44;
    take(TBD_THREAD_SWITCH, 9, 7);
    assert_int_equal(called, 33);
    assert_false(tbd_turns_is_open(&turns));
    called = 0;
    take(TBD_THREAD_SWITCH, 7, 9);
    assert_int_equal(called, 44);
}

static void a_new_thread_was_not_called_before(void **state)
{
    (void)state;
    take(TBD_THREAD_START, 7, 11);
    take(TBD_THREAD_SWITCH, 7, 11);
    assert_false(tbd_turns_is_open(&turns));
    assert_int_equal(called, 0);
    called = 55;
    take(TBD_THREAD_SWITCH, 11, 7);
    take(TBD_THREAD_START, 7, 11); /* another one with the same tid */
    take(TBD_THREAD_SWITCH, 7, 11);
    assert_false(tbd_turns_is_open(&turns));
    assert_int_equal(called, 0);
    assert_int_equal(turns.count, 2);
}

static void other_events_change_nothing(void **state)
{
    (void)state;
    called = 66;
    take(TBD_THREAD_END, 7, 9);
    assert_int_equal(called, 66);
    assert_int_equal(turns.count, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_waits_until_its_thread_goes_on, begin, end),
        cmocka_unit_test_setup_teardown(a_new_thread_was_not_called_before, begin, end),
        cmocka_unit_test_setup_teardown(other_events_change_nothing, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
