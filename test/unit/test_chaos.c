// SPDX-License-Identifier: MIT
// links: tbd_hooks_host
/* Turns by chance: a seed repeats the decisions, stretches have the moods that chaos.h promises, and nobody starves for ever. */
#include "hooks/threads/chaos.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TURNS       20000u
#define TURN_MAX    (2ull << 14)
#define STRETCH_MAX (2ull << 18)
#define THREADS     8u

/* A run of threads that use their turns to the end. */
struct imagined {
    struct tbd_chaos chaos;
    uint64_t now;
};

static struct imagined begin(uint64_t seed)
{
    struct imagined run = { .now = 0 };

    tbd_chaos_init(&run.chaos, seed);
    return run;
}

static uint64_t next_turn(struct imagined *run)
{
    uint64_t length;

    tbd_chaos_look(&run->chaos, run->now);
    length = tbd_chaos_turn(&run->chaos);
    run->now += length;
    return length;
}

static void seed_0_is_off(void **state)
{
    struct tbd_chaos chaos;

    (void)state;
    tbd_chaos_init(&chaos, 0);
    assert_false(chaos.is_on);
    for (unsigned i = 0; i < 100; i++)
        assert_false(tbd_chaos_once_in(&chaos, 1));
    tbd_chaos_look(&chaos, 1000);
    assert_int_equal(chaos.stretch_end, 0);
    assert_false(tbd_chaos_starves(&chaos, 3));
}

static void a_seed_repeats_everything(void **state)
{
    struct imagined one = begin(7), again = begin(7), other = begin(8);
    unsigned equal = 0;

    (void)state;
    for (unsigned i = 0; i < TURNS; i++) {
        uint64_t length = next_turn(&one);

        assert_int_equal(length, next_turn(&again));
        equal += length == next_turn(&other);
        assert_int_equal(tbd_chaos_draw(&one.chaos), tbd_chaos_draw(&again.chaos));
        assert_int_equal(tbd_chaos_signal_delay(&one.chaos), tbd_chaos_signal_delay(&again.chaos));
        (void)tbd_chaos_draw(&other.chaos);
        (void)tbd_chaos_signal_delay(&other.chaos);
        for (uint32_t thread = 0; thread < THREADS; thread++)
            assert_int_equal(tbd_chaos_starves(&one.chaos, thread),
                             tbd_chaos_starves(&again.chaos, thread));
    }
    assert_memory_equal(&one.chaos.random, &again.chaos.random, sizeof(one.chaos.random));
    assert_true(equal < TURNS / 2);
}

static void turns_of_all_sizes_come(void **state)
{
    struct imagined run = begin(3);
    unsigned of_size[16] = { 0 };

    (void)state;
    for (unsigned i = 0; i < TURNS; i++) {
        uint64_t length = next_turn(&run);

        assert_in_range(length, 1, TURN_MAX);
        of_size[63 - __builtin_clzll(length)]++;
        assert_true(run.chaos.stretch_end > run.now - length);
        assert_true(run.chaos.stretch_end <= run.now + STRETCH_MAX);
    }
    for (unsigned i = 0; i < 14; i++)
        assert_true(of_size[i] > 0);
}

/* After very many turns there is one for 128 block entries on average, or less. */
static void turns_become_rarer(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct imagined run = begin(seed);

        while (run.now < 20000000)
            (void)next_turn(&run);
        assert_true(run.chaos.turns < 2 * run.now / 128);
    }
}

static void some_stretches_starve_some_threads(void **state)
{
    unsigned stretches = 0, starving = 0, strict = 0, starved = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        struct imagined run = begin(seed);

        (void)next_turn(&run);
        stretches++;
        starving += run.chaos.starved != 0;
        strict += run.chaos.is_strict;
        assert_true(!run.chaos.is_strict || run.chaos.starved != 0);
        for (uint32_t thread = 0; thread < THREADS; thread++)
            starved += tbd_chaos_starves(&run.chaos, thread);
    }
    assert_in_range(starving, stretches * 45 / 100, stretches * 55 / 100);
    assert_in_range(strict, stretches * 10 / 100, stretches * 15 / 100);
    assert_in_range(starved, starving * THREADS * 22 / 100, starving * THREADS * 28 / 100);
}

static void a_strict_stretch_holds_once(void **state)
{
    unsigned held = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct imagined run = begin(seed);
        uint32_t first;

        (void)next_turn(&run);
        first = tbd_chaos_hold(&run.chaos);
        assert_true((first != 0) == run.chaos.is_strict);
        assert_in_range(first, run.chaos.is_strict, 256);
        assert_int_equal(tbd_chaos_hold(&run.chaos), 0);
        held += first != 0;
    }
    assert_true(held > 0);
}

/* A loop around sched_yield() waits for a thread that may be starved. */
static void who_gives_way_often_ends_starvation(void **state)
{
    struct imagined run = begin(1);

    (void)state;
    while (run.chaos.starved == 0 || run.chaos.stretch_end < run.now + 100)
        (void)next_turn(&run);
    for (unsigned i = 0; i < 65; i++) {
        assert_true(run.chaos.starved != 0);
        tbd_chaos_gave_way(&run.chaos);
    }
    assert_int_equal(run.chaos.starved, 0);
}

static void any_thread_may_be_next(void **state)
{
    struct imagined run = begin(5);
    unsigned firsts[THREADS] = { 0 };

    (void)state;
    for (unsigned i = 0; i < 8000; i++) {
        uint64_t draw = tbd_chaos_draw(&run.chaos);
        uint32_t best = 0;

        for (uint32_t thread = 1; thread < THREADS; thread++)
            if (tbd_chaos_rank(draw, thread) < tbd_chaos_rank(draw, best))
                best = thread;
        firsts[best]++;
    }
    for (uint32_t thread = 0; thread < THREADS; thread++)
        assert_in_range(firsts[thread], 800, 1200);
}

static void signals_come_late_by_half(void **state)
{
    struct imagined run = begin(11);
    unsigned late = 0;

    (void)state;
    for (unsigned i = 0; i < 4000; i++) {
        uint64_t delay = tbd_chaos_signal_delay(&run.chaos);

        assert_in_range(delay, 0, 2ull << 14);
        late += delay != 0;
    }
    assert_in_range(late, 1800, 2200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_0_is_off),
        cmocka_unit_test(a_seed_repeats_everything),
        cmocka_unit_test(turns_of_all_sizes_come),
        cmocka_unit_test(turns_become_rarer),
        cmocka_unit_test(some_stretches_starve_some_threads),
        cmocka_unit_test(a_strict_stretch_holds_once),
        cmocka_unit_test(who_gives_way_often_ends_starvation),
        cmocka_unit_test(any_thread_may_be_next),
        cmocka_unit_test(signals_come_late_by_half),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
