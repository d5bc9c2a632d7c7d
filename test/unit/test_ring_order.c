// SPDX-License-Identifier: MIT
// links: tbd_query_rings
/* Stretches of threads in one order (query/rings/ring_order.h), compared with what each two of them say alone. */
#include "query/rings/ring_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 4, VALUES = 12, ENTRIES = 40 };

struct sample {
    struct tbd_crash_head head;
    struct tbd_crash_thread threads[THREADS];
    struct tbd_crash_file_value values[THREADS * VALUES];
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Calls and registers; few different times, so that many are equal. */
static void fill(struct sample *sample, uint64_t *state)
{
    sample->head = (struct tbd_crash_head){ .thread_count = THREADS };
    for (uint32_t t = 0; t < THREADS; t++) {
        uint64_t entry = 0, now = next_random(state) % 20;
        uint32_t values = (uint32_t)(next_random(state) % VALUES);

        for (uint32_t i = 0; i < values; i++) {
            struct tbd_crash_file_value *value = &sample->values[sample->head.value_count++];

            entry += next_random(state) % 3;
            *value = (struct tbd_crash_file_value){
                .entry = entry, .thread = t, .kind = 1 + (uint32_t)(next_random(state) % 3)
            };
            now += next_random(state) % 9;
            if (value->kind == TBD_VALUE_REGISTERS)
                value->is.registers.stamp = now;
            if (value->kind == TBD_VALUE_CALL)
                value->is.call.began = now;
            now += value->kind == TBD_VALUE_CALL ? next_random(state) % 9 : 0;
            if (value->kind == TBD_VALUE_CALL)
                value->is.call.ended = now;
        }
        sample->threads[t] =
            (struct tbd_crash_thread){ .count = entry + next_random(state) % 3,
                                       .ended_ns = next_random(state) % 2 ? now + 3 : 0 };
    }
}

/* By these two alone. */
static bool is_before(const struct tbd_rings_stretch *one, const struct tbd_rings_stretch *other)
{
    return one->thread == other->thread ? one->end <= other->first
                                        : one->ended_ns < other->began_ns;
}

/* May a group end before stretch `at`? */
static bool all_before(const struct tbd_rings_stretch *list, size_t count, size_t at)
{
    for (size_t i = 0; i < at; i++)
        for (size_t k = at; k < count; k++)
            if (!is_before(&list[i], &list[k]))
                return false;
    return true;
}

static bool is_of_one_thread(const struct tbd_rings_stretch *list, size_t count, uint64_t group)
{
    uint32_t thread = UINT32_MAX;

    for (size_t i = 0; i < count; i++) {
        if (list[i].group != group)
            continue;
        if (thread != UINT32_MAX && list[i].thread != thread)
            return false;
        thread = list[i].thread;
    }
    return true;
}

static void check(const struct tbd_rings_stretch *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            assert_true(i >= k || !is_before(&list[k], &list[i]));
            assert_true(tbd_rings_overlap(&list[i], &list[k]) ==
                        (list[i].thread != list[k].thread && !is_before(&list[i], &list[k]) &&
                         !is_before(&list[k], &list[i])));
            assert_true(!tbd_rings_overlap(&list[i], &list[k]) ||
                        (k >= list[i].beside_first && k < list[i].beside_end));
        }
    for (size_t i = 1; i < count; i++) {
        bool goes_on = list[i].group == list[i - 1].group;

        assert_true(goes_on || list[i].group == list[i - 1].group + 1);
        if (goes_on)
            assert_true(!all_before(list, count, i) ||
                        is_of_one_thread(list, count, list[i].group));
        else
            assert_true(all_before(list, count, i));
    }
}

static uint64_t entries_in(const struct tbd_rings_stretch *list, size_t count, uint32_t thread)
{
    uint64_t at = 0;

    for (size_t i = 0; i < count; i++) {
        if (list[i].thread != thread)
            continue;
        assert_int_equal(list[i].first, at);
        at = list[i].end;
    }
    return at;
}

static void stretches_are_ordered_as_each_two_of_them_are(void **unused)
{
    uint64_t state = 18;

    (void)unused;
    for (int round = 0; round < 20000; round++) {
        struct sample sample = { .head = { 0 } };
        struct tbd_rings ring = {
            .dump = { .head = &sample.head, .threads = sample.threads, .values = sample.values }
        };
        struct tbd_rings_stretch *list;
        size_t count;

        fill(&sample, &state);
        assert_true(tbd_rings_order(&ring, &list, &count) == TBD_OK);
        check(list, count);
        for (uint32_t t = 0; t < THREADS; t++)
            assert_int_equal(entries_in(list, count, t), sample.threads[t].count);
        free(list);
    }
}

static void stamps_that_go_back_count_for_nothing(void **unused)
{
    struct sample sample = { .head = { .thread_count = 1, .value_count = 2 },
                             .threads = { { .count = 9, .ended_ns = 4 } } };
    struct tbd_rings ring = {
        .dump = { .head = &sample.head, .threads = sample.threads, .values = sample.values }
    };
    struct tbd_rings_stretch *list;
    size_t count;

    (void)unused;
    sample.values[0] = (struct tbd_crash_file_value){ .entry = 3, .kind = TBD_VALUE_REGISTERS };
    sample.values[0].is.registers.stamp = 10;
    sample.values[1] = (struct tbd_crash_file_value){ .entry = 6, .kind = TBD_VALUE_REGISTERS };
    sample.values[1].is.registers.stamp = 5;
    assert_true(tbd_rings_order(&ring, &list, &count) == TBD_OK);
    assert_int_equal(count, 2u);
    assert_int_equal(list[0].end, 3u);
    assert_int_equal(list[1].began_ns, 10u);
    assert_int_equal(list[1].ended_ns, UINT64_MAX);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stretches_are_ordered_as_each_two_of_them_are),
        cmocka_unit_test(stamps_that_go_back_count_for_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
