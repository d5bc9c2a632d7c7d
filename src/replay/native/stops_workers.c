// SPDX-License-Identifier: MIT
/* stops_workers.c - the threads that replay windows for a trace that is being counted (count_stops_private.h)
 *
 * They are as idle as the caller wants them.  When somebody waits for the trace, others, of ordinary priority, go on instead: they
 * also replay what the idle ones have, as these may get no time at all.  Which of two is ready first does not matter. */
#include "replay/native/count_stops_private.h"

#include <time.h>

#define LOOK_NS 50000000

/* ---- replaying ---- */

static bool may_take(const struct stops_counting *c, const struct stops_worker *worker)
{
    return !c->is_over && (!c->is_hurried || worker->is_helper);
}

/* Some may be there: those that an idle worker was ready with. */
static bool has_next(struct stops_counting *c)
{
    while (c->taken < c->to && c->taken < c->written + c->ahead &&
           c->places[c->taken % c->ahead].is_there)
        c->taken++;
    return c->taken < c->to && c->taken < c->written + c->ahead;
}

static bool take(const struct stops_worker *worker, uint32_t *out,
                 struct tbd_replayer **out_replayer)
{
    struct stops_counting *c = worker->counting;
    bool is_good;

    pthread_mutex_lock(&c->lock);
    while (may_take(c, worker) && !has_next(c))
        pthread_cond_wait(&c->change, &c->lock);
    is_good = may_take(c, worker);
    *out_replayer = c->replayer;
    if (is_good)
        *out = c->taken++;
    pthread_mutex_unlock(&c->lock);
    return is_good;
}

/* Unless another one was faster, which may have gone on with another handle since.  That an idle one has failed, as it got no time, says
 * nothing where a helper replays the window, too. */
static void give(const struct stops_worker *worker, uint32_t index,
                 const struct tbd_replayer *replayer, struct stops_place *place)
{
    struct stops_counting *c = worker->counting;
    struct stops_place *to = &c->places[index % c->ahead];

    pthread_mutex_lock(&c->lock);
    if (replayer == c->replayer && index >= c->written && !to->is_there &&
        (!place->status || may_take(c, worker))) {
        *to = *place;
        place->events = (struct tbd_buffer){ 0 };
        pthread_cond_broadcast(&c->change);
    }
    pthread_mutex_unlock(&c->lock);
    tbd_buffer_free(&place->events);
}

static void *work(void *argument)
{
    const struct stops_worker *worker = argument;
    struct stops_counting *c = worker->counting;
    struct tbd_replayer *replayer;
    uint32_t index;

    if (c->how->be_idle && !worker->is_helper)
        c->how->be_idle();
    while (take(worker, &index, &replayer)) {
        struct stops_place place = { .is_there = true };

        place.status = tbd_stops_replay(replayer, worker->number, index, &c->blocks, &place.events,
                                        &place.divergence, &place.why);
        give(worker, index, replayer, &place);
    }
    return NULL;
}

/* ---- how many ---- */

static unsigned between(unsigned least, unsigned count, unsigned most)
{
    return count < least ? least : count > most ? most : count;
}

static unsigned worker_count(const struct tbd_count_stops *how)
{
    return between(1, how->workers, TBD_STOPS_WORKERS_MOST / 2);
}

unsigned tbd_stops_workers_most(const struct tbd_count_stops *how)
{
    unsigned helpers = how->start ? between(1, how->helpers, TBD_STOPS_WORKERS_MOST / 2) : 0;

    return worker_count(how) + helpers;
}

bool tbd_stops_workers_start(struct stops_counting *c)
{
    unsigned count = worker_count(c->how);

    for (; c->started < count; c->started++) {
        struct stops_worker *worker = &c->workers[c->started];

        *worker = (struct stops_worker){ .counting = c, .number = c->started };
        if (pthread_create(&worker->thread, NULL, work, worker))
            break;
    }
    return c->started != 0;
}

/* ---- when somebody waits ---- */

static bool is_wanted(const struct stops_counting *c)
{
    return c->how->start && !c->is_hurried && tbd_stops_claim_is_wanted(&c->claim);
}

/* If there is no helper, the idle ones go on. */
static void hurry(struct stops_counting *c)
{
    unsigned most = tbd_stops_workers_most(c->how), first = c->started;

    pthread_mutex_lock(&c->lock);
    for (; c->started < most; c->started++) {
        struct stops_worker *worker = &c->workers[c->started];

        *worker = (struct stops_worker){ c, c->started, .is_helper = true };
        if (!c->how->start(c->how->context, &worker->thread, work, worker))
            break;
    }
    c->is_hurried = true;
    if (c->started == first)
        for (unsigned i = 0; i < first; i++)
            c->workers[i].is_helper = true;
    else
        c->taken = c->written;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
}

/* Nobody waits for a trace that is still being recorded. */
bool tbd_stops_workers_hurry(struct stops_counting *c)
{
    if (!is_wanted(c))
        return c->is_hurried;
    tbd_stops_say_ended(c);
    hurry(c);
    return true;
}

/* ---- the caller ---- */

static void wait_a_little(struct stops_counting *c)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&c->change, &c->lock, &until);
}

struct stops_place tbd_stops_workers_await(struct stops_counting *c, uint32_t index)
{
    struct stops_place place;

    (void)tbd_stops_workers_hurry(c);
    pthread_mutex_lock(&c->lock);
    while (!c->places[index % c->ahead].is_there) {
        wait_a_little(c);
        pthread_mutex_unlock(&c->lock);
        (void)tbd_stops_workers_hurry(c);
        pthread_mutex_lock(&c->lock);
    }
    place = c->places[index % c->ahead];
    c->places[index % c->ahead] = (struct stops_place){ 0 };
    c->written++;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    return place;
}

void tbd_stops_workers_end(struct stops_counting *c)
{
    pthread_mutex_lock(&c->lock);
    c->is_over = true;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
}

void tbd_stops_workers_join(struct stops_counting *c)
{
    for (unsigned i = 0; i < c->started; i++)
        pthread_join(c->workers[i].thread, NULL);
    c->started = 0;
}
