// SPDX-License-Identifier: MIT
/* pipeline.c - see pipeline.h
 *
 * Counters say how far windows are; each step takes them in order, so the windows that have been added and not committed lie
 * between two of them:
 *
 *   committed <= begun to put <= joined <= taken to build <= added
 *
 * Invariants
 * PIPELINE-1  The oldest window never waits for a place or for another window: no deadlock.  (It
 *     may wait for the worker that builds it early to finish its piece.)
 * PIPELINE-2  At most `most` windows are between being taken and being committed, and QUEUE_SLOTS
 *     wait to be taken: this bounds memory, and each has a slot of its own.  Where `most_bytes` says so, they
 *     have no more bytes than that together, unless there is one alone.
 * PIPELINE-3  Whenever the lock is released and a step could be done, some worker that does not
 *     wait will look for it: a worker that makes several steps possible takes one and wakes another
 *     for the next, which does the same. (not checked: threads: tsan does) */
#include "organizer/pipeline.h"

#include "base/assert.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

/* Windows that wait to be built.  Two suffice even when one window takes ten times as long as
 * others; more take memory, tens of megabytes each, and gain nothing. */
#define QUEUE_SLOTS 2u
/* Built windows that may wait for their turn while workers go on. */
#define SPARE_WINDOWS 2u
/* To build a block entry with its events, until a window has been measured: all caches are cold. */
#define FIRST_BUILD_NS 40u
#define BUSY_SHARE     2u /* 1 / this of a worker's time is too much */

/* On the stack of a worker that waits. */
struct sleeper {
    pthread_cond_t woken;
    struct sleeper *next;
    bool is_idle; /* in the list */
};

struct tbd_pipeline {
    pthread_mutex_t lock;
    pthread_cond_t place; /* the reader waits here */
    struct sleeper *idle; /* workers that wait; the one that came last is first */
    uint64_t added;
    uint64_t taken; /* to be built */
    uint64_t joined;
    uint64_t begun; /* to be put */
    uint64_t committed;
    uint64_t most;        /* windows between taken and committed */
    uint64_t most_bytes;  /* of raw windows that have been added and not put */
    uint64_t bytes;       /* of these now */
    struct tbd_job offer; /* a window that is being collected */
    struct tbd_job early; /* the offer when a worker took it */
    bool is_offered;
    bool is_early; /* a worker builds it */
    bool is_joining;
    bool is_committing;
    bool closed;
    uint64_t window_ns; /* from one window to the next */
    uint64_t add_ns;    /* when the last one came */
    uint64_t build_ns;  /* for a MiB of raw window, to build and put it with its events */
    uint64_t slots;
    struct tbd_job jobs[]; /* window n in n % slots */
};

struct tbd_pipeline *tbd_pipeline_new(unsigned workers, uint64_t most_bytes)
{
    uint64_t slots = workers + SPARE_WINDOWS + QUEUE_SLOTS;
    struct tbd_pipeline *p = calloc(1, sizeof(*p) + slots * sizeof(*p->jobs));

    if (!p)
        return NULL;
    p->slots = slots;
    p->most = workers + SPARE_WINDOWS;
    p->most_bytes = most_bytes;
    p->add_ns = tbd_clock_ns();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->place, NULL);
    return p;
}

void tbd_pipeline_free(struct tbd_pipeline *p)
{
    if (!p)
        return;
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->place);
    free(p);
}

static struct tbd_job *job_of(struct tbd_pipeline *p, uint64_t number)
{
    return &p->jobs[number % p->slots];
}

/* ---- how fast windows come, and are built ---- */

/* A mean of the last few. */
static void note_time(uint64_t *mean, uint64_t ns)
{
    *mean = *mean ? (*mean * 3 + ns) / 4 : ns;
}

/* The first window includes the program's start: its time tells nothing about later ones. */
static void note_added_locked(struct tbd_pipeline *p)
{
    uint64_t now = tbd_clock_ns();

    if (p->added < 2)
        p->window_ns = 0;
    note_time(&p->window_ns, now - p->add_ns);
    p->add_ns = now;
}

static void note_built_locked(struct tbd_pipeline *p, const struct tbd_job *job)
{
    if (!job->is_lean)
        note_time(&p->build_ns, (job->busy_ns << 20) / (job->raw_bytes + 1));
}

/* How long one worker needs for the window with its events. */
static uint64_t guess_build_ns(const struct tbd_pipeline *p, const struct tbd_job *job)
{
    return p->build_ns ? p->build_ns * job->raw_bytes >> 20 : job->entry_count * FIRST_BUILD_NS;
}

/* Would one worker be busy more than half of the time if it built windows with their events as fast
 * as they come?  (Waiting until windows queue up is too late: the program would soon wait, too.
 * And workers that just keep up take caches and memory bandwidth from it.) */
static bool is_pressed_locked(const struct tbd_pipeline *p, const struct tbd_job *job)
{
    return p->taken != p->added || guess_build_ns(p, job) > p->window_ns / BUSY_SHARE;
}

/* ---- steps ---- */

/* Is a worker building a piece of the window? */
static bool is_begun_locked(const struct tbd_pipeline *p, const struct tbd_job *job)
{
    return p->is_early && job->builder == p->early.builder;
}

/* The next step: oldest windows first, so that memory and slots become free. */
static enum tbd_step find_locked(struct tbd_pipeline *p)
{
    if (!p->is_committing && p->committed < p->begun && job_of(p, p->committed)->is_put)
        return TBD_STEP_COMMIT;
    if (!p->is_joining && p->joined < p->taken && job_of(p, p->joined)->is_built)
        return TBD_STEP_JOIN;
    if (p->begun < p->joined)
        return TBD_STEP_PUT;
    if (p->taken < p->added && p->taken - p->committed < p->most &&
        !is_begun_locked(p, job_of(p, p->taken)))
        return TBD_STEP_BUILD;
    return p->is_offered && !p->is_early ? TBD_STEP_EARLY : TBD_STEP_NONE;
}

static struct tbd_job *begin_build_locked(struct tbd_pipeline *p)
{
    struct tbd_job *job = job_of(p, p->taken++);

    job->is_pressed = is_pressed_locked(p, job);
    pthread_cond_signal(&p->place);
    return job;
}

static bool counters_are_in_order(const struct tbd_pipeline *p)
{
    return p->committed <= p->begun && p->begun <= p->joined && p->joined <= p->taken &&
           p->taken <= p->added;
}

static struct tbd_job *begin_locked(struct tbd_pipeline *p, enum tbd_step step)
{
    switch (step) {
    case TBD_STEP_BUILD: return begin_build_locked(p);
    case TBD_STEP_JOIN:
        TBD_INVARIANT("ORGANIZE-1", !p->is_joining && job_of(p, p->joined)->number == p->joined);
        p->is_joining = true;
        return job_of(p, p->joined);
    case TBD_STEP_PUT: return job_of(p, p->begun++);
    case TBD_STEP_COMMIT: p->is_committing = true; return job_of(p, p->committed);
    case TBD_STEP_EARLY:
        p->is_early = true;
        p->is_offered = false;
        p->early = p->offer;
        return &p->early;
    default: return NULL;
    }
}

static bool is_over(const struct tbd_pipeline *p)
{
    return p->closed && p->committed == p->added;
}

/* ---- workers that wait ---- */

static void wake_locked(struct tbd_pipeline *p)
{
    struct sleeper *sleeper = p->idle;

    p->idle = sleeper->next;
    sleeper->is_idle = false;
    pthread_cond_signal(&sleeper->woken);
}

/* PIPELINE-3.  Wakes the worker that went to sleep last: its memory is still in the caches, and
 * while one worker keeps up, the others leave processors to the program. */
static void wake_one_locked(struct tbd_pipeline *p)
{
    if (p->idle && find_locked(p))
        wake_locked(p);
}

static void wake_all_locked(struct tbd_pipeline *p)
{
    while (p->idle)
        wake_locked(p);
}

static void sleep_locked(struct tbd_pipeline *p)
{
    struct sleeper sleeper = { .woken = PTHREAD_COND_INITIALIZER,
                               .next = p->idle,
                               .is_idle = true };

    /* cppcheck-suppress autoVariables ; whoever wakes it takes it out of the list */
    p->idle = &sleeper;
    while (sleeper.is_idle)
        pthread_cond_wait(&sleeper.woken, &p->lock);
    pthread_cond_destroy(&sleeper.woken);
}

/* ---- what workers ask ---- */

static void finish_locked(struct tbd_pipeline *p, struct tbd_job *job, enum tbd_step step)
{
    switch (step) {
    case TBD_STEP_BUILD: job->is_built = true; break;
    case TBD_STEP_JOIN:
        p->is_joining = false;
        p->joined++;
        break;
    case TBD_STEP_PUT:
        job->is_put = true;
        p->bytes -= job->raw_bytes;
        pthread_cond_signal(&p->place);
        note_built_locked(p, job);
        break;
    case TBD_STEP_COMMIT:
        p->is_committing = false;
        p->committed++;
        if (is_over(p))
            wake_all_locked(p);
        break;
    case TBD_STEP_EARLY:
        p->is_early = false;
        pthread_cond_signal(&p->place);
        break;
    default: break;
    }
}

bool tbd_pipeline_next(struct tbd_pipeline *p, struct tbd_job **job, enum tbd_step *step)
{
    pthread_mutex_lock(&p->lock);
    finish_locked(p, *job, *step);
    while (!(*step = find_locked(p)) && !is_over(p))
        sleep_locked(p);
    *job = begin_locked(p, *step);
    TBD_INVARIANT("PIPELINE-1", counters_are_in_order(p));
    TBD_INVARIANT("PIPELINE-2",
                  p->taken - p->committed <= p->most && p->added - p->taken <= QUEUE_SLOTS);
    wake_one_locked(p);
    pthread_mutex_unlock(&p->lock);
    return *job != NULL;
}

void tbd_pipeline_done(struct tbd_pipeline *p, struct tbd_job **job, enum tbd_step *step)
{
    pthread_mutex_lock(&p->lock);
    finish_locked(p, *job, *step);
    *job = NULL;
    *step = TBD_STEP_NONE;
    wake_one_locked(p);
    pthread_mutex_unlock(&p->lock);
}

/* ---- the reader ---- */

void tbd_pipeline_offer(struct tbd_pipeline *p, const struct tbd_raw_window *raw,
                        struct tbd_builder *builder)
{
    pthread_mutex_lock(&p->lock);
    p->offer = (struct tbd_job){ .raw = *raw, .builder = builder };
    p->is_offered = true;
    wake_one_locked(p);
    pthread_mutex_unlock(&p->lock);
}

void tbd_pipeline_withdraw(struct tbd_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    p->is_offered = false;
    while (p->is_early)
        pthread_cond_wait(&p->place, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

bool tbd_pipeline_is_pressed(struct tbd_pipeline *p)
{
    bool is_pressed;

    pthread_mutex_lock(&p->lock);
    is_pressed = p->added > 1 && is_pressed_locked(p, job_of(p, p->added - 1));
    pthread_mutex_unlock(&p->lock);
    return is_pressed;
}

/* Is there space for a window with `bytes` bytes?  It is freed when one is put. */
static bool has_place_locked(const struct tbd_pipeline *p, uint64_t bytes)
{
    return p->added - p->taken < QUEUE_SLOTS && (!p->bytes || p->bytes + bytes <= p->most_bytes);
}

void tbd_pipeline_add(struct tbd_pipeline *p, const struct tbd_raw_window *raw,
                      struct tbd_builder *builder)
{
    uint64_t bytes =
        raw->entry_count * sizeof(*raw->entries) + raw->operand_bytes + raw->packed.used;

    pthread_mutex_lock(&p->lock);
    p->is_offered = false;
    while (!has_place_locked(p, bytes))
        pthread_cond_wait(&p->place, &p->lock);
    note_added_locked(p);
    *job_of(p, p->added) = (struct tbd_job){
        .number = p->added,
        .raw = *raw,
        .highest_id = raw->highest_id,
        .builder = builder,
        .entry_count = raw->entry_count,
        .raw_bytes = bytes,
    };
    p->bytes += bytes;
    p->added++;
    wake_one_locked(p);
    pthread_mutex_unlock(&p->lock);
}

uint64_t tbd_pipeline_close(struct tbd_pipeline *p)
{
    uint64_t left;

    pthread_mutex_lock(&p->lock);
    p->closed = true;
    p->is_offered = false;
    left = p->added - p->committed;
    wake_all_locked(p);
    pthread_mutex_unlock(&p->lock);
    return left;
}
