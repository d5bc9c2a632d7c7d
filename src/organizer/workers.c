// SPDX-License-Identifier: MIT
/* workers.c - what workers do with a window: the steps that the pipeline names (pipeline.h)
 *
 *   build -> join -> put -> commit; and early, a piece of the window that is being collected */
#include "organizer/organize_private.h"

#include "base/clock.h"
#include "base/processors.h"
#include "organizer/build.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

/* The nice value of workers, for when all processors are busy.  Share of chunks published while
 * five or more waited, for bzip2, perl, python, sqlite3: 28, 22, 39 and 33 % without it, 19, 20, 30
 * and 21 % with it. */
#define WORKER_NICE 5

/* Has the program ended, so that it waits for its last windows?  If all others have their events,
 * these have them, too. */
static bool is_waited_for(const struct organizer *o)
{
    return __atomic_load_n(&o->has_lean, __ATOMIC_RELAXED) &&
           __atomic_load_n(&o->head->engine_state, __ATOMIC_ACQUIRE) == TBD_ENGINE_ENDED;
}

static bool is_lean(const struct organizer *o, const struct tbd_job *job)
{
    return tbd_organizer_is_lean(o, job->is_pressed || is_waited_for(o), !job->raw.cut);
}

void tbd_workers_drop_early(struct organizer *o, struct tbd_builder *builder)
{
    if (!builder)
        return;
    tbd_builder_free(builder);
    __atomic_fetch_sub(&o->early_windows, 1, __ATOMIC_RELAXED);
}

/* The builder that has begun the window, or any; NULL without memory. */
static struct tbd_builder *builder_for(struct organizer *o, struct tbd_job *job)
{
    struct tbd_builder *builder = job->builder;

    job->is_lean = builder || is_lean(o, job);
    if (builder)
        __atomic_fetch_sub(&o->early_windows, 1, __ATOMIC_RELAXED);
    else
        builder = tbd_builders_take(&o->builders);
    job->builder = NULL;
    if (builder)
        tbd_builder_code(builder, !job->is_lean);
    return builder;
}

static void build_window(struct organizer *o, struct tbd_job *job)
{
    uint64_t begin_ns = tbd_clock_ns();
    struct tbd_builder *builder;

    if (tbd_organizer_has_failed(o)) {
        tbd_workers_drop_early(o, job->builder);
        tbd_raw_window_free(&job->raw);
        return;
    }
    builder = builder_for(o, job);
    if (!builder) {
        job->status = TBD_NOMEM;
        tbd_raw_window_free(&job->raw);
        return;
    }
    job->status =
        tbd_build(builder, &job->raw, tbd_consumer_plans(o->consumer), o->table, &job->product);
    if (!job->status)
        tbd_builder_give_coded(builder, &job->product, &job->coded);
    tbd_builders_give(&o->builders, builder);
    if (job->status)
        return;
    if (job->is_lean && job->product.window->complete) {
        if (job->product.counts.level > TBD_LEVEL_COUNTS)
            job->product.counts.level = TBD_LEVEL_COUNTS;
        __atomic_store_n(&o->has_lean, true, __ATOMIC_RELAXED);
        tbd_page_bases_copy(&job->bases, o->versions, job->product.window);
    }
    job->busy_ns = tbd_clock_ns() - begin_ns;
}

static void join_window(struct organizer *o, struct tbd_job *job)
{
    if (!job->status && job->product.window && !tbd_organizer_has_failed(o)) {
        job->status = tbd_join_window(o->join, &job->product, job->highest_id, &job->keep);
        if (job->keep)
            tbd_page_bases_join(&job->bases, o->versions, &job->product);
        else
            tbd_page_versions_unmap(o->versions, &job->product);
        if (!job->status && job->product.damaged)
            tbd_organizer_fail(o, TBD_CORRUPT, "stream");
    }
    if (job->status)
        tbd_organizer_fail(o, job->status, "window");
}

/* Returns when the window's files may be written: the ager has freed space. */
static void wait_for_space(struct organizer *o, uint64_t number, bool keep)
{
    pthread_mutex_lock(&o->lock);
    while (o->granted != number || (keep && o->ager && !tbd_ager_may_write_locked(o->ager))) {
        pthread_cond_signal(&o->due); /* more is being written than when the ager looked */
        pthread_cond_wait(&o->space, &o->lock);
    }
    o->granted++;
    pthread_cond_broadcast(&o->space);
    pthread_mutex_unlock(&o->lock);
}

static enum tbd_status put_files(struct organizer *o, struct tbd_job *job)
{
    const struct tbd_product *product = &job->product;
    bool has_bases = product->counts.level < TBD_LEVEL_EVENTS && job->bases.window;
    struct tbd_window_extra extra = { .coded = product->coded,
                                      .base = has_bases ? tbd_page_bases_find : NULL,
                                      .context = &job->bases };

    return tbd_writer_put_window(o->writer, product->window, &product->counts, &extra, &job->files);
}

/* Gives the buffer back, for the next window that is coded. */
static void give_coded(struct organizer *o, struct tbd_job *job)
{
    struct tbd_builder *builder = job->coded.capacity ? tbd_builders_take(&o->builders) : NULL;

    if (!builder) {
        tbd_buffer_free(&job->coded);
        return;
    }
    tbd_builder_take_coded(builder, &job->coded);
    tbd_builders_give(&o->builders, builder);
}

static void put_window(struct organizer *o, struct tbd_job *job)
{
    uint64_t begin_ns;

    wait_for_space(o, job->number, job->keep);
    begin_ns = tbd_clock_ns();
    tbd_key_files_collect(o, job);
    if (job->keep)
        job->status = put_files(o, job);
    give_coded(o, job);
    tbd_page_bases_free(&job->bases);
    tbd_product_free(&job->product);
    job->busy_ns += tbd_clock_ns() - begin_ns;
}

/* `job` is in the trace now, or could not be written. */
static void age_locked(struct organizer *o, const struct tbd_job *job)
{
    enum tbd_status status = job->status;

    if (status || (o->failed && o->failed != TBD_CORRUPT))
        tbd_ager_take_back_locked(o->ager);
    else
        status = tbd_ager_add_locked(o->ager, &job->files.disk,
                                     tbd_organizer_is_replayable(o, job->files.disk.complete));
    if (status)
        tbd_organizer_fail_locked(o, status, "window");
    pthread_cond_broadcast(&o->space);
    if (tbd_ager_is_due_locked(o->ager))
        pthread_cond_signal(&o->due);
}

/* Returns a segment that is complete, to be written by the caller. */
static struct tbd_key_segment *commit_locked(struct organizer *o, struct tbd_job *job)
{
    struct tbd_key_segment *full = NULL;

    if (job->status)
        tbd_organizer_fail_locked(o, job->status, "window");
    if (job->keep && (!o->failed || o->failed == TBD_CORRUPT)) {
        job->status = tbd_writer_commit_window(o->writer, &job->files);
        if (job->status)
            tbd_organizer_fail_locked(o, job->status, "index");
        else if (o->keys && o->keys->window == job->files.disk.window)
            full = tbd_key_files_add_locked(o);
    }
    if (job->keep && o->ager)
        age_locked(o, job);
    return full;
}

static struct tbd_key_segment *commit_window(struct organizer *o, struct tbd_job *job)
{
    struct tbd_key_segment *full;

    pthread_mutex_lock(&o->lock);
    full = commit_locked(o, job);
    pthread_mutex_unlock(&o->lock);
    free(job->files.pages);
    return full;
}

/* Gives the reader priority over workers, as the program soon waits for it.  (On Linux this affects
 * the calling thread alone; setpriority(2), "C library/kernel differences".) */
static void step_back(void)
{
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + WORKER_NICE);
}

static void *work(void *context)
{
    struct organizer *o = context;
    enum tbd_step step = TBD_STEP_NONE;
    struct tbd_job *job = NULL;

    step_back();
    while (tbd_pipeline_next(o->pipeline, &job, &step)) {
        struct tbd_key_segment *full = NULL;

        if (step == TBD_STEP_BUILD)
            build_window(o, job);
        else if (step == TBD_STEP_JOIN)
            join_window(o, job);
        else if (step == TBD_STEP_PUT)
            put_window(o, job);
        else if (step == TBD_STEP_EARLY)
            (void)tbd_build_early(job->builder, &job->raw, tbd_consumer_plans(o->consumer),
                                  o->table);
        else
            full = commit_window(o, job);
        if (!full)
            continue;
        tbd_pipeline_done(o->pipeline, &job, &step); /* others may commit meanwhile */
        tbd_key_files_write(o, full);
    }
    pthread_mutex_lock(&o->lock);
    o->working--;
    pthread_cond_signal(&o->idle);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

unsigned tbd_workers_count(const struct tbd_organize_options *options)
{
    unsigned count = options->threads;
    unsigned processors = tbd_processors();

    if (!count)
        count = processors > 2 ? processors - 1 : 1;
    return count > MAX_THREADS ? MAX_THREADS : count;
}

/* Where the number of processes is limited, the one that has started the organizer may still
 * count: it ends soon.  One worker is enough. */
static bool start_worker(struct organizer *o)
{
    const struct timespec step = { 0, 5000000 };
    int error = pthread_create(&o->threads[o->thread_count], NULL, work, o);

    for (int tries = 0; error == EAGAIN && !o->thread_count && tries < 40; tries++) {
        nanosleep(&step, NULL);
        error = pthread_create(&o->threads[0], NULL, work, o);
    }
    return error == 0;
}

bool tbd_workers_begin(struct organizer *o)
{
    unsigned wanted = tbd_workers_count(o->options);

    pthread_mutex_lock(&o->lock);
    while (o->thread_count < wanted && start_worker(o))
        o->thread_count++;
    o->working = o->thread_count;
    pthread_mutex_unlock(&o->lock);
    return o->thread_count;
}

void tbd_workers_wait(struct organizer *o)
{
    pthread_mutex_lock(&o->lock);
    while (o->working)
        pthread_cond_wait(&o->idle, &o->lock);
    pthread_mutex_unlock(&o->lock);
}
