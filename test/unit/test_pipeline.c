// SPDX-License-Identifier: MIT
// links: tbd_organizer
/* test_pipeline.c - windows are joined and committed in order, in whatever order workers build
 * them */
#include "organizer/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#define WORKERS 4u
#define WINDOWS 3000u
#define MOST    (WORKERS + 2u) /* as PIPELINE-2 says */

#define MOST_BYTES 100u

struct worker {
    struct tbd_job *job;
    enum tbd_step step;
};

static const struct tbd_raw_window nothing;

static void assert_next(struct tbd_pipeline *p, struct worker *worker, enum tbd_step step,
                        uint64_t number)
{
    assert_true(tbd_pipeline_next(p, &worker->job, &worker->step));
    assert_int_equal(worker->step, step);
    assert_int_equal(worker->job->number, number);
}

static void test_one_worker_does_everything_in_order(void **state)
{
    struct tbd_pipeline *p = tbd_pipeline_new(1, UINT64_MAX);
    struct worker a = { 0 };

    (void)state;
    tbd_pipeline_add(p, &nothing, NULL);
    tbd_pipeline_add(p, &nothing, NULL);
    tbd_pipeline_close(p);
    for (uint64_t i = 0; i < 2; i++) {
        assert_next(p, &a, TBD_STEP_BUILD, i);
        assert_next(p, &a, TBD_STEP_JOIN, i);
        assert_next(p, &a, TBD_STEP_PUT, i);
        assert_next(p, &a, TBD_STEP_COMMIT, i);
    }
    assert_false(tbd_pipeline_next(p, &a.job, &a.step));
    tbd_pipeline_free(p);
}

static void test_who_is_early_goes_on(void **state)
{
    struct tbd_pipeline *p = tbd_pipeline_new(2, UINT64_MAX);
    struct worker a = { 0 }, b = { 0 };

    (void)state;
    tbd_pipeline_add(p, &nothing, NULL);
    tbd_pipeline_add(p, &nothing, NULL);
    assert_next(p, &a, TBD_STEP_BUILD, 0);
    tbd_pipeline_add(p, &nothing, NULL); /* two can wait */
    tbd_pipeline_close(p);
    assert_next(p, &b, TBD_STEP_BUILD, 1);
    assert_next(p, &b, TBD_STEP_BUILD, 2);
    assert_next(p, &a, TBD_STEP_JOIN, 0);
    tbd_pipeline_done(p, &b.job, &b.step); /* both have been built; 0 is being joined */
    assert_next(p, &a, TBD_STEP_JOIN, 1);
    assert_next(p, &b, TBD_STEP_PUT, 0);
    assert_next(p, &a, TBD_STEP_JOIN, 2);
    assert_next(p, &a, TBD_STEP_PUT, 1);
    assert_next(p, &a, TBD_STEP_PUT, 2); /* 1 cannot be committed before 0 */
    assert_next(p, &b, TBD_STEP_COMMIT, 0);
    assert_next(p, &b, TBD_STEP_COMMIT, 1);
    tbd_pipeline_done(p, &a.job, &a.step);
    assert_next(p, &b, TBD_STEP_COMMIT, 2);
    assert_false(tbd_pipeline_next(p, &b.job, &b.step));
    assert_false(tbd_pipeline_next(p, &a.job, &a.step));
    tbd_pipeline_free(p);
}

/* ---- many workers ---- */

/* Offers a part of the window being collected; builders are identified by their addresses. */
static void test_what_is_offered_comes_last_and_before_its_window(void **state)
{
    struct tbd_pipeline *p = tbd_pipeline_new(2, UINT64_MAX);
    struct tbd_builder *builder = (void *)&p, *other = (void *)state;
    struct worker a = { 0 }, b = { 0 };

    tbd_pipeline_add(p, &nothing, NULL);
    tbd_pipeline_offer(p, &nothing, builder);
    assert_next(p, &a, TBD_STEP_BUILD, 0);
    assert_true(tbd_pipeline_next(p, &b.job, &b.step));
    assert_int_equal(b.step, TBD_STEP_EARLY);
    assert_ptr_equal(b.job->builder, builder);
    tbd_pipeline_offer(p, &nothing, builder); /* ends when its window is added */
    tbd_pipeline_add(p, &nothing, builder);
    tbd_pipeline_offer(p, &nothing, other); /* waits: a worker builds the one before */
    assert_next(p, &a, TBD_STEP_JOIN, 0);   /* not BUILD 1 */
    assert_next(p, &a, TBD_STEP_PUT, 0);
    assert_next(p, &b, TBD_STEP_BUILD, 1);
    assert_ptr_equal(b.job->builder, builder);
    assert_next(p, &a, TBD_STEP_COMMIT, 0);
    assert_true(tbd_pipeline_next(p, &a.job, &a.step));
    assert_int_equal(a.step, TBD_STEP_EARLY);
    assert_ptr_equal(a.job->builder, other);
    tbd_pipeline_done(p, &a.job, &a.step);
    tbd_pipeline_offer(p, &nothing, other);
    tbd_pipeline_withdraw(p);
    assert_next(p, &b, TBD_STEP_JOIN, 1);
    assert_next(p, &b, TBD_STEP_PUT, 1);
    assert_next(p, &b, TBD_STEP_COMMIT, 1);
    tbd_pipeline_close(p);
    assert_false(tbd_pipeline_next(p, &b.job, &b.step));
    tbd_pipeline_free(p);
}

struct crowd {
    struct tbd_pipeline *p;
    uint32_t joining, committing; /* workers that do it */
    uint64_t joined, committed;   /* windows; changed by the worker of that step */
    uint64_t bytes;               /* of windows that have been added and not put */
    uint32_t wrong;
};

static void check(struct crowd *crowd, bool holds)
{
    if (!holds)
        __atomic_fetch_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
}

static void take_turn(struct crowd *crowd, uint32_t *inside, uint64_t *turn, uint64_t number)
{
    check(crowd, __atomic_fetch_add(inside, 1, __ATOMIC_SEQ_CST) == 0);
    check(crowd, __atomic_fetch_add(turn, 1, __ATOMIC_SEQ_CST) == number);
    __atomic_fetch_sub(inside, 1, __ATOMIC_SEQ_CST);
}

/* Some windows alone are more than fits. */
static uint64_t bytes_of(uint64_t number)
{
    return number % 50 == 49 ? MOST_BYTES + 20 : number * 13 % 60;
}

/* When it has been added, what was there before fits beside it; it may have been put meanwhile. */
static void add(struct crowd *crowd, uint64_t number)
{
    struct tbd_raw_window raw = { .operand_bytes = (size_t)bytes_of(number) };
    uint64_t bytes;

    __atomic_fetch_add(&crowd->bytes, raw.operand_bytes, __ATOMIC_SEQ_CST);
    tbd_pipeline_add(crowd->p, &raw, NULL);
    bytes = __atomic_load_n(&crowd->bytes, __ATOMIC_SEQ_CST);
    check(crowd, bytes <= MOST_BYTES || bytes == raw.operand_bytes);
}

static void take_step(struct crowd *crowd, const struct worker *worker)
{
    uint64_t number = worker->job->number;

    switch (worker->step) {
    case TBD_STEP_BUILD:
        check(crowd, number < __atomic_load_n(&crowd->committed, __ATOMIC_SEQ_CST) + MOST);
        for (uint64_t i = 0; i < number * 7 % 11; i++) /* so that they end out of order */
            sched_yield();
        break;
    case TBD_STEP_JOIN: take_turn(crowd, &crowd->joining, &crowd->joined, number); break;
    case TBD_STEP_PUT:
        check(crowd, number < __atomic_load_n(&crowd->joined, __ATOMIC_SEQ_CST));
        __atomic_fetch_sub(&crowd->bytes, bytes_of(number), __ATOMIC_SEQ_CST);
        break;
    default: take_turn(crowd, &crowd->committing, &crowd->committed, number); break;
    }
}

static void *work(void *context)
{
    struct crowd *crowd = context;
    struct worker worker = { 0 };

    while (tbd_pipeline_next(crowd->p, &worker.job, &worker.step)) {
        take_step(crowd, &worker);
        if (worker.step == TBD_STEP_COMMIT && worker.job->number % 64 == 0)
            tbd_pipeline_done(crowd->p, &worker.job, &worker.step);
    }
    return NULL;
}

static void test_many_workers_keep_the_order(void **state)
{
    struct crowd crowd = { .p = tbd_pipeline_new(WORKERS, MOST_BYTES) };
    pthread_t threads[WORKERS];

    (void)state;
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &crowd), 0);
    for (unsigned i = 0; i < WINDOWS; i++)
        add(&crowd, i);
    tbd_pipeline_close(crowd.p);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(crowd.wrong, 0);
    assert_int_equal(crowd.joined, WINDOWS);
    assert_int_equal(crowd.committed, WINDOWS);
    tbd_pipeline_free(crowd.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_worker_does_everything_in_order),
        cmocka_unit_test(test_who_is_early_goes_on),
        cmocka_unit_test(test_what_is_offered_comes_last_and_before_its_window),
        cmocka_unit_test(test_many_workers_keep_the_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
